"""The parts of the prompt on their own."""

import json
import tracemalloc
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from cli.interactive import history
from cli.interactive.command import escape_seconds
from cli.interactive.completion import PromptCompleter
from cli.interactive.drawing import Pen
from cli.interactive.pastes import Pastes
from cli.interactive.rows import cells, cut, last_rows
from cli.interactive.telling import Telling
from cli.interactive.words import COMMANDS, Slash, Unknown, help_text, understand_line
from smista.core.session_key import SessionKey
from smista.local.session_keys import SessionKeys
from tests.cli.ground import surroundings

SESSION = "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f"


class Sink:
    """A screen that counts what it is given and keeps nothing."""

    draws = True
    width = 80

    def __init__(self) -> None:
        self.pen = Pen(colour=True)
        self.put_characters = 0
        self.longest_live = 0

    def put(self, text, *, run=None, live=None):
        self.put_characters += len(text)

    def live(self, text, *, run):
        self.longest_live = max(self.longest_live, len(text))


def test_a_command_may_be_shortened_where_it_is_clear():
    for command in COMMANDS:
        assert understand_line(f"/{command.name} x").command is command
    assert understand_line("/q").command.name == "quit"
    assert understand_line("/exit").command.name == "quit"
    assert understand_line("/prev  a b ") == Slash(
        command=understand_line("/preview").command, rest="a b"
    )
    assert understand_line("/s") == Unknown(word="s", meant=None)
    assert understand_line("/usgae") == Unknown(word="usgae", meant="usage")
    for prompt in ("/etc/hosts", "a /help", "/", "//", "what /is"):
        assert understand_line(prompt) is None
    assert all(f"/{command.name}" in help_text() for command in COMMANDS)


def test_an_answer_of_any_length_is_shown_in_the_same_memory():
    sink = Sink()
    telling = Telling(sink)
    telling.begin(1)

    def say(paragraphs: int) -> int:
        tracemalloc.reset_peak()
        for number in range(paragraphs):
            telling.text(f"{number} " + "word " * 100 + ("\n\n" if number % 7 == 0 else "\n"))
        return tracemalloc.get_traced_memory()[1]

    tracemalloc.start()
    say(100)
    peak = say(300)
    tracemalloc.stop()
    assert sink.put_characters > 150_000
    assert sink.longest_live <= 4 * 1024
    assert peak < 4_000_000


def test_reasoning_is_kept_to_its_newest_part():
    telling = Telling(Sink())
    for number in range(100_000):
        telling.think(f"thought {number} ")
    telling.end()
    assert len(telling.reasoning) <= 256 * 1024
    assert telling.reasoning.endswith("thought 99999 ")


def test_a_paste_that_looks_like_a_fold_is_folded_itself():
    pastes = Pastes()
    first = pastes.take("x" * 2_000)
    evil = pastes.take(f"a{first}b")
    assert pastes.whole(evil) == f"a{first}b"
    assert pastes.whole(f"{first}!") == "x" * 2_000 + "!"
    assert pastes.take("a\r\nb\rc") == "a\nb\nc"
    assert pastes.pasted_in(f"see a\nb\nc {evil}") == (f"a{first}b", "a\nb\nc")


def test_rows_fit_and_wide_characters_count_twice():
    assert cells("日本語", 4) == ["日本", "語"]
    assert cells("one two three", 8, by_words=True) == ["one two ", "three"]
    assert cells("", 4) == [""]
    assert cut("abcdef", 4) == "abc…"
    assert last_rows("a\nb\nc", 10, 2) == ["b", "c"]


def test_paths_with_blanks_are_not_offered(tmp_path):
    for name in ("plain", "with blank", "tab\there", "Plain"):
        (tmp_path / name).write_text("")
    (tmp_path / "folder").mkdir()
    completer = PromptCompleter(tmp_path)

    def offered(text):
        found = completer.get_completions(Document(text), CompleteEvent())
        return [each.text for each in found]

    assert offered("see @") == ["Plain", "folder/", "plain"]
    assert offered("see @pl") == ["plain"]
    assert offered(f"(@{tmp_path}/fo") == ["folder/"]
    assert offered("mail@pl") == []
    assert offered("@missing/") == []


@pytest.mark.parametrize(
    ("given", "seconds"), [(None, 0.02), ("50", 0.05), ("0", 0.001), ("9999", 0.5), ("x", 0.02)]
)
def test_the_wait_for_a_lone_esc_can_be_set(given, seconds):
    environ = {} if given is None else {"SMISTA_ESCAPE_MS": given}
    assert escape_seconds(environ) == seconds


def test_prompts_of_encrypted_sessions_are_sealed_and_go_with_their_key(tmp_path: Path):
    here = surroundings(tmp_path)
    keys, key = SessionKeys(here.places), SessionKey(bytes(range(32)))
    keys.store(key)
    keys.record(SESSION, key.key_id)
    history.keep(here, "in clear", session_id=SESSION, sealed=False)
    history.keep(here, "a secret plan", session_id=SESSION, sealed=True)
    history.keep(here, " not kept", session_id=SESSION, sealed=False)
    content = history.history_path(here).read_text()
    assert "secret plan" not in content
    assert history.load_history(here) == ["in clear", "a secret plan"]
    with history.history_path(here).open("a") as file:
        file.write('{"session": 1}\n["x"]\n' + json.dumps("cut off")[:-3])
    assert history.load_history(here) == ["in clear", "a secret plan"]
    keys.forget(SESSION)
    assert history.load_history(here) == ["in clear"]
