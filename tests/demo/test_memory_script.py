"""What the built-in script does about memory and skills."""

import pytest

from tests.demo.test_script import asked, call_of, say, text_of

TOOLS = frozenset({"memory", "use_skill", "read_file", "write_file"})
SYSTEM = "Smista.\n\n# Remembered from earlier, newest first\n\n- [a1] (user) tabs\n\n# Skills"


@pytest.mark.parametrize(
    ("prompt", "arguments"),
    [
        (
            "remember that I like tabs",
            {"operation": "record", "scope": "user", "key": "", "value": "I like tabs"},
        ),
        (
            "Please remember editor: vim",
            {"operation": "record", "scope": "user", "key": "editor", "value": "vim"},
        ),
        (
            "remember for this session that the bug is in b.py",
            {"operation": "record", "scope": "session", "key": "", "value": "the bug is in b.py"},
        ),
        ("forget editor", {"operation": "forget", "scope": "user", "key": "editor"}),
    ],
)  # fmt: skip
def test_what_is_said_to_be_remembered_becomes_a_call(prompt, arguments):
    assert call_of(say(asked(prompt, tools=TOOLS))) == ("memory", arguments)
    assert "memory" not in str(say(asked(prompt, tools=frozenset())))


def test_what_is_remembered_is_repeated():
    said = text_of(say(asked("what do you remember?", SYSTEM, tools=TOOLS)))
    assert said == "This is remembered:\n- [a1] (user) tabs"


def test_a_skill_is_read_by_its_name():
    steps = say(asked("use the skill code-review on this", tools=TOOLS))
    assert call_of(steps) == ("use_skill", {"name": "code-review"})
