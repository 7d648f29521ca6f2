"""The user's policy: built-in defaults, the global file, the project file → one ClientConfig.

A project file counts in full once the user trusts it; until then it may only make the policy
stricter (`core.tighten`).
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from smista.core.request import LocalPreferences
from smista.core.tighten import tighten, tighten_preferences
from smista.local.config_checks import check_config, check_project
from smista.local.config_layers import Layer, Origins, layer_of, read_layer
from smista.local.config_merge import combine as combine
from smista.local.config_merge import table
from smista.local.config_model import ConfigFile as ConfigFile
from smista.local.config_model import Preferences as Preferences
from smista.local.config_model import ProviderEntry as ProviderEntry
from smista.local.config_model import RouterConnection as RouterConnection
from smista.local.findings import Finding, InvalidConfig
from smista.local.paths import Places
from smista.local.toml_source import Source
from smista.local.trust import is_trusted

Word = Callable[[str], bool | None]
"""The user's word on a project file with this digest: trusted, not trusted, not asked."""


class ClientConfig(NamedTuple):
    """The merged configuration, and what its reader should be told before it is used."""

    merged: ConfigFile
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Both files and what comes of them.

    *trusted* is the user's word on the project file, None if nobody has asked. *withheld* names
    what the project file says beyond tightening, one line each; it counts only under trust.
    """

    own: Layer
    project: Layer
    file: Path
    trusted: bool | None
    merged: ConfigFile
    origins: Origins
    findings: tuple[Finding, ...]
    withheld: tuple[str, ...]

    @property
    def open_question(self) -> bool:
        """Say if the user should be asked about the project file."""
        return self.trusted is None and bool(self.withheld) and not self.findings

    def checked(self) -> ClientConfig:
        """Return what counts. Raises InvalidConfig with all findings."""
        if self.findings:
            raise InvalidConfig(self.findings)
        if self.trusted or not self.withheld:
            return ClientConfig(self.merged)
        settings = "1 setting" if len(self.withheld) == 1 else f"{len(self.withheld)} settings"
        notice = (
            f"warning: {self.file} is not trusted; {settings} of it that would loosen or redirect "
            "are ignored. See them and decide: smista trust"
        )
        return ClientConfig(self.merged, (notice,))


def load_client_config(root: Path, places: Places) -> ClientConfig:
    """Merge built-in, global and project configuration. Raises InvalidConfig with all findings."""
    return read_configuration(root, places).checked()


def read_configuration(
    root: Path, places: Places, *, project: Path | None = None, trusted: bool | None = None
) -> Configuration:
    """Read and merge all layers; what is wrong with them is in the result.

    *project* is another file in the place of the project's own. *trusted* goes over the user's
    word on it.
    """
    file = project or project_file(root)
    return configuration(
        read_layer(places.policy_file),
        read_layer(file),
        file=file,
        word=partial(_word, places, file) if trusted is None else lambda _digest: trusted,
    )


def _word(places: Places, file: Path, digest: str) -> bool | None:
    return is_trusted(places, file, digest)


def project_file(root: Path) -> Path:
    return root / ".smista" / "config.toml"


def configuration(own: Layer, project: Layer, *, file: Path, word: Word) -> Configuration:
    """Merge two layers. *word* tells of the project file's digest if it is trusted."""
    digest = project.source.digest
    trusted = word(digest) if digest else None
    base = combine(own.data)
    whole = combine(own.data, project.data)
    safe = full = tightened = ConfigFile.model_validate(base)
    if project.data:
        full = ConfigFile.model_validate(whole)
        tightened = _tightened(safe, ConfigFile.model_validate(project.data))
    merged = full if trusted else tightened
    origins = _origins(own, project, whole if trusted else base, both=bool(trusted))
    findings = [*own.findings, *project.findings]
    findings += project.source.findings(check_project(project.data))
    reported = {(finding.file, finding.place) for finding in findings}
    findings += [
        finding
        for finding in origins.findings(check_config(merged))
        if (finding.file, finding.place) not in reported
    ]
    return Configuration(
        own=own,
        project=project,
        file=file,
        trusted=trusted,
        merged=merged,
        origins=origins,
        findings=tuple(dict.fromkeys(findings)),
        withheld=tuple(_differences(tightened, full)) if project.data else (),
    )


def own_configuration(own: Layer) -> Configuration:
    """Return what the global file alone makes of the built-in configuration."""
    nothing = layer_of(Source(own.file))
    return configuration(own, nothing, file=Path(own.file), word=lambda _digest: None)


def _origins(own: Layer, project: Layer, merged: dict[str, Any], *, both: bool) -> Origins:
    rules = tuple(cast("list[dict[str, Any]]", table(merged, "routing").get("rules", [])))
    if both:
        return Origins(layers=(own, project), rules=rules)
    return Origins(layers=(own,), rules=rules, patterns_only=(project,))


def _tightened(own: ConfigFile, said: ConfigFile) -> ConfigFile:
    policy = tighten(own.policy(), said.policy())
    mine, theirs = own.local_preferences, said.local_preferences
    switches = tighten_preferences(mine.travelling(), _as_said(theirs))
    kept = {
        **switches.model_dump(),
        "encrypt_sessions": mine.encrypt_sessions
        or ("encrypt_sessions" in theirs.model_fields_set and theirs.encrypt_sessions),
    }
    return own.model_copy(
        update={
            "routing": policy.routing,
            "tools": policy.tools,
            "privacy": policy.privacy,
            "local_preferences": mine.model_copy(update=kept),
        }
    )


def _as_said(theirs: Preferences) -> LocalPreferences:
    """Return the switches with only those marked as set that the file sets."""
    travelling = theirs.travelling()
    said = theirs.model_fields_set & set(LocalPreferences.model_fields)
    return LocalPreferences.model_construct(said, **travelling.model_dump())


def _differences(now: ConfigFile, trusted: ConfigFile) -> Iterator[str]:
    """Yield what trust would change, one line for each setting, with what holds now."""
    before, after = flat(now), flat(trusted)
    for place in sorted({*before, *after}, key=lambda place: (place not in after, place)):
        new, old = after.get(place), before.get(place)
        if new == old:
            continue
        if new is None:
            yield f"{place} back to its default  (now {old})"
        else:
            yield f"{place} = {new}" + ("" if old is None else f"  (now {old})")


def flat(config: ConfigFile) -> dict[str, str]:
    """Return every setting of *config* by its place; rules stand under their names."""
    settings: dict[str, str] = {}
    data = config.model_dump(mode="json", exclude_defaults=True)
    rules: list[dict[str, Any]] = data.get("routing", {}).pop("rules", [])
    _flatten(data, "", settings)
    for rule in rules:
        _flatten(rule, f"routing.rules {rule['name']!r}", settings)
    if rules:
        settings["routing.rules, in order"] = ", ".join(repr(rule["name"]) for rule in rules)
    return settings


def _flatten(value: Mapping[str, Any], place: str, settings: dict[str, str]) -> None:
    for key, below in value.items():
        spot = f"{place}.{key}" if place else key
        if isinstance(below, dict) and below:
            _flatten(cast("dict[str, Any]", below), spot, settings)
        else:
            settings[spot] = json.dumps(below, ensure_ascii=False)
