"""Errors → exit codes and words."""

import errno

import asyncclick as click
import pytest

from cli.failures import BadUsage, CommandError, NoRouter, exit_code, explanation, leaves
from smista.core.errors import InvalidRequest
from smista.local.daemon_ctl import AlreadyRunning, Daemon, StartFailed
from smista.local.findings import Finding, InvalidConfig
from smista.local.paths import NotOurs
from smista.sdk.errors import ApiError, BadAnswer, NotSignedIn, Unreachable

FINDING = Finding(file="config.toml", place="router.url", message="bad", remedy="mend it")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandError("x"), 1),
        (ApiError(409, "run_in_flight", "busy"), 1),
        (BadAnswer("x"), 1),
        (NotSignedIn(), 1),
        (InvalidRequest("x"), 1),
        (StartFailed("x"), 1),
        (AlreadyRunning(Daemon(pid=1)), 1),
        (OSError(errno.EADDRINUSE, "x"), 1),
        (BrokenPipeError(), 1),
        (SystemExit(1), 1),
        (BadUsage("x"), 2),
        (click.UsageError("x"), 2),
        (InvalidConfig((FINDING,)), 2),
        (NotOurs("x"), 2),
        (NoRouter("x"), 3),
        (Unreachable("http://x", "no connection"), 3),
        (ApiError(403, "override_not_allowed", "x"), 4),
        (ApiError(403, "forbidden", "x"), 4),
        (ApiError(422, "permission_expansion", "x"), 4),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (ValueError("a fault of ours"), None),
    ],
)
def test_every_error_has_its_exit_code(error, code):
    assert exit_code(error) == code


def test_findings_are_printed_as_they_are():
    text = explanation(InvalidConfig((FINDING, FINDING)))
    assert text.split("\n") == ["error: config.toml: router.url: bad (mend it)"] * 2


def test_foreign_text_in_an_error_is_harmless():
    assert explanation(ApiError(500, "x", "\x1b[2J")) == "error: x: ␛[2J"


def test_a_taken_port_is_explained():
    assert "port" in explanation(OSError(errno.EADDRINUSE, "Address already in use"))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), BrokenPipeError(), SystemExit(1)])
def test_an_interrupt_and_a_reader_that_left_need_no_words(error):
    assert explanation(error) == ""


def test_errors_inside_groups_are_found():
    inner = ExceptionGroup("", [BadUsage("a"), ExceptionGroup("", [NoRouter("b")])])
    assert [str(leaf) for leaf in leaves(inner)] == ["a", "b"]
