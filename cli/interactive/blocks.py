"""A streamed answer cut into blocks that can be drawn for good, and the rest. Pure.

A block ends where the next one certainly begins. What grows too long is cut, so that a stream of
any length is held in pieces of bounded size.
"""

import re
from dataclasses import dataclass
from typing import Final

MOST: Final = 8 * 1024
"""Characters of a block; a longer one goes on as the next."""

_LONG_LINE: Final = 4 * 1024
_FENCE: Final = re.compile(r"(?P<indent>[ \t]{0,12})(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Markdown, or with *language* (which may be empty) the lines inside a fence."""

    text: str
    language: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fence:
    indent: str
    marks: str
    language: str


class Blocks:
    """Takes deltas in any split and gives blocks back."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._size = 0
        self._partial = ""
        self._gap = False
        self._fence: _Fence | None = None

    @property
    def rest(self) -> str:
        """Return what belongs to no finished block yet."""
        return "".join(f"{line}\n" for line in self._lines) + self._partial

    def feed(self, delta: str) -> list[Block]:
        """Return the blocks that *delta* completes."""
        done: list[Block] = []
        *lines, last = delta.split("\n")
        for line in lines:
            whole, self._partial = self._partial + line, ""
            done += self._take(whole.removesuffix("\r"))
        self._partial += last
        if len(self._partial) > _LONG_LINE:
            done += self._cut_line()
        elif self._begins_anew(self._partial):
            done += self._close()
        return done

    def finish(self) -> list[Block]:
        """Return what is left, as it stands."""
        done: list[Block] = []
        if self._partial:
            done += self._take(self._partial)
            self._partial = ""
        done += self._close()
        self._fence = None
        return done

    def _take(self, line: str) -> list[Block]:
        if self._fence is not None:
            return self._take_code(line, self._fence)
        opens = _FENCE.fullmatch(line)
        if opens is not None:
            done = self._close()
            words = opens["info"].split()
            self._fence = _Fence(
                indent=opens["indent"], marks=opens["marks"], language=words[0] if words else ""
            )
            return done
        done = self._close() if self._begins_anew(line) or self._size > MOST else []
        if line.strip():
            self._keep(line)
        elif self._lines:
            self._keep("")
            self._gap = True
        return done

    def _take_code(self, line: str, fence: _Fence) -> list[Block]:
        bare = line.strip()
        if len(bare) >= len(fence.marks) and set(bare) == {fence.marks[0]}:
            done = self._close()
            self._fence = None
            return done
        self._keep(line.removeprefix(fence.indent))
        return self._close() if self._size > MOST else []

    def _begins_anew(self, line: str) -> bool:
        """Say if *line* after a gap is certainly no part of the list or quote before it."""
        return self._gap and bool(line.strip()) and not line[:1].isspace()

    def _cut_line(self) -> list[Block]:
        space = self._partial.rfind(" ") if self._fence is None else -1
        cut = space + 1 if space > 0 else len(self._partial)
        head, self._partial = self._partial[:cut], self._partial[cut:]
        self._keep(head)
        return self._close()

    def _keep(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1

    def _close(self) -> list[Block]:
        text = "\n".join(self._lines)
        self._lines, self._size, self._gap = [], 0, False
        if self._fence is not None:
            return [Block(text=text, language=self._fence.language)] if text else []
        return [Block(text=text)] if text.strip() else []
