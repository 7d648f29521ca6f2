"""Errors → exit codes and the words that explain them. The one table of exit codes."""

import errno
from typing import Final, cast

import asyncclick as click

from cli.arguments import PROMPT, NoSuchCommand, NoValue
from cli.visible import visible

DONE: Final = 0
FAILED: Final = 1
BAD_USAGE: Final = 2
UNREACHABLE: Final = 3
REFUSED: Final = 4
INTERRUPTED: Final = 130

POLICY_CODES: Final = frozenset({"override_not_allowed", "permission_expansion", "forbidden"})


class CommandError(Exception):
    """A command that cannot do its work, with what the user can do next."""

    exit_code = FAILED


class BadUsage(CommandError):
    exit_code = BAD_USAGE


class NoRouter(CommandError):
    exit_code = UNREACHABLE


def code_of_error(code: str) -> int:
    """Return the exit code for the API's error *code*."""
    return REFUSED if code in POLICY_CODES else FAILED


def exit_code(error: BaseException) -> int | None:
    """Return the exit code of *error*, None for one that nobody foresaw."""
    match error:
        case CommandError():
            return error.exit_code
        case click.ClickException() | NoSuchCommand() | NoValue():
            return BAD_USAGE
        case KeyboardInterrupt() | click.Abort():
            return INTERRUPTED
        case BrokenPipeError() | SystemExit():
            return FAILED  # whoever read our output has left; click leaves so where it hears of it
        case _:
            return _of_the_rooms(error)


def _of_the_rooms(error: BaseException) -> int | None:
    # Imported late: a command that never met these rooms cannot have failed in them.
    from smista.core.errors import SmistaError
    from smista.local.daemon_ctl import AlreadyRunning, StartFailed, StopFailed
    from smista.local.findings import InvalidConfig
    from smista.local.paths import NotOurs
    from smista.local.system_keyring import KeyringUnusable
    from smista.sdk.errors import ApiError, SdkError, Unproven, Unreachable

    match error:
        case InvalidConfig() | NotOurs() | KeyringUnusable():
            return BAD_USAGE
        case Unreachable() | Unproven():
            return UNREACHABLE
        case ApiError():
            return code_of_error(error.code)
        case SdkError() | SmistaError() | AlreadyRunning() | StartFailed() | StopFailed():
            return FAILED
        case OSError():
            return FAILED
        case _:
            return None


def explanation(error: BaseException) -> str:
    """Return what to print on stderr; nothing for an interrupt or a reader that left."""
    match error:
        case KeyboardInterrupt() | click.Abort() | BrokenPipeError() | SystemExit():
            return ""
        case click.UsageError():
            # The command of a bare prompt has a name that nobody types.
            usage = error.ctx.get_usage().replace(f" {PROMPT}", "") + "\n" if error.ctx else ""
            return visible(f"{usage}error: {error.format_message()}")
        case click.ClickException():
            return visible(f"error: {error.format_message()}")
        case OSError(errno=errno.EADDRINUSE):
            return (
                "error: the port is taken by another program; choose another one: "
                "[router] port in router.toml for the router, --port for demo-model"
            )
        case OSError(filename=str(name), strerror=str(reason)):
            return visible(f"error: {name}: {reason}")
        case _:
            text = visible(str(error))
            return text if text.startswith(("error:", "warning:")) else f"error: {text}"


def leaves(error: BaseException) -> list[BaseException]:
    """Return the errors inside *error*, which nurseries wrap in groups."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    group = cast("BaseExceptionGroup[BaseException]", error)
    return [leaf for part in group.exceptions for leaf in leaves(part)]
