"""`smista session`: lists, shows, exports, imports, renames, archives and deletes sessions."""

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TextIO, cast

import asyncclick as click
import trio

from cli.approvals import open_terminal
from cli.configuration import configured
from cli.connection import open_router
from cli.failures import DONE, REFUSED, BadUsage, CommandError
from cli.looking_back import find_listed, find_session, read_messages
from cli.session_folder import remove_folder
from cli.session_view import listing, transcript
from cli.sessions import forget_key
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from smista.local.paths import write_all
from smista.sdk.client import Client
from smista.sdk.errors import is_object

STDIO: Final = "-"
_MOST: Final = 64 * 1024 * 1024


@click.group()
async def session() -> None:
    """List, show, export, import, rename, archive and delete sessions.

    SESSION is an id, or the first or last characters of one.
    """


@asynccontextmanager
async def _router(here: Surroundings) -> AsyncGenerator[Client]:
    config = (await configured(here)).merged
    async with open_router(here, config) as client:
        yield client


@session.command("list")
@click.option("--all", "everywhere", is_flag=True, help="Those of all your projects.")
@click.option("--archived", is_flag=True, help="Archived ones too.")
@click.option("--title", metavar="TEXT", help="Only those with this in their title.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
async def show_list(
    here: Surroundings, everywhere: bool, archived: bool, title: str | None, as_json: bool
) -> None:
    """List this project's sessions, the one used last first."""
    scope = None if everywhere else str(here.root)
    async with _router(here) as client:
        found = await client.sessions(scope=scope, title=title)
    shown = [each for each in found if archived or not each.archived]
    if as_json:
        for each in shown:
            echo(each.model_dump_json(exclude_none=True))
    elif shown:
        echo(listing(shown, projects=everywhere))
    else:
        echo("no sessions" if everywhere else f"no sessions of {here.root}; see --all", err=True)


@session.command()
@click.argument("session_id", metavar="[SESSION]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a message.")
@click.pass_obj
async def show(here: Surroundings, session_id: str | None, as_json: bool) -> None:
    """Print what was said in SESSION, or in this project's newest one."""
    async with _router(here) as client:
        found = await find_session(client, here, session_id)
        messages = await read_messages(client, here, found)
    echo(visible_line(f"session {found.id}: {found.title or '(no title)'}"), err=True)
    if as_json:
        for message in messages:
            echo(message.model_dump_json(exclude_none=True))
    elif messages:
        echo(transcript(messages))


@session.command()
@click.argument("session_id", metavar="[SESSION]", required=False)
@click.option("--to", "file", metavar="FILE", help="Write here instead; - is stdout.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.pass_obj
async def export(here: Surroundings, session_id: str | None, file: str | None, force: bool) -> None:
    """Write SESSION, or this project's newest one, to a file that only you can read.

    The file holds everything said in it. That of an encrypted session cannot be read without its
    key, which goes another way: smista keys export SESSION.
    """
    async with _router(here) as client:
        found = await find_session(client, here, session_id)
        document = await client.export_session(found.id)
    text = json.dumps(document, ensure_ascii=False, indent=1)
    if file == STDIO:
        echo(text)
        return
    path = here.start / (file or f"smista-session-{found.id}.json")
    await trio.to_thread.run_sync(partial(_write, path, text, force=force))
    echo(f"session {visible_line(found.id)} is written to {visible_line(str(path))}", err=True)


@session.command("import")
@click.argument("file", default=STDIO)
@click.pass_obj
async def take_in(here: Surroundings, file: str) -> None:
    """Make a session of what `smista session export` wrote to FILE; - is stdin.

    It gets a new id and keeps its times; an encrypted one keeps its id.
    """
    document = await trio.to_thread.run_sync(_read, here.start, file)
    async with _router(here) as client:
        made = await client.import_session(document)
    echo(visible_line(f"session {made.id}: {made.title or '(no title)'}"))


@session.command()
@click.argument("session_id", metavar="SESSION")
@click.argument("title")
@click.pass_obj
async def rename(here: Surroundings, session_id: str, title: str) -> None:
    """Give SESSION another TITLE. The title of an encrypted session is not encrypted."""
    async with _router(here) as client:
        found = await find_listed(client, session_id, archived=True)
        made = await client.update_session(found.id, title=title)
    echo(visible_line(f"session {made.id}: {made.title}"), err=True)


@session.command()
@click.argument("session_id", metavar="SESSION")
@click.option("--undo", is_flag=True, help="Bring it back.")
@click.pass_obj
async def archive(here: Surroundings, session_id: str, undo: bool) -> None:
    """Put SESSION aside: it is kept, and neither goes on nor is shown until it is brought back."""
    async with _router(here) as client:
        found = await find_listed(client, session_id, archived=True)
        await client.update_session(found.id, archived=not undo)
    words = "is brought back" if undo else "is archived"
    echo(f"session {visible_line(found.id)} {words}", err=True)


@session.command()
@click.argument("session_ids", metavar="SESSION...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Delete without a question.")
@click.option("--keep-key", is_flag=True, help="Keep its key: an export of it stays readable.")
@click.pass_obj
async def delete(
    here: Surroundings, session_ids: tuple[str, ...], yes: bool, keep_key: bool
) -> int:
    """Delete SESSION for good: what was said, its trace, its memory, its cost, its key.

    What is remembered about you stays.
    """
    async with _router(here) as client:
        found = [await find_listed(client, each, archived=True) for each in session_ids]
        for each in {one.id: one for one in found}.values():
            name = f"session {each.id}: {each.title or '(no title)'}"
            if not yes and not await _agreed(f"delete {name}?"):
                return REFUSED
            await client.delete_session(each.id)
            if not keep_key:
                await forget_key(here, each.id)
            await trio.to_thread.run_sync(remove_folder, here.places, each.id)
            echo(visible_line(f"{name} is deleted"), err=True)
    return DONE


async def _agreed(question: str) -> bool:
    terminal = open_terminal()
    if terminal is None:
        raise BadUsage("there is nobody to ask; to delete without a question, say --yes")
    return await terminal.ask(question)


def _write(path: Path, text: str, *, force: bool) -> None:
    # O_EXCL follows no link and takes no file that somebody else may have open.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        if force:
            path.unlink(missing_ok=True)
        handle = os.open(path, flags, 0o600)
    except FileExistsError as error:
        raise CommandError(f"{path} is there already; another name, or --force") from error
    try:
        write_all(handle, text.encode("utf-8", "replace"))
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(start: Path, file: str) -> dict[str, Any]:
    if file == STDIO:
        stdin = cast("TextIO | None", sys.stdin)
        if stdin is None or stdin.isatty():
            raise BadUsage("name the file to import, or pipe it in")
        content = sys.stdin.buffer.read(_MOST + 1)
    else:
        with (start / file).open("rb") as opened:
            content = opened.read(_MOST + 1)
    if len(content) > _MOST:
        raise CommandError(f"{file} is larger than any session that a router takes")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{file} is no exported session: it is not JSON") from error
    if not is_object(document):
        raise CommandError(f"{file} is no exported session")
    return document
