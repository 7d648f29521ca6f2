"""Where a text holds keys: the shapes that makers document, and secrets by the name before them.

Every pattern starts with its literal and looks back only by a fixed width, and no run of
characters is begun twice, so that a text is read in linear time whatever stands in it.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

LOOSE: Final = (
    r"(?<![A-Za-z0-9])(?:sk|pk|rk|xai|gsk|hf|npm|pat|glpat|gh[pousr]|github_pat|xox[a-z])[-_]"
    r"[A-Za-z0-9_-]{8,}"
    r"|(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{16,}"
    r"|(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z2-7]{12,}"
    r"|(?<![0-9a-f])[0-9a-f]{32}-[a-z0-9]{64}"
    r"|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)?"
)
"""A pattern of all that may be a key or a piece of one, for short texts such as error messages:
there a word too many does no harm, and a key that was cut off still does."""

_WORD: Final = "A-Za-z0-9_-"
_ALNUM: Final = "A-Za-z0-9"

# kind, literal heads, what follows; a name in the tail stands for its set of characters.
_TOKENS: Final = (
    ("smista key", ("sk-smista-api",), r"[0-9]{2}-[0-9a-f]{32}-[A-Za-z0-9]{96}"),
    ("anthropic key", ("sk-ant-",), rf"[{_WORD}]{{20,}}"),
    ("openai key", ("sk-proj-", "sk-svcacct-", "sk-admin-"), rf"[{_WORD}]{{20,}}"),
    ("openrouter key", ("sk-or-v1-",), r"[0-9a-f]{32,}"),
    ("api key", ("sk-",), r"(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{20,}"),
    ("aws access key", ("AKIA", "ASIA"), r"[A-Z2-7]{16}(?![A-Za-z0-9])"),
    ("github token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{36,}"),
    ("github token", ("github_pat_",), r"[A-Za-z0-9_]{22,}"),
    ("gitlab token", ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-"), rf"[.{_WORD}]{{20,}}"),
    (
        "slack token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-"),
        r"(?=[A-Za-z-]{0,20}[0-9])[A-Za-z0-9-]{12,}",
    ),
    (
        "slack webhook",
        ("hooks.slack.com/services/",),
        r"T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{16,}",
    ),
    ("stripe key", ("sk_live_", "rk_live_", "sk_test_", "rk_test_"), r"[A-Za-z0-9]{16,}"),
    ("stripe key", ("whsec_",), r"[A-Za-z0-9+/]{32,}={0,2}"),
    ("google key", ("AIza",), rf"[{_WORD}]{{35}}"),
    ("google secret", ("GOCSPX-",), rf"[{_WORD}]{{28}}"),
    ("google token", ("ya29.",), rf"[{_WORD}]{{30,}}"),
    ("hugging face token", ("hf_",), r"[A-Za-z0-9]{30,}"),
    ("npm token", ("npm_",), r"[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    ("pypi token", ("pypi-AgE",), rf"[{_WORD}]{{40,}}"),
    ("twilio key", ("SK",), r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("sendgrid key", ("SG.",), rf"[{_WORD}]{{16,64}}\.[{_WORD}]{{16,64}}"),
    ("xai key", ("xai-",), r"[A-Za-z0-9]{40,}"),
    ("groq key", ("gsk_",), r"[A-Za-z0-9]{40,}"),
    ("digitalocean token", ("dop_v1_", "doo_v1_"), r"[0-9a-f]{64}"),
    ("shopify token", ("shpat_", "shpss_", "shpca_"), r"[0-9a-fA-F]{32}"),
    ("age key", ("AGE-SECRET-KEY-1",), r"[0-9A-Z]{58}"),
    ("json web token", ("eyJ",), rf"[{_WORD}]{{8,}}\.eyJ[{_WORD}]{{8,}}\.[{_WORD}]{{16,}}"),
)
_PEM: Final = (
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:[^-]|-(?!----)){0,16384}-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    # A block that was cut off: as far as its lines look like base64.
    r"|(?:(?:\\r|\\n|\s){1,4}[A-Za-z0-9+/=]{40,80}){1,400})"
)
_OWN_TOKEN: Final = (
    r"-[a-z0-9]{64}(?![A-Za-z0-9])(?<=(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))[0-9a-f]{32}-.{64})"
)
_IN_ADDRESS: Final = r"://[^\s/:@\"'<>\\]{0,100}:([^\s/@\"'<>\\]{3,200})@"
_AUTHORIZATION: Final = (
    r"(?:[Aa]uthorization|AUTHORIZATION)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?"
    r"(?:[A-Za-z]{3,12}[ ])?([A-Za-z0-9._~+/-]{12,4096}={0,2})"
)
_BEARER: Final = r"(?:earer|EARER)[ ]([A-Za-z0-9._~+/-]{16,4096}={0,2})"
_NAMES: Final = (
    ("ey", "[Kk]"),
    ("KEY", ""),
    ("ecret", "[Ss]"),
    ("SECRET", ""),
    ("oken", "[Tt]"),
    ("TOKEN", ""),
    ("assword", "[Pp]"),
    ("asswd", "[Pp]"),
    ("assphrase", "[Pp]"),
    ("PASSW", ""),
    ("PASSPHRASE", ""),
)
_ASSIGNED: Final = (
    r"(?:ORD|D)?\\?[\"']?[ \t]{0,4}(?::=|=>|[:=])[ \t]{0,4}\\?"
    r"(?:\"([^\"\s\\]{12,256})|'([^'\s\\]{12,256})|([A-Za-z0-9+/_.~!@#%^*?-]{12,256}={0,2}))"
)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]*\Z")
_NAME_LENGTH: Final = 40
_KEY_OF: Final = (
    *("api", "access", "secret", "private", "auth", "encryption", "signing", "master"),
    *("service", "account", "client", "license", "shared", "app", "application", "webhook"),
)
_NOT_SECRET: Final = ("public", "cache", "primary", "foreign", "sort", "partition", "index")
_PLACEHOLDERS: Final = ("$", "{", "<", "[", "%(", "%s", "***", "xxx", "XXX", "...")
_ENTROPY: Final = 3.0
_CHANGES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A key in a text: its *kind* in words, and where it stands."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Shape:
    kind: str
    stem: str
    head: str
    tail: str

    def pattern(self) -> re.Pattern[str]:
        """Return the pattern; made when its head is first met, as most never are."""
        literal = re.escape(self.head)
        # After the head, so that the engine can skip to it; an escape in JSON is a border too.
        border = rf"(?:(?<![{_WORD}]{literal})|(?<=\\[nrt]{literal}))"
        return _compiled(literal + border + self.tail)


def find_keys(text: str) -> tuple[Found, ...]:
    """Return the keys in *text*, in order of place, none over another."""
    kept: list[Found] = []
    for found in sorted(_all_found(text), key=_place):
        last = kept[-1] if kept else None
        if last is None or found.start >= last.end:
            kept.append(found)
        elif found.end > last.end:
            kept[-1] = Found(kind=last.kind, start=last.start, end=found.end)
    return tuple(kept)


def mask_keys(text: str) -> tuple[str, tuple[str, ...]]:
    """Return *text* with a note in place of each key, and the kinds masked, sorted."""
    found = find_keys(text)
    if not found:
        return text, ()
    parts: list[str] = []
    end = 0
    for key in found:
        parts += (text[end : key.start], note(key.kind))
        end = key.end
    parts.append(text[end:])
    return "".join(parts), tuple(sorted({key.kind for key in found}))


def note(kind: str) -> str:
    """Return what stands in place of a key of *kind*."""
    return f"[masked: {kind}]"


def _place(found: Found) -> int:
    return found.start


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_STEMS: Final = ("", "sk-", "xox", "k_live_", "k_test_", "_v1_")


def _stem(head: str) -> str:
    return next((stem for stem in _STEMS[1:] if stem in head), "")


_SHAPES: Final = tuple(
    _Shape(kind, _stem(head), head, tail) for kind, heads, tail in _TOKENS for head in heads
)


def _all_found(text: str) -> Iterator[Found]:
    stems = {stem for stem in _STEMS if stem in text}
    for shape in _SHAPES:
        if shape.stem in stems and shape.head in text:
            for match in shape.pattern().finditer(text):
                yield Found(kind=shape.kind, start=match.start(), end=match.end())
    if "PRIVATE KEY" in text:
        yield from _spans("private key", _PEM, text)
    for match in _compiled(_OWN_TOKEN).finditer(text):
        yield Found(kind="smista token", start=match.start() - 32, end=match.end())
    if "://" in text and "@" in text:
        yield from _real(_spans("password in an address", _IN_ADDRESS, text), text)
    if "uthorization" in text or "AUTHORIZATION" in text:
        yield from _real(_spans("authorization header", _AUTHORIZATION, text), text)
    if "earer " in text or "EARER " in text:
        yield from _random_ones(_spans("bearer token", _BEARER, text), text)
    yield from _assigned(text)


def _spans(kind: str, pattern: str, text: str) -> Iterator[Found]:
    for match in _compiled(pattern).finditer(text):
        start, end = match.span(match.lastindex or 0)
        yield Found(kind=kind, start=start, end=end)


def _real(spans: Iterable[Found], text: str) -> Iterator[Found]:
    return (span for span in spans if not text.startswith(_PLACEHOLDERS, span.start))


def _random_ones(spans: Iterable[Found], text: str) -> Iterator[Found]:
    return (span for span in spans if _looks_random(text[span.start : span.end]))


def _assigned(text: str) -> Iterator[Found]:
    for name, first in _NAMES:
        if name in text:
            yield from _assigned_to(name, first, text)


def _assigned_to(name: str, first: str, text: str) -> Iterator[Found]:
    border = f"(?<={first}{name})" if first else ""
    for match in _compiled(name + border + _ASSIGNED).finditer(text):
        start, end = match.span(match.lastindex or 0)
        kind = _kind_of(text, match.start() - bool(first))
        if kind is not None and _is_secret(kind, text[start:end]):
            yield Found(kind=kind, start=start, end=end)


def _kind_of(text: str, start: int) -> str | None:
    """Return the kind of secret that the name before an assignment tells of, if it does."""
    before = _NAME.search(text, max(0, start - _NAME_LENGTH), start)
    prefix = before.group() if before else ""
    bare = prefix.lower().replace("_", "").replace("-", "")
    if bare.endswith(_NOT_SECRET):
        return None
    match text[start : start + 3].lower():
        case "key" if bare.endswith("secretaccess"):
            return "aws secret key"
        case "key":
            known = text.startswith("KEY", start) or bare.endswith(_KEY_OF)
            return "key" if known else None
        case "sec":
            return "secret"
        case "tok":
            return "token"
        case _:
            return "password"


def _is_secret(kind: str, value: str) -> bool:
    if kind == "aws secret key" and len(value) == 40:
        return True
    return not value.startswith(_PLACEHOLDERS) and _looks_random(value)


def _looks_random(value: str) -> bool:
    """Tell a drawn value from a name: letters and digits in turns, few of them repeated."""
    kinds = [char.isdigit() for char in value if char.isalnum()]
    changes = sum(a != b for a, b in itertools.pairwise(kinds))
    return changes >= _CHANGES and _bits(value) >= _ENTROPY


def _bits(value: str) -> float:
    """Return the entropy of the characters of *value*, in bits for each."""
    shares = (count / len(value) for count in Counter(value).values())
    return -sum(share * math.log2(share) for share in shares)
