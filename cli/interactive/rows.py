"""How text falls into the rows of a terminal, wide characters counted twice. Pure."""

from prompt_toolkit.utils import get_cwidth


def last_rows(text: str, columns: int, rows: int) -> list[str]:
    """Return the last *rows* rows that *text* takes in a terminal of *columns*. Pure."""
    found: list[str] = []
    for line in text[-4 * columns * rows :].split("\n"):
        found += cells(line, columns, by_words=True)
    return found[-rows:]


def cells(line: str, columns: int, *, by_words: bool = False) -> list[str]:
    """Return *line* in pieces that are at most *columns* cells wide, at least one. Pure."""
    pieces: list[str] = []
    piece, width = "", 0
    for char in line:
        wide = get_cwidth(char)
        if width + wide > columns and piece:
            at = piece.rfind(" ") + 1 if by_words and char != " " else 0
            whole, piece = (piece[:at], piece[at:]) if at else (piece, "")
            pieces.append(whole)
            width = get_cwidth(piece)
        piece += char
        width += wide
    return [*pieces, piece]


def cut(line: str, columns: int) -> str:
    """Return as much of *line* as fits into *columns* cells. Pure."""
    first, *more = cells(line, max(columns, 1))
    return f"{first[:-1]}…" if more else first
