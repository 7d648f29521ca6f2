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
from cli.interactive.rows import cells, cut, first_that_fits, last_rows, wrapped
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


def test_a_long_line_goes_on_below_its_last_column():
    line = "12:00:01  intent    chat: nothing matched, so it is the default"
    assert wrapped(line, 44, least=2) == [
        "12:00:01  intent    chat: nothing matched,",
        "                    so it is the default",
    ]
    assert wrapped("one two three", 8, least=2) == ["one two", "  three"]
    assert wrapped(line, 24, least=2)[1].startswith("  chat: nothing")
    assert wrapped(f"at https://{'x' * 40}", 20) == ["at", f"https://{'x' * 40}"]
    assert wrapped("日本 日本 日本", 10) == ["日本 日本", "日本"]
    assert wrapped("", 10) == [""]


def test_narrow_and_wide_characters_are_cut_alike():
    for line in ("one two  three", "  a b", "word" * 9, "a " * 20, ""):
        for columns in range(2, 12):
            wide = cells(line.replace("e", "é"), columns, by_words=True)
            assert cells(line, columns, by_words=True) == [each.replace("é", "e") for each in wide]


def test_what_is_said_ever_shorter_is_said_as_long_as_there_is_room():
    forms = ("chat · there/demo · 0.1 USD", "demo · 0.1 USD")
    assert first_that_fits(forms, 40) == forms[0]
    assert first_that_fits(forms, 20) == forms[1]
    assert first_that_fits(forms, 8) == "demo · …"


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
