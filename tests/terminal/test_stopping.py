"""Esc, Ctrl-C and what is typed while a run goes on."""

import os
import statistics

import pytest

from tests.terminal.seat import CTRL_C, ESC

STILL = 0.2
"""Seconds from Esc to the last output, on a busy machine too; the bench has the strict figure."""


def stopped_after(at, mark: bytes) -> float:
    """Press Esc and return the seconds after which no *mark* was written any more."""
    pressed = at.send(ESC)
    at.see("stopped")
    at.idle()
    late = [piece.at - pressed for piece in at.pieces if piece.at > pressed and mark in piece.data]
    return max(late, default=0.0)


def test_esc_stops_what_streams_at_once_and_the_session_goes_on(at):
    at.enter("tick")
    at.see("tick20 ")
    assert stopped_after(at, b"tick") <= STILL
    assert "tick20" in at.text
    at.say("hello", "You wrote: hello")


def test_esc_stops_a_model_that_says_nothing(at):
    at.enter("hold on")
    at.see("it begins")
    at.send(ESC)
    at.see("stopped")
    at.say("hello", "You wrote: hello")


def test_esc_stops_a_command_with_all_it_started(home, at):
    at.enter("sleep long")
    at.settle_question("run it?")
    at.send("y")
    at.see("ready-2")
    pid = int((home.project / "pid").read_text())
    at.send(ESC)
    at.see("stopped")
    at.idle()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_esc_says_no_to_a_question_first_and_stops_the_run_then(home, at):
    at.enter("sleep long")
    at.settle_question("run it?")
    at.send(ESC)
    at.see("Then not: Error: the user said no")
    at.idle()
    at.enter("fix the typo")
    at.settle_question("do it?")
    at.send(CTRL_C)
    at.see("Ctrl-C again leaves")
    at.idle()
    assert home.hello.read_text() == "Helo, world!\n"


def test_esc_stops_the_wait_for_a_busy_model(at):
    at.enter("back off")
    at.see("Esc stops")
    at.until(lambda: "default route" in "\n".join(at.lines), "the route")
    at.send(ESC)
    at.see("stopped")
    at.say("hello", "You wrote: hello")


def test_what_is_entered_during_a_run_is_told_to_the_model(at):
    at.enter("tick")
    at.see("tick5 ")
    at.enter("now say hello")
    at.see("You wrote: now say hello")
    at.idle()
    assert "+ now say hello" in at.text


def test_what_is_entered_right_before_esc_is_told_in_order_or_comes_back(at):
    at.enter("hold on")
    at.see("it begins")
    lines = [f"hold on, {word}" for word in ("one", "two", "three")]
    for line in lines:
        at.send(line)
        at.until(lambda line=line: at.typed == f"> {line}", line)
        at.send("\r")
        at.until(lambda: at.typed == ">", "entered")
    at.send(ESC)
    at.see("stopped")
    at.until(lambda: all(line in at.text for line in lines), "all of it")
    assert sorted(lines, key=at.text.rfind) == lines
    at.send("\x15" * 3)
    at.idle()
    at.say("hello", "You wrote: hello")


def test_ctrl_c_at_a_question_clears_what_was_typed_and_the_question_stands(home, at):
    at.enter("fix the typo")
    at.settle_question("do it?")
    at.send("not like that")
    at.see("Ctrl-C clears it")
    at.send(CTRL_C)
    at.until(lambda: at.typed == ">", "cleared")
    at.settle_question("do it?")
    at.send("y")
    at.see("Done: written")
    assert home.hello.read_text() == "Hello, world!\n"


def test_a_sentence_entered_at_a_question_takes_its_place(home, at):
    at.enter("fix the typo")
    at.settle_question("do it?")
    at.send("yes please but not so")
    at.see("Enter sends what you typed instead")
    at.send("\r")
    at.see("You wrote: yes please but not so")
    at.idle()
    assert home.hello.read_text() == "Helo, world!\n"


def test_what_is_typed_stays_while_answers_stream_and_after_esc(at):
    at.enter("tick")
    at.see("tick5 ")
    text = "typed while the answer comes"
    for char in text:
        at.send(char)
    at.until(lambda: at.typed == f"> {text}", "all of it")
    at.send(ESC)
    at.see("stopped")
    at.until(lambda: at.typed == f"> {text}", "still there")
    at.send("\r")
    at.see(f"You wrote: {text}")


def test_keys_are_echoed_while_two_hundred_events_a_second_stream(at):
    at.enter("tick")
    at.see("tick5 ")
    waits: list[float] = []
    typed = "> "
    for char in "thequickbrownfoxjumpsoverthelazydog":
        typed += char
        sent = at.send(char)
        at.until(lambda typed=typed: at.typed == typed, typed)
        waits.append(at.pieces[-1].at - sent)
    assert statistics.median(waits) <= 0.030, waits
    at.send(CTRL_C)
    at.see("stopped")


def test_esc_while_the_route_is_not_known_gives_the_prompt_back(own_home):
    from tests.terminal.seat import seat

    with seat(own_home) as at:
        at.enter("hello nobody")
        at.see("no router answers")
        at.until(lambda: at.typed == "> hello nobody", "the prompt is back")


def test_a_command_that_is_not_for_now_waits_in_the_prompt(at):
    at.enter("tick")
    at.see("tick5 ")
    at.enter("/clear")
    at.see("/clear has to wait")
    at.until(lambda: at.typed == "> /clear", "back")
    at.send(CTRL_C)
    at.see("stopped")
