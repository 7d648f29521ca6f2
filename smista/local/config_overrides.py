"""What a command line may change about the configuration for one run: add, never weaken."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from smista.core.intents import Mode
from smista.core.policy import ToolsConfig
from smista.local.config_checks import TOOL_NAMES
from smista.local.config_files import ConfigFile
from smista.local.findings import Fault, InvalidConfig, choose
from smista.local.toml_source import Source

WHERE = "the command line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """The settings of one run; None and False leave what is configured."""

    remote_mode: Mode | None = None
    permissions: Mapping[str, Mode] = field(default_factory=dict[str, Mode])
    local_only: bool = False
    no_network: bool = False


def override(config: ConfigFile, said: Override) -> ConfigFile:
    """Return *config* with *said* on top. Raises InvalidConfig with all that would weaken it."""
    faults = list(_faults(config, said))
    if faults:
        raise InvalidConfig(tuple(Source(WHERE).findings(faults)))
    permissions = {**config.tools.permissions, **said.permissions}
    remote = config.privacy.remote
    if said.remote_mode is not None:
        remote = remote.model_copy(update={"mode": said.remote_mode})
    mine = config.local_preferences
    switches = {
        "local_only": mine.local_only or said.local_only,
        "no_network": mine.no_network or said.no_network,
    }
    return config.model_copy(
        update={
            "tools": ToolsConfig(permissions=permissions),
            "privacy": config.privacy.model_copy(update={"remote": remote}),
            "local_preferences": mine.model_copy(update=switches),
        }
    )


def _faults(config: ConfigFile, said: Override) -> Iterator[Fault]:
    floor = config.privacy.remote.mode
    if said.remote_mode is not None and said.remote_mode.strictness < floor.strictness:
        message = f"unsafe override: {said.remote_mode} is looser than the configured {floor}"
        yield Fault(("privacy", "remote", "mode"), message, "keep the stricter mode")
    for tool, mode in said.permissions.items():
        place = ("tools", "permissions", tool)
        if tool not in TOOL_NAMES:
            yield Fault(place, "there is no such tool", choose(tool, TOOL_NAMES))
            continue
        configured = config.tools.permissions.get(tool)
        # What is not set is asked about; so allowing it is looser too.
        least = configured or Mode.ASK
        if mode.strictness < least.strictness:
            message = f"permission widening: {mode} is looser than the configured {least}"
            yield Fault(place, message, "tighten only")
