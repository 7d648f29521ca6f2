"""`smista config`: create, find, read, edit and check the files of the user and the project."""

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import asyncclick as click
import trio

from cli.failures import BadUsage, CommandError
from cli.starters import ROUTER, policy_starter
from cli.surroundings import Surroundings
from cli.visible import echo, visible, visible_line
from smista.local.config_files import (
    Configuration,
    own_configuration,
    project_file,
    read_configuration,
)
from smista.local.config_layers import Layer, read_layer
from smista.local.findings import Finding, InvalidConfig, Severity
from smista.local.gitignore import keep_out_of_git
from smista.local.paths import private_directory, replacing, write_all, write_private
from smista.local.router_file import parse_router
from smista.local.toml_source import read_source
from smista.local.trust import is_trusted, remember

TARGETS: Final = ("project", "global", "router")
REDACTED: Final = "[redacted]"
_SECRET_KEYS: Final = frozenset({"api_key", "password", "secret", "token"})
_PATH = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The file behind each target; *other* (`--config`) replaces whichever is meant."""

    here: Surroundings
    other: Path | None

    def path(self, target: str) -> Path:
        if self.other is not None:
            return self.here.start / self.other
        places = self.here.places
        own = {"global": places.policy_file, "router": places.router_file}
        return own[target] if target in own else project_file(self.here.root)

    def existing(self, target: str) -> Path:
        path = self.path(target)
        if not path.exists():
            raise BadUsage(f"{path} does not exist; create it: smista config init {target}")
        return path

    def is_the_projects(self, target: str, path: Path) -> bool:
        own = project_file(self.here.root)
        return target == "project" and os.path.normpath(path) == os.path.normpath(own)


@click.group()
@click.option("--config", "other", type=_PATH, help="This file, in the place of the target's own.")
@click.pass_context
async def config(ctx: click.Context, other: Path | None) -> None:
    """Create, find, show, edit and check configuration files.

    TARGET is project (.smista/config.toml), global (your own config.toml) or router (router.toml).
    """
    ctx.obj = Files(here=cast("Surroundings", ctx.obj), other=other)


_target = click.argument("target", type=click.Choice(TARGETS), default="project")
_any_target = click.argument("target", type=click.Choice(TARGETS), required=False)


@config.command()
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@_target
@click.pass_obj
async def init(files: Files, force: bool, target: str) -> None:
    """Write a commented starter file for TARGET (default: project)."""
    path = files.path(target)
    if path.exists() and not force:
        raise BadUsage(f"{path} exists; to replace it: smista config init --force {target}")
    content = _starter(files.here, target).encode()
    if files.is_the_projects(target, path):
        keep_out_of_git(path.parent)
    _write(files, target, path, content)
    if files.is_the_projects(target, path):
        _trust(files.here, path)
    echo(str(path))


@config.command("path")
@_any_target
@click.pass_obj
async def show_path(files: Files, target: str | None) -> None:
    """Print where the file of TARGET is; without TARGET, all of them and whether they exist."""
    if target is not None:
        echo(str(files.path(target)))
        return
    for each in ("router", "global", "project"):
        path = files.path(each)
        echo(f"{each}: {path} ({'exists' if path.exists() else 'missing'})")


@config.command()
@_any_target
@click.pass_obj
async def show(files: Files, target: str | None) -> None:
    """Print the settings of one layer, or of all merged; secrets are redacted."""
    settings = _settings(files, target)
    import tomlkit

    echo(visible(tomlkit.dumps(_redacted(settings)).strip()))


@config.command()
@_target
@click.pass_obj
async def edit(files: Files, target: str) -> None:
    """Open the file of TARGET in VISUAL, EDITOR or the platform's opener, then check it."""
    path = files.existing(target)
    before = read_source(path).digest
    await _run_editor([*_editor(files.here), str(path)])
    if read_source(path).digest == before:
        return
    if files.is_the_projects(target, path):
        _trust(files.here, path)
    _report(_findings(files, target))


