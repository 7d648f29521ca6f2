"""Questions at a plain terminal: only what is typed after a question answers it."""

import os
import pty
import tty

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from cli.approvals import Answer, Terminal


class Keyboard:
    """The keys of a terminal, and what was said to whoever reads them."""

    def __init__(self):
        self.master, slave = pty.openpty()
        attributes = tty.tcgetattr(slave)
        attributes[3] &= ~tty.ECHO
        tty.tcsetattr(slave, tty.TCSANOW, attributes)
        self.slave = slave
        self.terminal = Terminal(slave)
        self.answers = []

    def type(self, text):
        os.write(self.master, text)

    async def ask(self):
        self.answers.append(await self.terminal.answer("do it?", always=True))


@pytest.fixture
def keyboard():
    made = Keyboard()
    yield made
    os.close(made.master)
    os.close(made.slave)


@pytest.mark.parametrize("early", [b"y\n", b"y", b"a\n", b"y\ny\ny\n", b"yes\ny"])
async def test_what_was_typed_before_answers_nothing(keyboard, nursery, early, capsys):
    keyboard.type(early)
    nursery.start_soon(keyboard.ask)
    await wait_all_tasks_blocked()
    assert "do it?" in capsys.readouterr().err
    assert keyboard.answers == []
    keyboard.type(b"\n")
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert keyboard.answers == [Answer(approved=False)]


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        (b"\n", Answer(approved=False)),
        (b"y\n", Answer(approved=True)),
        (b"a\n", Answer(approved=True, always=True)),
        (b"n because of tabs\n", Answer(approved=False, reason="of tabs")),
    ],
)
async def test_what_is_typed_afterwards_does(keyboard, nursery, typed, means):
    nursery.start_soon(keyboard.ask)
    await wait_all_tasks_blocked()
    keyboard.type(typed)
    await wait_all_tasks_blocked(0.01)
    assert keyboard.answers == [means]


async def test_the_next_question_needs_an_answer_of_its_own(keyboard, nursery):
    nursery.start_soon(keyboard.ask)
    await wait_all_tasks_blocked()
    keyboard.type(b"y\ny\n")
    await wait_all_tasks_blocked(0.01)
    assert keyboard.answers == [Answer(approved=True)]
    nursery.start_soon(keyboard.ask)
    await wait_all_tasks_blocked(0.01)
    assert keyboard.answers == [Answer(approved=True)]
    keyboard.type(b"\n")
    await wait_all_tasks_blocked(0.01)
    assert keyboard.answers[1:] == [Answer(approved=False)]
