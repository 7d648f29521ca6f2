"""Which key does what, and when. The order of Esc: question, then list, then the run."""

import time
from typing import Final

from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from cli.approvals import Answer
from cli.interactive.screen import Entered, Leave
from cli.interactive.window import Face

_AT_ONCE: Final = 0.02
"""Seconds between two keys that nobody types."""


def bindings(face: Face) -> KeyBindings:
    keys = KeyBindings()
    _bind_stops(keys, face)
    _bind_questions(keys, face)
    _bind_lists(keys, face)
    _bind_text(keys, face)
    return keys


def _more_is_read(face: Face) -> bool:
    """Say if other keys came in the same piece as this one."""
    return bool(face.app.key_processor.input_queue)


def _in_the_middle(face: Face) -> bool:
    """Say if keys came right before this one and right behind it, as they do in a paste."""
    return _more_is_read(face) and time.monotonic() - face.last_key < _AT_ONCE


def _bind_stops(keys: KeyBindings, face: Face) -> None:
    # Alone, Esc acts at once. With a key right behind it, it is Alt, and waits for that key.
    @keys.add("escape", eager=Condition(lambda: not _more_is_read(face)))
    def _escape(event: KeyPressEvent) -> None:
        if face.question is not None:
            face.answer(Answer(approved=False))
        elif face.menu is not None:
            face.pick(chosen=False)
        elif face.buffer.complete_state is not None:
            face.buffer.cancel_completion()
        elif face.running:
            face.stop()

    @keys.add("c-c")
    def _interrupt(event: KeyPressEvent) -> None:
        face.interrupt()

    @keys.add("c-d", filter=Condition(lambda: not face.buffer.text))
    def _leave(event: KeyPressEvent) -> None:
        face.post(Leave())

    @keys.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background(suspend_group=False)

    @keys.add("c-o")
    def _reasoning(event: KeyPressEvent) -> None:
        face.post(Entered(text="/reasoning"))


def _bind_questions(keys: KeyBindings, face: Face) -> None:
    can_agree = Condition(face.can_agree)
    can_answer = Condition(face.can_answer)
    offered = Condition(lambda: face.question is not None and face.question.always)

    # A letter answers once it stands alone for a moment: a sentence may begin with it.
    @keys.add("y", filter=can_agree)
    def _yes(event: KeyPressEvent) -> None:
        face.press("y", lambda: face.answer(Answer(approved=True)))

    @keys.add("a", filter=can_agree & offered)
    def _always(event: KeyPressEvent) -> None:
        face.press("a", lambda: face.answer(Answer(approved=True, always=True)))

    @keys.add("n", filter=can_answer)
    def _no(event: KeyPressEvent) -> None:
        face.press("n", face.refuse)

    @keys.add(" ", filter=can_answer)
    @keys.add("pagedown", filter=can_answer)
    def _more(event: KeyPressEvent) -> None:
        if face.question is not None and face.question.left:
            face.turn_page()


def _bind_lists(keys: KeyBindings, face: Face) -> None:
    in_menu = Condition(lambda: face.menu is not None)

    @keys.add("up", filter=in_menu)
    def _menu_up(event: KeyPressEvent) -> None:
        face.move(-1)

    @keys.add("down", filter=in_menu)
    def _menu_down(event: KeyPressEvent) -> None:
        face.move(1)

    @keys.add("down", filter=~in_menu & has_completions)
    def _next(event: KeyPressEvent) -> None:
        face.buffer.complete_next()

    @keys.add("up", filter=~in_menu & has_completions)
    def _previous(event: KeyPressEvent) -> None:
        face.buffer.complete_previous()

    @keys.add("tab", filter=has_completions)
    @keys.add("right", filter=has_completions)
    def _accept(event: KeyPressEvent) -> None:
        accept_completion(face)

    @keys.add("tab", filter=~has_completions)
    def _offer(event: KeyPressEvent) -> None:
        face.buffer.start_completion()


def accept_completion(face: Face) -> None:
    """Take the completion that is chosen, else the first, and go on inside a directory."""
    state = face.buffer.complete_state
    if state is None or not state.completions:
        return
    chosen = state.current_completion or state.completions[0]
    face.buffer.apply_completion(chosen)
    if chosen.text.endswith("/"):
        face.buffer.start_completion()


def _bind_text(keys: KeyBindings, face: Face) -> None:
    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        if _in_the_middle(face):
            face.buffer.insert_text("\n")  # a paste that the terminal does not mark as one
        elif face.menu is not None:
            face.pick(chosen=True)
        elif face.question is not None and (face.question.why or not face.buffer.text):
            _answer_no(face)
        else:
            _send(face)

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def _newline(event: KeyPressEvent) -> None:
        face.buffer.insert_text("\n")

    @keys.add(Keys.BracketedPaste)
    def _paste(event: KeyPressEvent) -> None:
        face.buffer.insert_text(face.pastes.take(event.data))


def _answer_no(face: Face) -> None:
    """Take Enter alone as no, but only once the question could be read."""
    if face.question is not None and face.question.why:
        reason = face.pastes.whole(face.buffer.text).strip()
        face.buffer.reset()
        face.answer(Answer(approved=False, reason=reason or None))
    elif face.can_answer():
        face.answer(Answer(approved=False))


def _send(face: Face) -> None:
    state = face.buffer.complete_state
    if state is not None and state.current_completion is not None:
        accept_completion(face)
    elif face.buffer.text.endswith("\\"):
        face.buffer.delete_before_cursor()
        face.buffer.insert_text("\n")
    elif face.buffer.text.strip():
        face.submit()
