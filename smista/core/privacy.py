"""Which paths may not reach a remote model, and the line of the policy that says so.

Fails closed: look-alikes count, a pattern that cannot be read restricts every path, and a
shortened Windows name counts as soon as anything is restricted.
"""

from dataclasses import dataclass
from typing import Final

from smista.core.globs import Globs, compile_globs
from smista.core.paths import (
    fold_path,
    is_absolute,
    is_short_name,
    relative,
    without_streams,
)
from smista.core.policy import Policy

RESTRICTED: Final = "privacy.restricted_paths"
BLOCKED: Final = "privacy.remote.blocked_paths"


@dataclass(frozen=True, slots=True)
class Guard:
    """The privacy lists of one policy, compiled for one workspace root."""

    patterns: tuple[str, ...]
    origins: tuple[str, ...]
    inside: Globs
    outside: Globs
    root: str
    anchored: bool

    @property
    def active(self) -> bool:
        """Say if the policy restricts anything at all."""
        return bool(self.patterns)

    def restricts(self, path: str) -> str | None:
        """Return why *path* is restricted for remote models, None if it is free."""
        if not self.patterns:
            return None
        if self.inside.bad:
            broken = self.inside.bad[0]
            return f"{self._named(broken)} cannot be read, so every path is restricted"
        folded = fold_path(path)
        number = self._hit(folded)
        if number is not None:
            return f"{path} matches {self._named(number)}"
        if is_short_name(folded):
            return f"{path} may be the short name of a restricted file"
        return None

    def mentions(self, word: str) -> str | None:
        """Return why *word* of a command line may name a restricted path, None if it does not.

        Nobody knows where a command stands when it reads the word, so every depth is tried.
        """
        if self.inside.bad or "/" in word or "." in word:
            reason = self.restricts(word)
            if reason is not None:
                return reason
        folded = fold_path(word).lstrip("/")
        number = min(self.inside.hits(folded) or self.outside.hits(folded), default=None)
        return None if number is None else f"{word} matches {self._named(number)}"

    def _hit(self, folded: str) -> int | None:
        hits = self._hits(folded)
        if not hits and (":" in folded or "..namedfork" in folded):
            hits = self._hits(without_streams(folded))
        return min(hits, default=None)

    def _hits(self, folded: str) -> tuple[int, ...]:
        inside = None if folded.startswith("~") else relative(folded, self.root)
        as_given = folded.lstrip("/")
        if inside is None:
            return self.outside.hits(as_given)
        hits = self.inside.hits(inside)
        if self.anchored and not hits:
            # Somebody may have written the whole way into the pattern, from the disk's root on.
            whole = as_given if is_absolute(folded) else f"{self.root}/{inside}".lstrip("/")
            return self.inside.hits(whole)
        return hits

    def _named(self, number: int) -> str:
        return f"{self.patterns[number]!r} of {self.origins[number]}"


def guard(policy: Policy, root: str) -> Guard:
    """Return the union of the policy's privacy lists and of its `local_only` rules' paths."""
    privacy = policy.privacy
    entries = [(pattern, RESTRICTED) for pattern in privacy.restricted_paths]
    entries += [(pattern, BLOCKED) for pattern in privacy.remote.blocked_paths]
    for rule in policy.routing.rules:
        if rule.local_only:
            entries += [(pattern, f"the local_only rule {rule.name!r}") for pattern in rule.paths]
    patterns = tuple(pattern for pattern, _ in entries)
    return Guard(
        patterns=patterns,
        origins=tuple(origin for _, origin in entries),
        inside=compile_globs(patterns, folded=True),
        outside=compile_globs(patterns, folded=True, floating=True),
        root=fold_path(root),
        anchored=any(pattern.startswith(("/", "\\")) for pattern in patterns),
    )
