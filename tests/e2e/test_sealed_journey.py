"""A day in an encrypted session over the command line, and what of it lies around afterwards."""

import json
import os
import re
import signal
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.house import (
    PATIENCE,
    POLICY,
    House,
    Router,
    demo_model,
    running,
)
from tests.e2e.reading import keys_of
from tests.terminal.seat import CTRL_D, ESC, seat

MARKS = [f"hidden{n:02}word" for n in range(24)]
_EDIT = f'{{ path = "hello.txt", old = "Helo", new = "Hello {MARKS[0]}" }}'
_FACT = f'{{ operation = "record", scope = "user", key = "{MARKS[1]}", value = "{MARKS[2]}" }}'

SCRIPT = f"""
[[rules]]
name = "refused"
when = {{ results = true, failed = true }}
say = [{{ text = "Then not, {MARKS[3]}." }}]

[[rules]]
name = "done"
when = {{ results = true }}
say = [{{ text = "Done, {MARKS[4]}." }}]

[[rules]]
name = "mend"
when = {{ user = 'mend' }}
say = [
    {{ reasoning = "perhaps {MARKS[5]}" }},
    {{ text = "I will, {MARKS[6]}. " }},
    {{ tool = "edit_file", arguments = {_EDIT} }},
]

[[rules]]
name = "command"
when = {{ user = 'command' }}
say = [{{ tool = "shell", arguments = {{ command = "echo {MARKS[7]}; cat hello.txt" }} }}]

[[rules]]
name = "remember"
when = {{ user = 'remember' }}
say = [{{ tool = "memory", arguments = {_FACT} }}]

[[rules]]
name = "plan"
when = {{ user = 'plan' }}
say = [{{ text = "The plan is {MARKS[8]}." }}]

[[rules]]
name = "never end"
when = {{ user = 'never end' }}
say = [{{ text = "it begins {MARKS[9]} for {{user}} " }}, {{ hold = true }}]

[[rules]]
name = "echo"
say = [{{ text = "You wrote: {{user}}" }}]
"""
TOOLS = POLICY.replace('shell = "deny"', 'shell = "ask"')


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "model").mkdir()
    with demo_model(tmp_path / "model", SCRIPT) as model:
        yield model


