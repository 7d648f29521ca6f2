"""`smista keys`: the keys of encrypted sessions, and how they get to another machine."""

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Final, TextIO, cast
from uuid import UUID

import asyncclick as click
import trio
from pydantic import SecretStr

from cli.approvals import open_terminal
from cli.failures import DONE, FAILED, REFUSED, BadUsage, CommandError
from cli.key_lines import Travelling, read_keys, written
from cli.storing import given_key
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from smista.core.session_key import is_key_id
from smista.local.paths import write_all
from smista.local.session_keys import HeldKey, SessionKeys

_MOST: Final = 1024 * 1024


@click.group()
async def keys() -> None:
    """List, check, export and import the keys of encrypted sessions.

    A session's key is a file of this machine alone; the router never has it. Without its key
    nobody can read a session, you neither.
    """


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
async def show(here: Surroundings, as_json: bool) -> None:
    """List the keys that are here and the sessions they open."""
    held, lost = await trio.to_thread.run_sync(_look, SessionKeys(here.places))
    for each in held:
        echo(_json(each) if as_json else _line(each))
    for session, key_id in sorted(lost.items()):
        missing = {"key_id": key_id, "sessions": [session], "state": "missing"}
        echo(json.dumps(missing) if as_json else f"{key_id}  missing  {session}")
    if not held and not lost:
        echo("there are no keys of encrypted sessions yet", err=True)


@keys.command()
@click.argument("names", nargs=-1, metavar="[KEY_OR_SESSION]...")
@click.pass_obj
async def verify(here: Surroundings, names: tuple[str, ...]) -> int:
    """Check that each key file holds the key it is named after, and that none is missing."""
    kept = SessionKeys(here.places)
    held, lost = await trio.to_thread.run_sync(_look, kept)
    wanted = [await _key_id(kept, name) for name in names]
    bad = {each.key_id: "damaged" for each in held if each.damaged}
    bad |= dict.fromkeys(lost.values(), "missing")
    bad |= {name: "missing" for name in wanted if name not in {each.key_id for each in held}}
    checked = sorted(set(wanted) or {each.key_id for each in held} | bad.keys())
    for key_id in checked:
        echo(f"{key_id}  {bad.get(key_id, 'sound')}")
    return FAILED if any(key_id in bad for key_id in checked) else DONE


@keys.command()
@click.argument("names", nargs=-1, metavar="[KEY_OR_SESSION]...")
@click.option("--all", "everything", is_flag=True, help="Export all keys that are here.")
@click.option(
    "--to",
    "file",
    type=click.Path(path_type=Path),
    help="Write to this file, which only you can read, instead of stdout.",
)
@click.pass_obj
async def export(
    here: Surroundings, names: tuple[str, ...], everything: bool, file: Path | None
) -> int:
    """Write keys out, to take them to another machine or into a backup.

    KEY_OR_SESSION is the id of a key or of a session. Whoever has what this writes can read the
    sessions: keep it as you keep a password, and delete it once it was imported.
    """
    if everything == bool(names):
        raise BadUsage("name the keys or sessions to export, or say --all")
    text = await _exported(SessionKeys(here.places), names)
    if file is not None:
        await trio.to_thread.run_sync(_write_new, file, text)
        echo(f"written to {visible_line(str(file))}; delete it once it was imported", err=True)
        return DONE
    if not await _may_show():
        echo("nothing was written; to a file: smista keys export --to FILE", err=True)
        return REFUSED
    echo(text.get_secret_value(), nl=False)
    return DONE


@keys.command("import")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.pass_obj
async def take_in(here: Surroundings, file: Path | None) -> None:
    """Take in keys that `smista keys export` wrote: from FILE, a pipe, or typed unseen.

    Each key is checked against its fingerprint first; if one is wrong, none is taken.
    """
    kept = SessionKeys(here.places)
    given = read_keys(await _given(file))
    for each in given:
        await trio.to_thread.run_sync(_check_sessions, kept, each)
    for each in given:
        path = await trio.to_thread.run_sync(_take, kept, each)
        echo(f"{each.key.key_id} is kept in {visible_line(str(path))}")


