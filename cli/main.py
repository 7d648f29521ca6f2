"""The group of all commands, and the one place that turns errors into exit codes."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from traceback import format_exception
from typing import Final

import asyncclick as click
import trio

from cli.arguments import arrange
from cli.failures import DONE, FAILED, INTERRUPTED, exit_code, explanation, leaves
from cli.interactive.opening import opening
from cli.table import COMMANDS, Section
from cli.visible import echo
from smista import __version__

_LEAVE: Final = (signal.SIGTERM, signal.SIGHUP)


class Told(Exception):
    """A signal asked us to leave; everything was put in order first."""

    def __init__(self, number: int) -> None:
        super().__init__(f"told to leave by signal {number}")
        self.exit_code = 128 + number


class LateGroup(click.Group):
    """Finds its commands by COMMANDS, so that one command does not pay for the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name].module)
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in filter(None, Section):
            rows = [(name, each.help) for name, each in COMMANDS.items() if each.section == section]
            with formatter.section(section.value):
                formatter.write_dl(rows)


@click.group(cls=LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-L",
    "--log-file",
    envvar="SMISTA_ROUTER_LOG_FILE",
    metavar="PATH",
    help="Log to this file instead of the terminal.",
)
@click.option(
    "-l",
    "--log-filter",
    envvar="SMISTA_ROUTER_LOG_FILTER",
    metavar="LEVEL",
    help="off, error, warn, info, debug or trace. Default: off; for the router, its own file.",
)
@click.option("--enforce-keyring", is_flag=True, help="Fail if the keyring cannot be used.")
@click.version_option(__version__, "-V", "--version", message="smista %(version)s")
@click.pass_context
async def cli(
    ctx: click.Context, log_file: str | None, log_filter: str | None, enforce_keyring: bool
) -> None:
    """Route work to models by your own rules.

    Words that are no command are a prompt; without any, an interactive session opens.

    \b
    smista "review @src/main.py"        run one prompt and print the answer
    git diff | smista "any mistakes?"   what is piped in follows the words
    smista                              talk, with /help at hand
    smista --plain                      the same in lines alone, as screen readers like it
    smista run --help                   all flags of a prompt

    \b
    The first time, in this order:
    smista config init      write this project's policy, and name a model in it
    smista credentials set openai       keep a provider's key (none for local models)
    smista start            start the router
    smista login            make yourself known to it
    """
    from cli.logs import configure
    from cli.secrecy import keep_memory_private
    from cli.surroundings import look_around

    keep_memory_private()
    configure(log_filter or "off", Path(log_file) if log_file else None)
    here = look_around(
        umask=ctx.obj, log_file=log_file, log_filter=log_filter, enforce_keyring=enforce_keyring
    )
    if here.enforce_keyring and here.vault is not None:
        await trio.to_thread.run_sync(here.vault.usable, abandon_on_cancel=True)
    ctx.obj = here


def run(argv: Sequence[str], *, umask: int = 0o077) -> int:
    """Run the command line *argv* and return its exit code. *umask* is the user's own."""
    _open_streams()
    try:
        commands = [name for name, each in COMMANDS.items() if each.section]
        words = opening(arrange(argv, commands))
        outcome = trio.run(_until_told_to_leave, words, umask)
        sys.stdout.flush()
    except Told as told:
        _settle_stdout()
        return told.exit_code
    except BaseException as error:
        return _fail(error)
    return outcome if isinstance(outcome, int) else DONE


async def _until_told_to_leave(words: list[str], umask: int) -> object:
    """Run the command. Raises Told, after all clean-up, if a signal asks to leave."""
    command = partial(cli.main, words, prog_name="smista", standalone_mode=False, obj=umask)
    # What whoever started us ignores (nohup) stays ignored.
    heeded = [each for each in _LEAVE if signal.getsignal(each) is signal.SIG_DFL]
    if not heeded:
        return await command()
    outcome: object = None
    told: list[int] = []
    with trio.open_signal_receiver(*heeded) as signals:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_leave_when_told, signals, told, nursery.cancel_scope)
                outcome = await command()
                nursery.cancel_scope.cancel(reason="done")
        finally:
            # Whatever else went wrong on the way out, whoever sent the signal wants to hear this.
            if told:
                raise Told(told[0])
    return outcome


async def _leave_when_told(
    signals: AsyncIterator[int], told: list[int], scope: trio.CancelScope
) -> None:
    async for number in signals:
        told.append(number)
        scope.cancel(reason="told to leave")


def _open_streams() -> None:
    # A caller may have closed some: the next file that is opened would be taken for one of them.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _fail(error: BaseException) -> int:
    parts = leaves(error)
    codes = [exit_code(part) for part in parts]
    if None in codes:
        # A fault of ours: the traceback is what a report needs. It may quote text of others.
        echo("".join(format_exception(error)), err=True, nl=False)
        return FAILED
    if INTERRUPTED in codes:
        return INTERRUPTED
    with suppress(OSError):  # there may be nobody left to hear it
        for text in filter(None, map(explanation, parts)):
            echo(text, err=True)
    _settle_stdout()
    return max(code for code in codes if code is not None)


def _settle_stdout() -> None:
    # Python flushes stdout once more at exit; where that fails, it would fail again and say so.
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
