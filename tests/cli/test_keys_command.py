"""`smista keys`: what is listed, what travels to another machine, and what is refused."""

import io
import json
import os
import stat
import sys

import pytest

from cli.approvals import Terminal
from smista.core.session_key import SessionKey
from smista.local.session_keys import SessionKeys
from tests.cli.test_config_command import User

KEY = SessionKey(bytes(range(32)))
OTHER = SessionKey(bytes(32))
TEXT, OTHER_TEXT = KEY.text().get_secret_value(), OTHER.text().get_secret_value()
SESSION = "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f"
SECOND = "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e70"


class Keeper(User):
    @property
    def kept(self):
        return SessionKeys(self.places)

    def has(self, key, *sessions):
        self.kept.store(key)
        for session in sessions:
            self.kept.record(session, key.key_id)
        return self


@pytest.fixture
def user(tmp_path, capsys, monkeypatch):
    made = Keeper(tmp_path, capsys)
    for name in [name for name in os.environ if name.startswith("SMISTA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SMISTA_HOME", str(made.home))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(made.project)
    return made


@pytest.fixture
def piped(monkeypatch):
    def pipe(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    pipe("")
    return pipe


def shows_nothing_secret(*texts):
    return not any(secret in text for text in texts for secret in (TEXT, OTHER_TEXT))


def test_a_list_names_keys_and_sessions_and_shows_no_key(user, piped):
    code, out, err = user.has(KEY, SESSION).has(OTHER).run("keys", "list")
    assert (code, err) == (0, "")
    assert f"{KEY.key_id}  {SESSION}\n" in out
    assert f"{OTHER.key_id}  no session known\n" in out
    assert shows_nothing_secret(out)


def test_a_list_says_which_keys_are_damaged_and_which_are_missing(user, piped):
    user.has(KEY, SESSION).kept.path(KEY.key_id).write_text("x")
    user.kept.record(SECOND, OTHER.key_id)
    lines = [json.loads(line) for line in user.run("keys", "list", "--json")[1].splitlines()]
    assert lines == [
        {"key_id": KEY.key_id, "sessions": [SESSION], "state": "damaged"},
        {"key_id": OTHER.key_id, "sessions": [SECOND], "state": "missing"},
    ]


def test_without_keys_the_list_is_empty(user, piped):
    assert user.run("keys", "list")[:2] == (0, "")


def test_verify_fails_on_whatever_cannot_be_opened(user, piped):
    assert user.has(KEY, SESSION).run("keys", "verify")[:2] == (0, f"{KEY.key_id}  sound\n")
    user.kept.record(SECOND, OTHER.key_id)
    code, out, _ = user.run("keys", "verify")
    assert (code, f"{OTHER.key_id}  missing" in out) == (1, True)
    assert user.run("keys", "verify", SESSION)[0] == 0
    assert user.run("keys", "verify", SECOND)[0] == 1
    user.kept.path(KEY.key_id).write_text(OTHER_TEXT)
    assert user.run("keys", "verify", KEY.key_id)[:2] == (1, f"{KEY.key_id}  damaged\n")


@pytest.mark.parametrize("name", ["nonsense", "kf_short", "../../etc/passwd"])
def test_what_names_neither_key_nor_session_is_said_to(user, piped, name):
    for command in ("verify", "export"):
        code, _, err = user.run("keys", command, name)
        assert (code, "keys list" in err) == (2, True)


def test_a_session_that_is_not_known_has_no_key(user, piped):
    code, _, err = user.run("keys", "export", SESSION)
    assert (code, "no key of session" in err) == (1, True)


def test_keys_travel_to_another_machine_through_a_pipe(user, piped):
    code, text, err = user.has(KEY, SESSION).has(OTHER).run("keys", "export", "--all")
    assert (code, err) == (0, "")
    user.kept.forget(SESSION)
    user.kept.remove(OTHER.key_id)
    piped(text)
    code, out, _ = user.run("keys", "import")
    assert code == 0
    assert shows_nothing_secret(out)
    assert user.kept.find(KEY.key_id) is not None
    assert user.kept.find(OTHER.key_id) is not None
    assert user.kept.recorded(SESSION) == KEY.key_id


def test_a_file_of_keys_is_for_its_owner_alone_and_never_overwrites(user, piped):
    file = user.project / "keys.txt"
    os.umask(os.umask(0))
    code, out, _ = user.has(KEY, SESSION).run("keys", "export", SESSION, "--to", str(file))
    assert (code, out) == (0, "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    code, _, err = user.run("keys", "export", "--all", "--to", str(file))
    assert (code, "exists" in err) == (1, True)
    user.kept.forget(SESSION)
    assert user.run("keys", "import", str(file))[0] == 0
    assert user.kept.recorded(SESSION) == KEY.key_id


def test_a_file_that_others_can_read_is_warned_of(user, piped):
    file = user.project / "keys.txt"
    file.write_text(TEXT)
    file.chmod(0o644)
    assert "others can read" in user.run("keys", "import", str(file))[2]


def test_a_key_alone_is_enough(user, piped):
    piped(f"{TEXT}\n")
    assert user.run("keys", "import")[0] == 0
    assert user.kept.find(KEY.key_id) is not None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no key"),
        ("# only words\n", "no key"),
        (f"{OTHER.key_id} {TEXT}\n", "fingerprint"),
        (f"{KEY.key_id}\n", "the id of a key"),
        (f"{KEY.key_id} {TEXT[:-1]}\n", "32 bytes"),
        (f"{TEXT} not-a-session\n", "session ids"),
        ("é\n", "no text of"),
        (f"{OTHER_TEXT}\n{KEY.key_id} {TEXT[::-1]}\n", "line 2"),
    ],
)
def test_one_bad_line_and_none_is_taken(user, piped, text, says):
    piped(text)
    code, out, err = user.run("keys", "import")
    assert (code, out) == (2, "")
    assert says in err
    assert shows_nothing_secret(err)
    assert user.kept.held() == ()


def test_a_session_s_key_is_not_changed_in_passing(user, piped):
    user.has(KEY, SESSION)
    piped(f"{OTHER_TEXT} {SESSION}\n")
    code, _, err = user.run("keys", "import")
    assert (code, "nothing was taken" in err) == (2, True)
    assert user.kept.recorded(SESSION) == KEY.key_id
    assert user.kept.find(OTHER.key_id) is None


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("says", "code"), [(True, 0), (False, 4)])
def test_keys_reach_a_screen_only_if_the_person_agrees(user, piped, monkeypatch, says, code):
    asked = []

    class Person(Terminal):
        def __init__(self):
            pass

        async def ask(self, question):
            asked.append(question)
            return says

    screen = Screen()
    monkeypatch.setattr("cli.commands.keys.open_terminal", Person)
    monkeypatch.setattr(sys, "stdout", screen)
    assert user.has(KEY).run("keys", "export", "--all")[0] == code
    assert (TEXT in screen.getvalue()) is says
    assert "secret keys" in asked[0]


@pytest.mark.parametrize("words", [(), ("--all", KEY.key_id)])
def test_an_export_says_what_it_is_to_export(user, piped, words):
    assert user.run("keys", "export", *words)[0] == 2
