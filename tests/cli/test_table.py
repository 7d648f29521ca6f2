"""The table of commands says what the commands themselves say."""

from importlib import import_module

import pytest

from cli.table import COMMANDS, Section

SHOWN = [name for name, entry in COMMANDS.items() if entry.section is not Section.HIDDEN]


def command(name):
    return getattr(import_module(COMMANDS[name].module), name.replace("-", "_"))


@pytest.mark.parametrize("name", SHOWN)
def test_the_line_in_the_overview_is_the_first_sentence_of_the_commands_own_help(name):
    assert COMMANDS[name].help.rstrip(".") == command(name).get_short_help_str(200).rstrip(".")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_is_one(name):
    assert callable(command(name).main)
