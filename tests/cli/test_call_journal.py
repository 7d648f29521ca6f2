"""No call is done twice, whenever smista is killed."""

import json
import os
import random
import signal
import stat
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest
import trio

from cli.approvals import Answer
from cli.call_journal import Begun, CallJournal, Done, OtherCall
from cli.host import TerminalHost
from cli.machine import DONE, UNKNOWN
from cli.session_folder import Clear, Withheld, session_folder
from smista.core.events import Status, ToolRequest, TurnEnd
from smista.core.messages import ToolResultEntry
from smista.core.policy import ToolsConfig
from tests.cli.ground import surroundings

ROOT = Path(__file__).parents[2]
SESSION = "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f"
KILLS = int(os.environ.get("SMISTA_TOOL_KILLS", "50"))
ALLOWED = ToolsConfig(permissions={"shell": "allow", "file_write": "allow"})


class Person:
    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    async def answer(self, question, *, always=False):
        self.asked.append(question)
        return Answer(approved=self.answers.pop(0))


@pytest.fixture
def here(tmp_path):
    return surroundings(tmp_path)


@pytest.fixture
def folder(here):
    return session_folder(here, SESSION, Clear())


def shell(line, call_id="c1", mode="allow"):
    return ToolRequest(call_id, "shell", {"command": line}, mode)


async def host_of(here, person=None):
    host = TerminalHost(here, ALLOWED, terminal=person)
    await host.begin(SESSION)
    return host


async def run(host, *requests):
    return await host.run_tools(requests)


async def test_a_call_that_is_done_answers_what_it_answered(here):
    (first,) = await run(await host_of(here), shell("echo once >> log; echo said"))
    (again,) = await run(await host_of(here), shell("echo once >> log; echo said"))
    assert again == first
    assert (here.root / "log").read_text() == "once\n"


async def test_a_call_that_was_begun_is_not_begun_again_unasked(here, folder):
    CallJournal(folder).start(shell("echo once >> log"))
    (result,) = await run(await host_of(here), shell("echo once >> log"))
    assert (result.content, result.is_error, result.decision) == (UNKNOWN, True, "rejected")
    assert not (here.root / "log").exists()


@pytest.mark.parametrize("agreed", [True, False])
async def test_whoever_is_there_is_asked_whether_to_begin_it_again(here, folder, agreed, capsys):
    CallJournal(folder).start(shell("echo once >> log"))
    person = Person(agreed)
    (result,) = await run(await host_of(here, person), shell("echo once >> log"))
    assert "already" in person.asked[0]
    assert "echo once >> log" in capsys.readouterr().err
    assert (here.root / "log").exists() is agreed
    assert result.is_error is not agreed


async def test_an_id_stands_for_one_call(here):
    host = await host_of(here)
    await run(host, shell("true"))
    (result,) = await run(host, shell("touch marker"))
    assert result.is_error
    assert not (here.root / "marker").exists()


def masked(call_id="c1"):
    """A call as a router tells it that was started anew and did not keep its arguments."""
    return ToolRequest(call_id, "shell", {}, "ask", masked=True)


async def test_a_call_that_is_done_answers_so_though_the_router_lost_its_arguments(here):
    (first,) = await run(await host_of(here), shell("echo x >> done; echo said"))
    (again,) = await run(await host_of(here), masked())
    assert again == first
    assert (here.root / "done").read_text() == "x\n"


async def test_a_call_that_was_begun_and_lost_its_arguments_is_refused(here, folder):
    CallJournal(folder).start(shell("echo x"))
    (result,) = await run(await host_of(here), masked())
    assert (result.content, result.decision) == (UNKNOWN, "rejected")


async def test_a_call_that_lost_its_arguments_before_it_was_begun_is_told_so(here):
    (result,) = await run(await host_of(here), masked())
    assert result.is_error
    assert "not run" in result.content


async def test_two_processes_do_not_begin_the_same_call(folder):
    first, second = CallJournal(folder), CallJournal(folder)
    assert first.start(shell("ls"))
    assert not second.start(shell("ls"))
    assert second.recall(shell("ls")) == Begun()


async def test_the_end_of_a_run_forgets_its_calls(here, folder):
    host = await host_of(here)
    await run(host, shell("echo marker"))
    assert "marker" in "".join(each.read_text() for each in folder.part("calls").iterdir())
    await host.show(TurnEnd(Status.AWAITING_TOOL, {"tool_requests": []}))
    assert list(folder.part("calls").iterdir())
    await host.show(TurnEnd(Status.IDLE, {}))
    assert not list(folder.part("calls").iterdir())


async def test_reading_is_done_again_rather_than_kept(here, folder):
    (here.root / "a").write_text("marker")
    request = ToolRequest("c1", "read_file", {"path": "a"}, "allow")
    host = TerminalHost(here, ToolsConfig(permissions={"file_read": "allow"}), terminal=None)
    await host.begin(SESSION)
    (first,) = await run(host, request)
    (again,) = await run(host, request)
    assert first == again
    assert not folder.path.exists()


