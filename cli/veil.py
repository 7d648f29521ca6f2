"""What a program that a model started sees of our environment: no keys, unless the user said so."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_ENDINGS: Final = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_NEVER: Final = frozenset({"SMISTA_API_KEY"})
"""Our own keys, whatever the configuration says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Veil:
    """*names* are hidden as well as what ends like a key; *shown* are not, for the user said so."""

    names: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()

    def hides(self, name: str) -> bool:
        if name in _NEVER:
            return True
        return name not in self.shown and (name in self.names or name.upper().endswith(_ENDINGS))

    def over(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return *environ* without what is hidden."""
        return {name: value for name, value in environ.items() if not self.hides(name)}

    def without(self, names: frozenset[str]) -> "Veil":
        """Return this with *names* hidden too, whatever else is said of them."""
        return Veil(names=self.names | names, shown=self.shown - names)


PLAIN: Final = Veil()