@pytest.fixture
def house(tmp_path: Path, marked: str) -> House:
    """A house whose temporary files, caches and state all stay inside."""
    folder = tmp_path / "house"
    folder.mkdir()
    house = House(folder=folder, model=marked)
    for name in ("TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        house.extra[name] = str(folder / name.lower())
        (folder / name.lower()).mkdir(mode=0o700)
    house.write_policy(TOOLS)
    house.hello.write_text(f"Helo, {MARKS[10]}!\n")
    return house


@dataclass
class Search:
    """Looks for marks in every file of a house but those of its project."""

    router: Router
    marks: tuple[str, ...] = tuple(MARKS)
    seen: set[str] = field(default_factory=set)

    def look(self) -> None:
        house = self.router.house
        for folder, folders, names in os.walk(house.folder):
            folders[:] = [name for name in folders if Path(folder, name) != house.project]
            for path in (Path(folder, name) for name in names):
                with suppress(FileNotFoundError):  # the store has tidied up meanwhile
                    self.check(path, f"{path}\n".encode() + path.read_bytes())
                self.seen.add(path.relative_to(house.folder).parts[0])
        self.check(Path("what the router says"), self.router.output.encode())

    def check(self, where: Path, content: bytes) -> None:
        shown = [mark for mark in self.marks if any(form in content for form in forms(mark))]
        assert not shown, f"{where} shows {shown}"


def forms(mark: str) -> list[bytes]:
    """Return *mark* as a file may hold it: as it is, and within base64 at any place."""
    within = [b64encode(b"x" * shift + mark.encode())[4:-4] for shift in range(3)]
    return [mark.encode(), mark.encode().hex().encode(), *within]


def session_of(said: str) -> str:
    found = re.findall(r"session ([0-9a-f-]{36})", said)
    assert found, said
    return str(found[-1])


def interrupted(house: House, *words: str, mark: str) -> None:
    with house.begun(*words, mark=mark) as command:
        command.send_signal(signal.SIGINT)
        assert command.wait(PATIENCE) == 130


def test_nothing_of_a_day_lies_around_readable(house: House) -> None:
    with running(house) as router:
        assert house.run("login").returncode == 0
        search = Search(router)

        code, screen = house.type(f"mend @hello.txt, {MARKS[11]}", answer="y")
        assert code == 0, screen
        assert f"Hello {MARKS[0]}" in house.hello.read_text()
        session = session_of(screen)
        assert keys_of(house).recorded(session) is not None
        search.look()

        done = house.run("--continue", "--yes=shell", f"a command, {MARKS[12]}")
        assert done.stdout == f"Done, {MARKS[4]}.\n", done.stderr
        code, screen = house.type("--continue", f"a command, {MARKS[13]}", answer="n")
        assert (code, MARKS[3] in screen) == (4, True)
        done = house.run("--continue", f"remember {MARKS[14]}")
        assert (done.returncode, session_of(done.stderr)) == (0, session), done.stderr
        code, screen = house.type("run", "--continue", "--plan", f"plan {MARKS[15]}", answer="y")
        assert code == 0, screen
        assert f"The plan is {MARKS[8]}." in screen
        search.look()

        interrupted(house, "--continue", f"never end {MARKS[16]}", mark=MARKS[9])
        search.look()
        _converse(house, session)
        search.look()

        # The router dies while it speaks, and the command goes on where it was.
        words = ("--session", session, f"never end {MARKS[19]}")
        with house.begun(*words, mark=MARKS[9]) as command:
            router.kill()
            search.look()
            router.start()
            assert command.stderr is not None
            assert any(b"asking again" in line for line in command.stderr)
            search.look()
            command.send_signal(signal.SIGINT)
            assert command.wait(PATIENCE) == 130
        done = house.run("--continue", f"say {MARKS[20]}")
        assert done.stdout == f"You wrote: say {MARKS[20]}\n", done.stderr

        _read_back(house, session)
        search.look()
        _lose_the_key(house, session)
        assert house.run("session", "delete", session, "--yes").returncode == 0
        assert keys_of(house).recorded(session) is None
        assert keys_of(house).held() == ()
        assert router.leave() == 0
        search.look()
        assert search.seen == {"home"}  # nothing is left anywhere else

        # What is said in clear would have been found.
        router.start()
        house.write_policy(f"{TOOLS}\n[local_preferences]\nencrypt_sessions = false\n")
        assert house.run(f"say {MARKS[21]}").returncode == 0
        with pytest.raises(AssertionError, match=MARKS[21]):
            search.look()


def _converse(house: House, session: str) -> None:
    """New input in the middle of an answer, and a stop, at a terminal."""
    with seat(house) as at:
        at.enter(f"/resume {session}")
        at.idle()
        at.enter(f"never end {MARKS[17]}")
        at.see(MARKS[9])
        at.enter(f"{MARKS[18]} instead")
        at.see(f"You wrote: {MARKS[18]}")
        at.idle()
        at.enter("never end again")
        at.see("for never end again")
        at.send(ESC)
        at.idle()
        at.send(CTRL_D)
        assert at.wait() == 0


def _read_back(house: House, session: str) -> None:
    """Its owner reads all of it."""
    traced = house.run("trace", session, "--json")
    assert traced.returncode == 0, traced.stderr
    events = [json.loads(line) for line in traced.stdout.splitlines()]
    assert all("plaintext" in event["payload"] for event in events)
    assert MARKS[7] in traced.stdout
    usage = house.run("usage", session, "--json")
    assert usage.returncode == 0, usage.stderr
    assert json.loads(usage.stdout)["total"]["total_tokens"] > 0
    shown = house.run("session", "show", session)
    for mark in (MARKS[0], MARKS[4], MARKS[11], MARKS[17], MARKS[18], MARKS[20]):
        assert mark in shown.stdout


def _lose_the_key(house: House, session: str) -> None:
    """Without the key nothing is read or sent; what is not sealed is still shown."""
    keys = keys_of(house)
    key_id = keys.recorded(session)
    assert key_id is not None
    exported = house.run("keys", "export", session).stdout
    assert keys.remove(key_id)
    refused = house.run("--session", session, "hello")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "lost for good" in refused.stderr
    traced = house.run("trace", session)
    assert (traced.returncode, "sealed" in traced.stdout) == (0, True), traced.stderr
    assert house.run("keys", "verify").returncode == 1
    assert house.run("keys", "import", typed=exported).returncode == 0
    assert house.run("keys", "verify").returncode == 0
