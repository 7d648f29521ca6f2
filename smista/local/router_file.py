"""`router.toml` → a checked RouterConfig, or all findings at once."""

import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic import ValidationError

from smista.local.findings import Finding, InvalidConfig, Severity, shape_findings
from smista.local.paths import Places
from smista.local.router_checks import check_router
from smista.local.router_config import RouterConfig


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
    config, findings = parse_router(_read(file, required=path is not None), file=str(file))
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise InvalidConfig(findings)
    database = _database(config, file, places)
    storage = config.storage.model_copy(update={"path": database})
    return LoadedRouter(config.model_copy(update={"storage": storage}), findings)


def parse_router(data: dict[str, Any], *, file: str) -> tuple[RouterConfig, tuple[Finding, ...]]:
    """Return the configuration that *data* describes and all that is wrong with it.

    What cannot be read stands with its default, so that the rest is checked too.
    """
    findings = [
        Finding(file=file, place=key, message="unknown table", remedy="use [router]")
        for key in data
        if key != "router"
    ]
    table = data.get("router", {})
    if not isinstance(table, dict):
        findings.append(Finding(file=file, place="router", message="should be a table"))
        table = {}
    config = _read_what_can_be(cast("dict[str, Any]", table), file, findings)
    findings += check_router(config, file)
    return config, tuple(findings)


def _read_what_can_be(table: dict[str, Any], file: str, findings: list[Finding]) -> RouterConfig:
    good = deepcopy(table)
    while True:
        try:
            return RouterConfig.model_validate(good)
        except ValidationError as error:
            findings += shape_findings(error, file=file, place="router")
            # Each round takes something out, so this ends.
            for fault in error.errors(include_input=False, include_url=False):
                _take_out(good, fault["loc"], missing=fault["type"] == "missing")


def _take_out(table: dict[str, Any], location: tuple[int | str, ...], *, missing: bool) -> None:
    """Remove the key at *location*; a list with a bad item, or a table lacking one, goes whole."""
    keys = [str(step) for step in location]
    if missing:
        keys.pop()
    here: Any = table
    for depth, key in enumerate(keys):
        below = here.get(key)
        if depth == len(keys) - 1 or not isinstance(below, dict):
            here.pop(key, None)
            return
        here = cast("dict[str, Any]", below)


def _read(file: Path, *, required: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        if not required:
            return {}
        raise InvalidConfig((Finding(file=str(file), place="", message="no such file"),)) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidConfig((Finding(file=str(file), place="", message=str(error)),)) from error


def _database(config: RouterConfig, file: Path, places: Places) -> str:
    if config.storage.path is None:
        return str(places.database)
    return str(file.parent.absolute() / Path(config.storage.path).expanduser())
