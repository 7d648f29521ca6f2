"""One spelling for each path, so that two names of one file compare equal.

Works on text alone: it never asks a disk. What a link really points at is the client's to say.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

_ODD: Final = re.compile(r"\\|//|(?:^|/)\.{1,2}(?:/|\Z)|/\Z")
_STREAM: Final = re.compile(r":[^/]*|/\.\.namedfork(?:/.*)?\Z")
_SHORT_NAME: Final = re.compile(r"(?:^|/)[^/.~]{1,6}~[0-9]{1,6}(?:\.[^/.]{0,3})?(?=/|\Z)")
_IGNORABLE_RANGES: Final = (
    *((0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x034F, 0x034F), (0x061C, 0x061C)),
    *((0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F)),
    *((0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F)),
    *((0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3)),
    *((0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
_IGNORABLE: Final = re.compile(
    "[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in _IGNORABLE_RANGES) + "]"
)


def normalise(path: str) -> str:
    """Return *path* in NFC with `/`, without `.`, doubled or trailing slashes, `..` resolved."""
    text = path if path.isascii() else unicodedata.normalize("NFC", path)
    return _resolve(text) if _ODD.search(text) else text


def is_absolute(path: str) -> bool:
    """Say if the normalised *path* names its root."""
    return path.startswith("/") or (path[1:3] == ":/" and path[0].isalpha())


def relative(path: str, root: str) -> str | None:
    """Return the normalised *path* relative to the normalised *root*, None if it is outside."""
    if not is_absolute(path):
        if not path.startswith(".."):
            return path
        path = _resolve(f"{root}/{path}")
    if path == root:
        return ""
    prefix = root if root.endswith("/") else f"{root}/"
    return path.removeprefix(prefix) if path.startswith(prefix) else None


@lru_cache(maxsize=8192)  # the same files come back turn after turn; text in, texts out
def spellings(path: str, root: str) -> tuple[str, ...]:
    """Return the forms routing rules are compared with: relative to *root*, and as given."""
    given = normalise(path)
    inside = relative(given, normalise(root))
    as_given = given.lstrip("/")
    if inside is None or inside == as_given:
        return (as_given,)
    return (inside, as_given)


def fold(text: str) -> str:
    """Return *text* as the most forgiving file system reads it: no case, no invisible marks."""
    if text.isascii() and text.isprintable():
        return text.lower()
    visible = unicodedata.normalize("NFD", _IGNORABLE.sub("", text)).casefold()
    return unicodedata.normalize("NFC", _IGNORABLE.sub("", visible))


@lru_cache(maxsize=8192)  # as above
def fold_path(path: str) -> str:
    """Return *path* folded, its parts without trailing dots and spaces, then normalised."""
    text = fold(path)
    if "\\" in text:
        text = text.replace("\\", "/")
    if "./" in text or " /" in text or text.endswith((".", " ")):
        text = "/".join(trim_part(part) for part in text.split("/"))
    return _resolve(text) if _ODD.search(text) else text


def trim_part(part: str) -> str:
    """Return one part of a path without the trailing dots and spaces that Windows ignores."""
    bare = part.rstrip(" ")
    return bare if bare in {".", ".."} else bare.rstrip(". ")


def without_streams(path: str) -> str:
    """Return *path* without what names a stream or fork of the same file (NTFS, HFS+)."""
    return _STREAM.sub("", path)


def is_short_name(path: str) -> bool:
    """Say if a part looks like an 8.3 alias, which may stand for any longer name."""
    return "~" in path and _SHORT_NAME.search(path) is not None


def _resolve(path: str) -> str:
    text = path.replace("\\", "/")
    absolute = text.startswith("/")
    parts: list[str] = []
    for part in text.split("/"):
        if part in {"", "."}:
            continue
        if part != "..":
            parts.append(part)
        elif parts and parts[-1] != "..":
            parts.pop()
        elif not absolute:
            parts.append(part)
    return ("/" if absolute else "") + "/".join(parts)
