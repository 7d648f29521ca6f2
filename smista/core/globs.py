"""Glob patterns: `*` and `?` inside a part, `**` across parts, `{a,b}`, `[a-z]`, hidden files too.

A pattern without `/` is a file name at any depth; a leading `/` anchors at the root; a trailing
`/` means all below. Matching is linear on purpose: whoever writes a policy or names a file must
not be able to hold the router, so every `*` takes the first place that fits and never goes back.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Final

from smista.core.paths import fold, trim_part

MOST_PATTERNS: Final = 1000
LONGEST_PATTERN: Final = 256
_MOST_SPELLINGS: Final = 1000
Regex = tuple[re.Pattern[str], int]
_MAGIC: Final = re.compile(r"[*?\[]")


class BadPattern(ValueError):
    """A pattern that cannot be read; the text says what is wrong with it."""


def problem(pattern: str) -> str | None:
    """Return what is wrong with *pattern*, None if it is sound."""
    try:
        for spelling in _expand(pattern):
            _regex(_parts(spelling))
    except BadPattern as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True)
class Choices:
    """Expressions tried in turn, unless *either* says that none of them fits."""

    either: re.Pattern[str] | None
    each: tuple[Regex, ...]

    @classmethod
    def of(cls, each: Sequence[Regex]) -> "Choices":
        union = "|".join(f"(?:{regex.pattern})" for regex, _ in each)
        return cls(re.compile(union, re.DOTALL) if union else None, tuple(each))

    def hits(self, text: str) -> list[int]:
        if self.either is None or not self.either.match(text):
            return []
        return [number for regex, number in self.each if regex.match(text)]


# eq=False: two of the same patterns are one object (see below), and hash by what they are.
@dataclass(frozen=True, slots=True, eq=False)
class Globs:
    """Compiled patterns; plain shapes are looked up, only the others are tried in turn.

    *rooted* holds those that begin with plain parts, under these parts; *named* are those about
    the file name alone, *loose* the rest. *bad* are the numbers of the patterns that cannot be
    read: they match nothing here, and the caller decides what a broken pattern means.
    """

    names: dict[str, tuple[int, ...]]
    endings: dict[str, tuple[int, ...]]
    exact: dict[str, tuple[int, ...]]
    trees: dict[str, tuple[int, ...]]
    rooted: dict[str, tuple[Regex, ...]]
    named: Choices
    loose: Choices
    bad: tuple[int, ...]

    def hits(self, path: str) -> tuple[int, ...]:
        """Return the numbers of the patterns that *path* (normalised, no leading `/`) fits."""
        return _hits(self, path)

    def find(self, path: str) -> tuple[int, ...]:
        """Do what `hits` does, without remembering it."""
        name = path[path.rfind("/") + 1 :]
        found: list[int] = [*self.exact.get(path, ())]
        if self.names:
            found += self.names.get(name, ())
        if self.endings:
            found += self._ending_hits(name)
        if self.trees or self.rooted:
            found += self._tree_hits(path)
        if self.named.either is not None:
            found += self.named.hits(name)
        if self.loose.either is not None:
            found += self.loose.hits(path)
        return tuple(found)

    def _ending_hits(self, name: str) -> list[int]:
        found: list[int] = []
        dot = name.find(".")
        while dot >= 0:
            found += self.endings.get(name[dot:], ())
            dot = name.find(".", dot + 1)
        return found

    def _tree_hits(self, path: str) -> list[int]:
        found: list[int] = []
        slash = path.find("/")
        while slash >= 0:
            lead = path[:slash]
            found += self.trees.get(lead, ())
            for regex, number in self.rooted.get(lead, ()):
                if regex.match(path):
                    found.append(number)
            slash = path.find("/", slash + 1)
        return found


# A session's files come back with every turn, and its patterns seldom change.
@lru_cache(maxsize=16384)
def _hits(globs: Globs, path: str) -> tuple[int, ...]:
    return globs.find(path)


# A policy is resent unchanged with every request, and compiling it costs far more than using it.
# The key is the patterns themselves, so a changed policy can never meet a stale result.
@lru_cache(maxsize=128)
def compile_globs(
    patterns: tuple[str, ...], *, folded: bool = False, floating: bool = False
) -> Globs:
    """Return *patterns* compiled, numbered by their place.

    *folded*: for privacy; compare with folded paths, and `x/**` covers `x` itself. *floating*:
    patterns with a slash fit at every depth, for paths that lie outside the root.
    """
    sorter = _Sorter()
    for number, pattern in enumerate(patterns):
        if number >= MOST_PATTERNS:
            sorter.bad.append(number)
            continue
        try:
            for parts in _readings(pattern, folded=folded, floating=floating):
                sorter.add(parts, number)
        except BadPattern:
            sorter.bad.append(number)
    return sorter.globs()


class _Sorter:
    """Collects compiled patterns under the cheapest way to look each up."""

    def __init__(self) -> None:
        self.names: dict[str, tuple[int, ...]] = {}
        self.endings: dict[str, tuple[int, ...]] = {}
        self.exact: dict[str, tuple[int, ...]] = {}
        self.trees: dict[str, tuple[int, ...]] = {}
        self.rooted: dict[str, tuple[Regex, ...]] = {}
        self.named: list[Regex] = []
        self.loose: list[Regex] = []
        self.bad: list[int] = []

    def add(self, parts: list[str], number: int) -> None:
        regex = _regex(parts)  # also for the plain shapes: it finds what is wrong with them
        match parts:
            case ["**", name] if not _MAGIC.search(name):
                self._file(self.names, name, number)
            case ["**", name] if name.startswith("*.") and not _MAGIC.search(name[1:]):
                self._file(self.endings, name[1:], number)
            case [*lead, "**"] if lead and not _MAGIC.search("/".join(lead)):
                self._file(self.trees, "/".join(lead), number)
            case _ if not _MAGIC.search("/".join(parts)):
                self._file(self.exact, "/".join(parts), number)
            case ["**", name] if name != "**":
                self.named.append((re.compile(rf"{_part_regex(name)}\Z", re.DOTALL), number))
            case _:
                self._try(parts, (re.compile(regex, re.DOTALL), number))

    def globs(self) -> Globs:
        return Globs(
            names=self.names,
            endings=self.endings,
            exact=self.exact,
            trees=self.trees,
            rooted=self.rooted,
            named=Choices.of(self.named),
            loose=Choices.of(self.loose),
            bad=tuple(self.bad),
        )

    def _try(self, parts: list[str], regex: Regex) -> None:
        plain = takewhile(lambda part: part != "**" and not _MAGIC.search(part), parts)
        lead = "/".join(plain)
        if lead:
            self.rooted[lead] = (*self.rooted.get(lead, ()), regex)
        else:
            self.loose.append(regex)

    @staticmethod
    def _file(table: dict[str, tuple[int, ...]], key: str, number: int) -> None:
        table[key] = (*table.get(key, ()), number)


def _readings(pattern: str, *, folded: bool, floating: bool) -> list[list[str]]:
    """Return every list of parts that *pattern* stands for."""
    read: list[list[str]] = []
    for spelling in _expand(pattern):
        text = fold(spelling) if folded else spelling
        parts = _parts(text)
        if folded:
            parts = [trim_part(part) or part for part in parts]
        if folded and len(parts) > 1 and parts[-1] == "**":
            read.append(parts[:-1])
        read.append(parts)
    if floating:
        return [parts if parts[0] == "**" else ["**", *parts] for parts in read]
    return read


def _expand(pattern: str) -> list[str]:
    if not pattern:
        raise BadPattern("a pattern may not be empty")
    if len(pattern) > LONGEST_PATTERN:
        raise BadPattern(f"a pattern may have at most {LONGEST_PATTERN} characters")
    if pattern.startswith("!"):
        raise BadPattern("a pattern may not start with '!'; there are no exceptions to a list")
    texts, _ = _spell(pattern, 0, nested=False)
    return texts


def _spell(text: str, at: int, *, nested: bool) -> tuple[list[str], int]:
    """Return what *text* from *at* on can spell, and where reading stopped."""
    done: list[str] = []
    texts = [""]
    while at < len(text):
        char = text[at]
        if nested and char == "}":
            return done + texts, at + 1
        if nested and char == ",":
            done, texts, at = done + texts, [""], at + 1
            continue
        pieces, at = _piece(text, at)
        if len(done) + len(texts) * len(pieces) > _MOST_SPELLINGS:
            raise BadPattern(f"'{{…}}' stands for more than {_MOST_SPELLINGS} spellings")
        texts = [head + piece for head in texts for piece in pieces]
    if nested:
        raise BadPattern("'{' is never closed")
    return texts, at


def _piece(text: str, at: int) -> tuple[list[str], int]:
    match text[at]:
        case "{":
            return _spell(text, at + 1, nested=True)
        case "[":
            end = _set_end(text, at)
            return [text[at:end]], end
        case char:
            return [char], at + 1


def _set_end(text: str, start: int) -> int:
    # A `]` right after the opening is a member, as in every shell.
    at = start + 1 + (text[start + 1 : start + 2] in {"!", "^"})
    end = text.find("]", at + 1)
    if end < 0 or "/" in text[start:end]:
        raise BadPattern("'[' is never closed")
    return end + 1


def _parts(spelling: str) -> list[str]:
    text = spelling.replace("\\", "/")
    parts = [part for part in text.split("/") if part not in {"", "."}]
    if text.endswith("/"):
        parts.append("**")
    elif "/" not in text:
        parts.insert(0, "**")
    return parts or ["**"]


def _regex(parts: list[str]) -> str:
    """Return the expression for a whole path; each run between two `**` is placed for good."""
    runs = _split(parts, "**")
    head, *rest = ["/".join(_part_regex(part) for part in run) for run in runs]
    if not rest:
        return rf"{head}\Z"
    *middle, last = rest
    text = f"{head}/" if head else ""
    text += "".join(rf"(?>(?:[^/]+/)*?{run}/)" for run in middle if run)
    return text + (rf"(?:[^/]+/)*{last}\Z" if last else r".+\Z")


def _part_regex(part: str) -> str:
    first, *rest = [_fixed(piece) for piece in _split_stars(part)]
    if not rest:
        return first
    *middle, last = rest
    held = "".join(rf"(?>[^/]*?{piece})" for piece in middle if piece)
    return rf"(?=[^/]){first}{held}[^/]*{last}(?=/|\Z)"


def _split(items: Sequence[str], mark: str) -> list[list[str]]:
    runs: list[list[str]] = [[]]
    for item in items:
        if item == mark:
            runs.append([])
        else:
            runs[-1].append(item)
    return runs


def _split_stars(part: str) -> list[str]:
    pieces = [""]
    at = 0
    while at < len(part):
        if part[at] == "*":
            pieces.append("")
            at += 1
            continue
        end = _set_end(part, at) if part[at] == "[" else at + 1
        pieces[-1] += part[at:end]
        at = end
    return pieces


def _fixed(piece: str) -> str:
    text, at = "", 0
    while at < len(piece):
        if piece[at] == "[":
            end = _set_end(piece, at)
            text += _set_regex(piece[at + 1 : end - 1])
            at = end
        else:
            text += "[^/]" if piece[at] == "?" else re.escape(piece[at])
            at += 1
    return text


def _set_regex(body: str) -> str:
    sign = "^" if body[0] in "!^" else ""
    members = body[1:] if sign else body
    text, at = "", 0
    while at < len(members):
        low = members[at]
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            high = members[at + 2]
            if low > high:
                raise BadPattern(f"the range {low}-{high} runs backwards")
            text += f"{re.escape(low)}-{re.escape(high)}"
            at += 3
        else:
            text += re.escape(low)
            at += 1
    return rf"(?!/)[{sign}{text}]"
