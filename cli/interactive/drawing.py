"""Blocks, diffs and questions → lines with styles of ours, ready to be written. Prints nothing.

Whatever others wrote is made visible before it is drawn. Only the sixteen colours of the user's
own palette are used, so it is readable on any background and in any terminal.
"""

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from io import StringIO
from typing import TYPE_CHECKING, Final

from cli.interactive.blocks import Block
from cli.interactive.rows import wrapped
from cli.visible import visible, visible_line

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from rich.console import Console, RenderableType
    from rich.segment import Segment

_LEAST: Final = 10
_CODE: Final = "ansi_dark"
_THEME: Final = {"markdown.code": "cyan", "markdown.code_block": "cyan"}
_DIFF: Final = {"+": "32", "-": "31", "@": "36"}


class Pen:
    """Draws for one terminal. *colour* is off under NO_COLOR; bold and dim stay.

    Prose is cut between words at *columns*, which are asked for each time; without, nowhere.
    """

    def __init__(self, *, colour: bool, columns: Callable[[], int] | None = None) -> None:
        self._colour = colour
        self._columns = columns

    def block(self, block: Block, width: int) -> str:
        """Return *block* drawn in lines of at most *width* columns, an empty one after it."""
        if block.language is not None:
            return self._drawn(_code(block.text, block.language), width)
        return self._drawn(_markdown(block.text), width)

    def warm_up(self) -> None:
        """Import what drawing needs, before the first answer has to wait for it. Blocks."""
        self.block(Block(text="*a*\n\n- b"), 80)
        self.block(Block(text="a = 1", language="python"), 80)

    def markdown(self, text: str, width: int) -> str:
        return self._drawn(_markdown(text), width)

    def diff(self, text: str) -> str:
        """Return a change or a command whole, each line marked by what it does."""
        return "".join(f"  {self._diff_line(line, line)}\n" for line in visible(text).split("\n"))

    def diff_row(self, piece: str, *, of: str, goes_on: bool) -> str:
        """Return a *piece* of a line of `diff`, marked by what the whole line does."""
        return f"{'  ↳ ' if goes_on else '  '}{self._diff_line(piece, of)}\n"

    def title(self, text: str) -> str:
        return self._lines(visible_line(text), lambda row: self.styled(row, "1"), 2)

    def dim(self, text: str, *, hang: int = 2) -> str:
        """Return *text*, which may have several lines, as an aside."""
        return self._lines(visible(text), self._dim, hang)

    def output(self, text: str) -> str:
        """Return what a program printed, cut nowhere."""
        return "".join(f"{self._dim(line)}\n" for line in visible(text).split("\n"))

    def plain(self, text: str) -> str:
        return self._lines(visible(text), lambda row: row, 2)

    def fault(self, text: str) -> str:
        return self._lines(visible(text), lambda row: self._coloured(row, "31"), 2)

    def prompt(self, text: str, mark: str) -> str:
        """Return what the person sent, as it goes into the record above."""
        first, *more = visible(text).split("\n")
        lines = [f"{mark}{first}", *(f"{' ' * len(mark)}{line}" for line in more)]
        return self._lines("\n".join(lines), lambda row: self.styled(row, "1"), len(mark))

    def _lines(self, harmless: str, style: Callable[[str], str], hang: int) -> str:
        rows = harmless.split("\n")
        if self._columns is not None:
            columns = max(self._columns(), _LEAST)
            rows = [row for line in rows for row in wrapped(line, columns, least=hang)]
        return "".join(f"{style(row)}\n" for row in rows)

    def _dim(self, harmless: str) -> str:
        return self.styled(harmless, "2")

    def styled(self, harmless: str, code: str) -> str:
        return f"\x1b[{code}m{harmless}\x1b[0m" if harmless else ""

    def _coloured(self, harmless: str, code: str) -> str:
        return self.styled(harmless, code) if self._colour else harmless

    def _diff_line(self, shown: str, line: str) -> str:
        code = _DIFF.get(line[:1])
        return self._coloured(shown, code) if code else shown

    def _drawn(self, what: "RenderableType", width: int) -> str:
        from rich.color import ColorSystem

        system = ColorSystem.STANDARD if self._colour else None
        lines = _console(max(width, _LEAST), colour=self._colour).render_lines(what, pad=False)
        text = "\n".join(_joined(line, system) for line in lines).strip("\n")
        return f"{text}\n\n"


@lru_cache(maxsize=4)
def _console(width: int, *, colour: bool) -> "Console":
    from rich.console import Console
    from rich.theme import Theme

    return Console(
        file=StringIO(),
        theme=Theme(_THEME),
        force_terminal=True,
        color_system="standard" if colour else None,
        no_color=not colour,
        width=width,
        highlight=False,
        emoji=False,
    )


def _joined(line: "Iterable[Segment]", system: object) -> str:
    """Return one line without the blanks at its end, which would wrap in a narrower window."""
    from rich.color import ColorSystem
    from rich.style import Style

    parts = [part for part in line if not part.control]
    while parts and not parts[-1].text.strip():
        parts.pop()
    words: list[str] = []
    for number, part in enumerate(parts):
        text = part.text.rstrip() if number == len(parts) - 1 else part.text
        style = part.style or Style()
        if isinstance(system, ColorSystem):
            words.append(style.render(text, color_system=system))
        else:
            words.append(style.without_color.render(text, color_system=ColorSystem.STANDARD))
    return "".join(words)


def _code(text: str, language: str) -> "RenderableType":
    from rich.padding import Padding
    from rich.syntax import Syntax

    code = Syntax(
        visible(text),
        language or "text",
        theme=_CODE,
        background_color="default",
        word_wrap=True,
    )
    return Padding(code, (0, 0, 0, 2))


def _markdown(text: str) -> "RenderableType":
    from rich.markdown import Markdown

    # A link shows where it leads.
    document = Markdown("", code_theme=_CODE, hyperlinks=False)
    document.parsed = _parser().parse(text)
    _make_visible(document.parsed)
    return document


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    # HTML is shown as it is written: rich would leave it out.
    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


def _make_visible(tokens: "Iterable[Token]") -> None:
    # After parsing: a character reference such as &#x202E; is a bidi character only now.
    for token in tokens:
        token.content = visible(token.content)
        token.info = visible_line(token.info)
        for name, value in token.attrs.items():
            if isinstance(value, str):
                token.attrs[name] = visible_line(value)
        _make_visible(token.children or ())
