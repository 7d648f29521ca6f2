"""Text in pieces that may cut a character written as two JSON escapes."""

from typing import Final

_REPLACEMENT: Final = "\ufffd"


class TextPairs:
    """Joins surrogate halves over pieces, so that what comes out is always valid Unicode."""

    def __init__(self) -> None:
        self._half = ""

    def join(self, piece: str) -> str:
        """Return *piece* without a trailing high half, which waits for its other half."""
        if not self._half and (piece.isascii() or _is_clean(piece)):
            return piece
        whole = self._half + piece
        self._half = whole[-1:] if "\ud800" <= whole[-1:] <= "\udbff" else ""
        return _paired(whole[:-1] if self._half else whole)

    def rest(self) -> str:
        """Return what is left at the end: a half that stayed alone is replaced."""
        left, self._half = self._half, ""
        return _REPLACEMENT if left else ""


def _is_clean(piece: str) -> bool:
    try:
        piece.encode()
    except UnicodeEncodeError:
        return False
    return True


def _paired(whole: str) -> str:
    return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
