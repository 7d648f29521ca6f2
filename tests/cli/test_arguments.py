"""Words on the command line find their command."""

import pytest

from cli.arguments import PROMPT, NoSuchCommand, NoValue, arrange
from cli.failures import exit_code

COMMANDS = ["start", "stop", "status", "login", "trace", "demo-model"]


@pytest.mark.parametrize(
    ("argv", "arranged"),
    [
        (["start", "--foreground"], ["start", "--foreground"]),
        (["fix", "the", "bug"], [PROMPT, "fix", "the", "bug"]),
        (["start the engine"], [PROMPT, "start the engine"]),
        (["--json", "hello"], [PROMPT, "--json", "hello"]),
        ([], [PROMPT]),
        (["--help"], ["--help"]),
        (["-V"], ["-V"]),
        (["hello"], [PROMPT, "hello"]),
        (["--yes=shell,git", "hi"], [PROMPT, "--yes", "--yes-to=shell,git", "hi"]),
        (["--yes", "hi"], [PROMPT, "--yes", "hi"]),
        (["--", "--yes=shell"], [PROMPT, "--", "--yes=shell"]),
        (["--", "statsu"], [PROMPT, "--", "statsu"]),
        (["statsu", "quo"], [PROMPT, "statsu", "quo"]),
    ],
)
def test_a_command_is_its_first_word_and_all_else_a_prompt(argv, arranged):
    assert arrange(argv, COMMANDS) == arranged


@pytest.mark.parametrize("flag", [["-L", "f"], ["--log-filter", "debug"], ["--log-file=f"]])
def test_global_flags_stand_before_or_after_the_command(flag):
    expected = [*flag, "start", "--foreground"]
    assert arrange([*flag, "start", "--foreground"], COMMANDS) == expected
    assert arrange(["start", *flag, "--foreground"], COMMANDS) == expected
    assert arrange(["start", "--foreground", *flag], COMMANDS) == expected


def test_after_two_dashes_nothing_is_a_flag():
    assert arrange(["--", "-L", "f"], COMMANDS) == [PROMPT, "--", "-L", "f"]


@pytest.mark.parametrize(
    "argv",
    [["start", "-L"], ["fix it", "--log-filter"], ["fix it", "--yes="], ["--yes=", "fix it"]],
)
def test_a_flag_without_its_value_takes_no_other_word_for_it(argv):
    with pytest.raises(NoValue, match="needs a value; write: -") as caught:
        arrange(argv, COMMANDS)
    assert exit_code(caught.value) == 2


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["statsu"], "status"),
        (["Strat"], "start"),
        (["strat", "--foreground"], "start"),
        (["confg", "check", "router"], "config"),
        (["credentals", "set", "openai"], "credentials"),
    ],
)
def test_a_mistyped_command_is_asked_about(typed, meant):
    with pytest.raises(NoSuchCommand, match=f"did you mean '{meant}'"):
        arrange(typed, [*COMMANDS, "config", "credentials"])