def _look(kept: SessionKeys) -> tuple[tuple[HeldKey, ...], dict[str, str]]:
    return kept.held(), kept.lost()


def _line(held: HeldKey) -> str:
    state = "damaged  " if held.damaged else ""
    return f"{held.key_id}  {state}{' '.join(held.sessions) or 'no session known'}"


def _json(held: HeldKey) -> str:
    state = "damaged" if held.damaged else "sound"
    return json.dumps({"key_id": held.key_id, "sessions": held.sessions, "state": state})


async def _key_id(kept: SessionKeys, name: str) -> str:
    """Return the id of the key that *name*, a key or a session, means."""
    if is_key_id(name):
        return name
    try:
        session = str(UUID(name))
    except ValueError as error:
        raise BadUsage(
            f"{name!r} is neither a key id (kf_…) nor a session id; see: smista keys list"
        ) from error
    key_id = await trio.to_thread.run_sync(kept.recorded, session)
    if key_id is None:
        raise CommandError(f"no key of session {session} is known here; see: smista keys list")
    return key_id


async def _exported(kept: SessionKeys, names: tuple[str, ...]) -> SecretStr:
    held = {each.key_id: each for each in await trio.to_thread.run_sync(kept.held)}
    wanted = [await _key_id(kept, name) for name in names] or list(held)
    travelling: list[Travelling] = []
    for key_id in dict.fromkeys(wanted):
        key = await trio.to_thread.run_sync(kept.find, key_id)
        if key is None:
            raise CommandError(f"the key {key_id} is not on this machine; see: smista keys list")
        travelling.append(Travelling(key=key, sessions=held[key_id].sessions))
    if not travelling:
        raise CommandError("there are no keys of encrypted sessions yet")
    return written(travelling)


async def _may_show() -> bool:
    """Return whether keys may be printed: to a terminal only if the person there agrees."""
    stdout = cast("TextIO | None", sys.stdout)
    if stdout is None or not stdout.isatty():
        return True
    terminal = open_terminal()
    question = "this prints secret keys on the screen, where they may stay; print them?"
    return terminal is not None and await terminal.ask(question)


def _write_new(file: Path, text: SecretStr) -> None:
    # O_EXCL follows no link and takes no file that somebody else may have open.
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(handle, 0o600)
        write_all(handle, text.get_secret_value().encode())
        os.fsync(handle)
    finally:
        os.close(handle)


async def _given(file: Path | None) -> SecretStr:
    if file is not None:
        return _text(await trio.to_thread.run_sync(_read, file))
    stdin = cast("TextIO | None", sys.stdin)
    if stdin is not None and not stdin.isatty():
        read = partial(sys.stdin.buffer.read, _MOST)
        return _text(await trio.to_thread.run_sync(read, abandon_on_cancel=True))
    return await given_key(None, "the session", "smista keys import")


def _read(file: Path) -> bytes:
    with file.open("rb") as opened:
        if os.fstat(opened.fileno()).st_mode & 0o077:
            echo(f"warning: others can read {visible_line(str(file))}; delete it", err=True)
        return opened.read(_MOST)


def _text(content: bytes) -> SecretStr:
    try:
        return SecretStr(content.decode("ascii"))
    except UnicodeDecodeError:
        # The cause quotes what was read, and that holds keys.
        raise BadUsage("what was given is no text of `smista keys export`") from None


def _check_sessions(kept: SessionKeys, given: Travelling) -> None:
    """Raise BadUsage if a session has another key here: that must not be changed in passing."""
    for session in given.sessions:
        known = kept.recorded(session)
        if known is not None and known != given.key.key_id:
            raise BadUsage(
                f"session {session} has the key {known} here and {given.key.key_id} in what was "
                "given; nothing was taken"
            )


def _take(kept: SessionKeys, given: Travelling) -> Path:
    path = kept.store(given.key)
    for session in given.sessions:
        kept.record(session, given.key.key_id)
    return path
