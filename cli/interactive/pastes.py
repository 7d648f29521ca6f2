"""What was pasted, folded into one character of the prompt, and sent whole.

A fold is a character of a private plane: the cursor steps over it and a deletion takes all of it.
"""

import re
from typing import Final

from cli.visible import visible, visible_line

_FIRST: Final = 0x100000
_PRIVATE: Final = re.compile("[\U00100000-\U0010fffd]")
_MOST_LINES: Final = 8
_MOST: Final = 1_000
_TAB: Final = "    "


class Pastes:
    """Remembers every paste of this terminal for as long as it is open."""

    def __init__(self) -> None:
        self._folded: dict[str, str] = {}
        self._inline: list[str] = []

    def take(self, data: str) -> str:
        """Return what goes into the prompt for the pasted *data*."""
        text = data.replace("\r\n", "\n").replace("\r", "\n")
        if self._is_long(text) or _PRIVATE.search(text):
            return self._fold(text)
        self._inline.append(text)
        return text

    def put_back(self, text: str) -> str:
        """Return *text*, which was sent or kept before, as it goes into the prompt again."""
        return self._fold(text) if self._is_long(text) or _PRIVATE.search(text) else text

    def whole(self, typed: str) -> str:
        """Return *typed* with every fold opened."""
        return _PRIVATE.sub(lambda found: self._folded.get(found[0], found[0]), typed)

    def in_short(self, typed: str) -> str:
        """Return *typed* as a person reads it, on any number of lines."""
        return visible(_PRIVATE.sub(lambda found: self.label(found[0]) or found[0], typed))

    def pasted_in(self, typed: str) -> tuple[str, ...]:
        """Return the pastes that *typed* still holds."""
        folds = [self._folded[char] for char in typed if char in self._folded]
        inline = [text for text in self._inline if text in typed]
        self._inline = []
        return (*folds, *inline)

    def label(self, char: str) -> str | None:
        """Return the words that stand for the fold *char*, None for any other character."""
        text = self._folded.get(char)
        if text is None:
            return None
        lines = text.count("\n") + 1
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        return f"[pasted {size}]"

    def shown(self, char: str) -> str:
        """Return how *char* looks at the prompt."""
        return self.label(char) or (_TAB if char == "\t" else visible_line(char))

    def _fold(self, text: str) -> str:
        char = chr(_FIRST + len(self._folded))
        self._folded[char] = text
        return char

    @staticmethod
    def _is_long(text: str) -> bool:
        return text.count("\n") >= _MOST_LINES or len(text) > _MOST
