"""`router.toml` → a checked RouterConfig, or all findings at once."""

from pathlib import Path
from typing import Any, NamedTuple, cast

from smista.local.findings import Fault, Finding, InvalidConfig, Severity, choose
from smista.local.paths import Places
from smista.local.router_checks import check_router
from smista.local.router_config import RouterConfig
from smista.local.shapes import fit
from smista.local.toml_source import Source, read_source


class LoadedRouter(NamedTuple):
    """A configuration that may serve, and the warnings it was read with."""

    config: RouterConfig
    warnings: tuple[Finding, ...] = ()


def load_router_config(places: Places, path: Path | None = None) -> LoadedRouter:
    """Read *path*, or the global `router.toml`, which need not exist.

    The storage path of the result is absolute; a relative one counts from the file's folder.
    Raises InvalidConfig with all findings.
    """
    file = path or places.router_file
    source = read_source(file)
    if path is not None and not source.exists:
        raise InvalidConfig((Finding(file=str(file), place="", message="no such file"),))
    config, findings = parse_router(source)
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise InvalidConfig(findings)
    database = _database(config, file, places)
    storage = config.storage.model_copy(update={"path": database})
    return LoadedRouter(config.model_copy(update={"storage": storage}), findings)


def parse_router(source: Source) -> tuple[RouterConfig, tuple[Finding, ...]]:
    """Return the configuration that *source* describes and all that is wrong with it.

    What cannot be read stands with its default, so that the rest is checked too.
    """
    faults = [
        Fault((key,), "unknown table", _outside(key)) for key in source.data if key != "router"
    ]
    table: object = source.data.get("router", {})
    if not isinstance(table, dict):
        faults.append(Fault(("router",), "it should be a table", "write [router]"))
        table = {}
    data = cast("dict[str, Any]", table)
    faults += fit(RouterConfig, data, place=("router",))
    reported = {fault.place for fault in faults}
    config = RouterConfig.model_validate(data)
    faults += [fault for fault in check_router(config) if fault.place not in reported]
    return config, (*source.faults, *source.findings(faults))


def _outside(key: str) -> str:
    if key in RouterConfig.model_fields:
        return f"write [router.{key}]"
    return choose(key, ("router",))


def _database(config: RouterConfig, file: Path, places: Places) -> str:
    if config.storage.path is None:
        return str(places.database)
    return str(file.parent.absolute() / Path(config.storage.path).expanduser())