@config.command()
@_target
@click.pass_obj
async def check(files: Files, target: str) -> None:
    """Say all that is wrong with the file of TARGET, at once."""
    path = files.existing(target)
    _report(_findings(files, target))
    echo(f"ok: {visible_line(str(path))}")
    if files.is_the_projects(target, path) and _is_untrusted(files.here, path):
        note = (
            "warning: you have not trusted this file; until then it may only tighten: smista trust"
        )
        echo(note, err=True)


def _starter(here: Surroundings, target: str) -> str:
    if target == "router":
        return ROUTER
    return policy_starter(
        target, own_routes=target == "global" or not here.places.policy_file.exists()
    )


def _write(files: Files, target: str, path: Path, content: bytes) -> None:
    places = files.here.places
    if path in (places.policy_file, places.router_file):
        private_directory(path.parent)
        write_private(path, content)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A link in its place is replaced, not followed.
        with replacing(path) as handle:
            os.fchmod(handle, 0o666 & ~files.here.umask)
            write_all(handle, content)
    except OSError as error:
        raise CommandError(f"{path} was not written: {error.strerror}") from error


def _trust(here: Surroundings, path: Path) -> None:
    digest = read_source(path).digest
    if digest:
        remember(here.places, path, digest, trusted=True)


def _is_untrusted(here: Surroundings, path: Path) -> bool:
    read = read_configuration(here.root, here.places)
    digest = read.project.source.digest
    return bool(read.withheld and digest and not is_trusted(here.places, path, digest))


def _findings(files: Files, target: str) -> tuple[Finding, ...]:
    path = files.path(target)
    if target == "router":
        return parse_router(read_source(path))[1]
    return _configuration(files, target).findings


def _configuration(files: Files, target: str | None) -> Configuration:
    """Return what TARGET makes of the layers below it; a file that is asked about counts."""
    here = files.here
    if target == "global":
        return own_configuration(read_layer(files.path("global")))
    if target == "project":
        return read_configuration(
            here.root, here.places, project=files.path("project"), trusted=True
        )
    return read_configuration(here.root, here.places, project=files.other and files.path("project"))


def _report(findings: tuple[Finding, ...]) -> None:
    """Print warnings. Raises InvalidConfig with all findings if one is an error."""
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise InvalidConfig(findings)
    for finding in findings:
        echo(visible(str(finding)), err=True)


def _settings(files: Files, target: str | None) -> dict[str, Any]:
    if target is None:
        read = _configuration(files, None)
        merged, notices = read.checked()
        for notice in notices:
            echo(visible_line(notice), err=True)
        return merged.model_dump(mode="json", exclude_none=True)
    path = files.existing(target)
    if target == "router":
        source = read_source(path)
        router, findings = parse_router(source)
        _report(findings)
        settings = router.model_dump(mode="json", exclude_none=True)
        if router.storage.password is not None:
            settings["storage"]["password"] = REDACTED
        return {"router": settings}
    return _layer_settings(read_layer(path))


def _layer_settings(layer: Layer) -> dict[str, Any]:
    if layer.findings:
        raise InvalidConfig(layer.findings)
    return layer.data


def _redacted(value: Any, key: str = "") -> Any:
    if key in _SECRET_KEYS:
        return REDACTED
    if isinstance(value, dict):
        tables = cast("dict[str, Any]", value)
        return {name: _redacted(below, name) for name, below in tables.items()}
    if isinstance(value, list):
        return [_redacted(item) for item in cast("list[object]", value)]
    if isinstance(value, str) and "://" in value and "@" in value:
        scheme, _, rest = value.partition("://")
        return f"{scheme}://{REDACTED}@{rest.rpartition('@')[2]}"
    return value


def _editor(here: Surroundings) -> list[str]:
    for name in ("VISUAL", "EDITOR"):
        words = shlex.split(here.environ.get(name, ""))
        if words:
            return words
    return ["open"] if sys.platform == "darwin" else ["xdg-open"]


async def _run_editor(words: list[str]) -> None:
    try:
        done = await trio.run_process(words, stdin=None, check=False)
    except OSError as error:
        message = f"{words[0]} cannot be started: {error.strerror}; set EDITOR to an editor"
        raise CommandError(message) from error
    if done.returncode:
        raise CommandError(f"{words[0]} ended with exit code {done.returncode}")
