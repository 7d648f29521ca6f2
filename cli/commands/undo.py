"""`smista undo`: takes back what was changed in a session, the last change first."""

from functools import partial
from typing import Final

import asyncclick as click
import trio

from cli.approvals import open_terminal, present
from cli.change_store import Record
from cli.failures import DONE, REFUSED, BadUsage, CommandError
from cli.files import Unusable
from cli.looking_back import check_name
from cli.surroundings import Surroundings
from cli.undo import ChangedSince, Step, Undo, sessions_named, undo_of
from cli.visible import echo, echo_styled, visible_line

_NOTHING: Final = "nothing was changed that is still known here"
_SHOWN: Final = 5


@click.command()
@click.argument("session", required=False)
@click.option("--list", "only_list", is_flag=True, help="Only list what can be taken back.")
@click.option("--redo", is_flag=True, help="Make the last change again that was taken back.")
@click.option("--yes", is_flag=True, help="Take it back without a question.")
@click.option("--force", is_flag=True, help="Also if the file changed since; a copy is kept.")
@click.pass_obj
async def undo(
    here: Surroundings, session: str | None, only_list: bool, redo: bool, yes: bool, force: bool
) -> int:
    """Take back the last change of a file in SESSION, or in this project's newest one.

    Call it again to take back the one before. A file that changed since is left alone.
    """
    if session is not None:
        session = await trio.to_thread.run_sync(_meant, here, session)
    kept = await trio.to_thread.run_sync(undo_of, here, session)
    if kept is None:
        raise CommandError(_NOTHING)
    if only_list:
        _list(kept)
        return DONE
    try:
        return await _take_back(kept, redo=redo, yes=yes, force=force)
    except ChangedSince as fault:
        raise CommandError(visible_line(str(fault))) from fault
    except Unusable as fault:
        raise CommandError(visible_line(f"not taken back: {fault}")) from fault


def _meant(here: Surroundings, part: str) -> str:
    check_name(part)
    found = sessions_named(here, part)
    if len(found) > 1:
        raise BadUsage(f"{part!r} stands in {len(found)} ids: {', '.join(found[:_SHOWN])}")
    if not found:
        raise CommandError(_NOTHING)
    return found[0]


async def _take_back(kept: Undo, *, redo: bool, yes: bool, force: bool) -> int:
    step = await trio.to_thread.run_sync(partial(kept.next_step, redo=redo))
    if step is None:
        raise CommandError("there is nothing to make again" if redo else "all is taken back")
    if step.changed and not force:
        raise ChangedSince(step.record.name)
    echo_styled(present(title_of(step), step.shown), nl=False)
    if not yes and not await _agreed():
        return REFUSED
    copy = await trio.to_thread.run_sync(partial(kept.take, step, force=force))
    if copy is not None:
        echo(f"what was there is kept as {copy}", err=True)
    echo(f"{'made again' if redo else 'taken back'}: {visible_line(step.record.name)}")
    return DONE


async def _agreed() -> bool:
    terminal = open_terminal()
    if terminal is None:
        raise BadUsage("there is no terminal to ask at; to go on without: --yes")
    return await terminal.ask("write this?")


def title_of(step: Step) -> str:
    """Return in one line what *step* does to its file. Pure."""
    name = step.record.name
    if step.after is None:
        return f"remove {name}, which did not exist before"
    return f"write {name} as it was" if step.seen.file else f"bring {name} back"


def _list(kept: Undo) -> None:
    for record in kept.changes():
        echo(line_of(record))
    for record in kept.undone():
        echo(f"{line_of(record)} (taken back)")


def line_of(record: Record) -> str:
    """Return *record* in one line, harmless. Pure."""
    when = record.at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return visible_line(f"{when}  {record.what}  {record.name}")