async def test_what_may_not_be_kept_is_noted_as_done_and_no_more(here):
    journal = CallJournal(session_folder(here, SESSION, Withheld()))
    entry = ToolResultEntry(call_id="c1", content="marker")
    journal.start(shell("echo marker"))
    journal.finish(shell("echo marker"), entry)
    assert journal.recall(shell("echo marker")) == Done(entry=None)
    kept = [path for path in here.places.config.rglob("*") if path.is_file()]
    assert not any(b"marker" in path.read_bytes() for path in kept)
    (result,) = await run(await host_of(here), shell("echo marker"))
    assert result.content == DONE


async def test_what_is_kept_is_private(here, folder):
    await run(await host_of(here), shell("echo said"))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.path.rglob("*")}
    assert modes == {0o700, 0o600}


def test_what_is_damaged_counts_as_begun(folder):
    journal = CallJournal(folder)
    journal.start(shell("ls"))
    (path,) = folder.part("calls").iterdir()
    for content in ("", "started\n", "started\n{", "started\n[]", "nonsense"):
        path.write_text(content)
        assert journal.recall(shell("ls")) == Begun()
    path.write_text(f"done\n{json.dumps({'call': 'other'})}")
    with pytest.raises(OtherCall):
        journal.recall(shell("ls"))


def test_there_is_a_bound_to_what_is_kept(folder, monkeypatch):
    monkeypatch.setattr("cli.call_journal.MAX_CALLS", 5)
    journal = CallJournal(folder)
    for number in range(12):
        journal.start(shell("ls", call_id=str(number)))
    assert len(list(folder.part("calls").iterdir())) <= 6


# Imports once, then runs the client in a fork for each line that it reads.
CLIENTS = """
import os, sys, trio
from pathlib import Path
from cli.host import TerminalHost
from smista.core.events import ToolRequest
from smista.core.policy import ToolsConfig
from tests.cli.ground import surroundings

async def client(first):
    here = surroundings(Path(sys.argv[1]))
    host = TerminalHost(here, ToolsConfig(permissions={"shell": "allow"}), terminal=None)
    await host.begin(sys.argv[2])
    for number in range(first, first + 40):
        line = f"echo {number} >> log; echo said {number}"
        request = ToolRequest(f"call-{number}", "shell", {"command": line}, "allow")
        (result,) = await host.run_tools((request,))
        os.write(1, f"{number} {int(result.is_error)}\\n".encode())

for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        try:
            trio.run(client, int(line))
        except BaseException as error:
            os.write(1, f"fault {error!r}\\n".encode())
        os._exit(0)
    os.write(1, f"client {pid}\\n".encode())
    os.waitpid(pid, 0)
    os.write(1, b"over\\n")
"""


async def test_no_call_is_done_twice_however_often_smista_is_killed(here, tmp_path):
    """Each time the client is killed at a random moment, the next one asks for the same calls."""
    command = [sys.executable, "-c", CLIENTS, str(tmp_path), SESSION]
    clients = await trio.lowlevel.open_process(
        command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd=ROOT
    )
    chance, answered, first = random.Random(4), {}, 0
    async with clients.stdin, clients.stdout:
        lines = Lines(clients.stdout)
        for _ in range(KILLS):
            await clients.stdin.send_all(b"%d\n" % first)
            for number, failed in await killed_somewhere(lines, chance):
                assert answered.setdefault(number, failed) == failed
            # The router knows what it was told; the call it waits for comes again.
            first = max(answered, default=-1) + 1
    await clients.wait()
    done = [int(line) for line in (here.root / "log").read_text().split()]
    assert len(done) == len(set(done))
    # What was answered as done was done; of what was begun and cut off, that is said.
    assert {number for number, failed in answered.items() if not failed} <= set(done)
    assert any(answered.values())
    assert len(done) > KILLS


class Lines:
    def __init__(self, stream):
        self.stream, self.rest = stream, b""

    async def next(self):
        while b"\n" not in self.rest:
            piece = await self.stream.receive_some()
            assert piece, "the clients' parent ended"
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode().split()


async def killed_somewhere(lines, chance):
    """Return what a client answered before it was killed: number, and whether it failed."""
    told, left = [], chance.randrange(1, 4)
    pid = None
    while (line := await lines.next()) != ["over"]:
        assert line[0] != "fault", line
        if line[0] == "client":
            pid = int(line[1])
        else:
            told.append((int(line[0]), line[1] == "1"))
        if pid is not None and len(told) >= left:
            # Somewhere in the next call, which takes some milliseconds.
            for _ in range(chance.randrange(1500)):
                await trio.lowlevel.checkpoint()
            os.kill(pid, signal.SIGKILL)
            pid = None
    return told
