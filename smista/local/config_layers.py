"""The files that make up a configuration, and from which line of which file each part came."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from smista.local.config_merge import table
from smista.local.config_model import ConfigFile
from smista.local.findings import Fault, Finding, Place
from smista.local.shapes import fit
from smista.local.toml_source import Source, read_source

_STAND_INS = {"name": "a rule without a name", "model": "ollama/no-model", "intent": "chat"}
_PATTERNS = (("privacy", "restricted_paths"), ("privacy", "remote", "blocked_paths"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One `config.toml`: *data* is what of it can be read, *findings* what cannot.

    *numbers* maps each readable rule, by identity, to its place in the file.
    """

    source: Source
    data: dict[str, Any]
    findings: tuple[Finding, ...]
    numbers: dict[int, int]

    @property
    def file(self) -> str:
        return self.source.file

    def place_of_pattern(self, path: tuple[str, ...], pattern: str) -> Place | None:
        *tables, key = path
        patterns: list[str] = table(self.data, *tables).get(key, [])
        return (*path, patterns.index(pattern)) if pattern in patterns else None

    def holds(self, place: Place) -> bool:
        here: Any = self.data
        for step in place:
            try:
                here = here[step]
            except (KeyError, IndexError, TypeError):
                return False
        return True


def read_layer(file: Path) -> Layer:
    """Read *file*, which need not exist."""
    return layer_of(read_source(file))


def layer_of(source: Source) -> Layer:
    """Return what can be read of *source*; its tables are the layer's from now on."""
    data = source.data
    rules: object = table(data, "routing").get("rules")
    # Counted before the misfits leave their gaps.
    listed = cast("list[object]", rules) if isinstance(rules, list) else []
    numbers = {id(rule): number for number, rule in enumerate(listed)}
    faults = fit(ConfigFile, data, stand_ins=_STAND_INS)
    findings = (*source.faults, *source.findings(faults))
    return Layer(source=source, data=data, findings=findings, numbers=numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """Where the parts of a merged configuration stand; *layers* lowest first.

    *rules* are the merged rules as tables. *patterns_only* are layers that gave privacy patterns
    and nothing else that can be at fault.
    """

    layers: tuple[Layer, ...]
    rules: tuple[dict[str, Any], ...]
    patterns_only: tuple[Layer, ...] = ()

    def findings(self, faults: Iterable[Fault]) -> list[Finding]:
        """Return *faults* of the merged configuration as findings in the files behind it."""
        return [self._finding(fault) for fault in faults]

    def of(self, place: Place, pattern: str | None = None) -> tuple[Layer, Place]:
        """Return the layer that says what stands at *place* once merged, and the place there."""
        match place:
            case ("routing", "rules", int() as number, *rest):
                return self._rule(number, tuple(rest))
            case _ if place[:-1] in _PATTERNS and pattern is not None:
                return self._pattern(place, pattern)
            case _:
                return self._value(place)

    def _finding(self, fault: Fault) -> Finding:
        layer, place = self.of(fault.place, fault.subject)
        return layer.source.finding(fault._replace(place=place))

    def _rule(self, number: int, rest: Place) -> tuple[Layer, Place]:
        rule = self.rules[number]
        for layer in self.layers:
            if id(rule) in layer.numbers:
                return layer, ("routing", "rules", layer.numbers[id(rule)], *rest)
        return self._value(("routing", "rules"))

    def _pattern(self, place: Place, pattern: str) -> tuple[Layer, Place]:
        path = tuple(str(step) for step in place[:-1])
        for layer in (*self.layers, *self.patterns_only):
            found = layer.place_of_pattern(path, pattern)
            if found is not None:
                return layer, found
        return self._value(place)

    def _value(self, place: Place) -> tuple[Layer, Place]:
        for length in range(len(place), 0, -1):
            for layer in reversed(self.layers):
                if layer.holds(place[:length]):
                    return layer, place
        there = [layer for layer in self.layers if layer.source.exists]
        return (there or list(self.layers))[-1], place
