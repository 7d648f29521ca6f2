"""The prompt, its status line and what is going on right above it, drawn by one thread.

Everything but `run` is called in that thread. Finished text is written above the prompt into the
terminal's own scrollback, never on an alternate screen. It knows nothing of routers.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.input.base import Input as Keyboard
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    VerticalAlign,
    Window,
)
from prompt_toolkit.layout.controls import UIControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import (
    BeforeInput,
)
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from cli.approvals import Answer
from cli.interactive.completion import PromptCompleter
from cli.interactive.one_write import OneWrite, Shown
from cli.interactive.pastes import Pastes
from cli.interactive.rows import first_that_fits, last_rows, wrapped
from cli.interactive.screen import Asked, Entered, Input, Leave, Row, Stop

SETTLED: Final = 0.3
"""Seconds a question is on screen before a key answers it."""

ALONE: Final = 0.15
"""Seconds after which a letter is no beginning of a sentence any more."""

TWICE: Final = 2.0
"""Seconds in which a second Ctrl-C leaves."""

LIVE_ROWS: Final = 12
_LIST_ROWS: Final = 10
_MENU_ROWS: Final = 8
_INPUT_ROWS: Final = 8
_FRAME: Final = 1 / 30
_STYLE: Final = Style.from_dict(
    {
        "mark": "bold",
        "asked": "bold",
        "chosen": "reverse",
        "completion-menu": "noinherit",
        "completion-menu.completion": "noinherit",
        "completion-menu.completion.current": "noinherit reverse",
        "completion-menu.meta.completion": "noinherit",
        "completion-menu.meta.completion.current": "noinherit reverse",
        "scrollbar.background": "noinherit",
        "scrollbar.button": "noinherit reverse",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """*left*: the rows that were not on screen yet. *why*: it was a no, and why is being typed.

    *told*: a model is told why. *shown_at*: when the newest of its rows came on screen.
    """

    ticket: int
    asked: str
    left: tuple[Row, ...]
    always: bool
    told: bool
    shown_at: float
    why: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    ticket: int
    title: str
    options: tuple[str, ...]
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """*escape*: seconds after which an Esc is no beginning of an arrow key any more."""

    output: OneWrite
    completer: PromptCompleter
    prompts: Sequence[str]
    colour: bool
    escape: float


class Face:
    """The state of the terminal, and the application that draws it.

    *keys* says which key does what. *post* takes what the person did, *answered* what they said
    to a question or a menu, by its ticket; both are called in the drawing thread.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        keys: Callable[["Face"], KeyBindings],
        post: Callable[[Input], None],
        answered: Callable[[int, Answer | int | None], None],
    ) -> None:
        self.pastes = Pastes()
        self.post = post
        self._answered = answered
        self.question: Question | None = None
        self.menu: Menu | None = None
        self.running = 0
        self.muted = 0
        self._live = ""
        self._status: tuple[str, ...] = ()
        self._since = 0.0
        self._mark = "> "
        self._drawn_at = 0.0
        self._drawing_later = False
        self._stopped_at = float("-inf")
        self.last_key = float("-inf")
        self._output = setup.output
        self.buffer = Buffer(
            completer=ThreadedCompleter(setup.completer),
            complete_while_typing=Condition(self._may_complete),
            history=InMemoryHistory([self.pastes.put_back(each) for each in setup.prompts]),
            multiline=True,
        )
        self.app: Application[None] = Application(
            layout=Layout(self._body(), focused_element=self.buffer),
            key_bindings=keys(self),
            style=_STYLE,
            color_depth=ColorDepth.DEPTH_4_BIT if setup.colour else ColorDepth.DEPTH_1_BIT,
            output=setup.output,
            input=_keyboard(),
            full_screen=False,
            erase_when_done=True,
            mouse_support=False,
        )
        self.app.ttimeoutlen = setup.escape
        self.app.key_processor.after_key_press += self._note_key

    def run(self, ready: Callable[[], None]) -> None:
        """Draw and read keys until `leave`; the terminal is as before when this returns."""
        try:
            self.app.run(pre_run=ready, handle_sigint=False, set_exception_handler=False)
        except EOFError:
            self.post(Leave())  # the terminal is gone

    def _note_key(self, _sender: object) -> None:
        self.last_key = time.monotonic()

    # What the session wants shown.

    def print(self, text: str, *, live: str | None = None) -> None:
        """Write *text* above the prompt, and let *live* take the place of what was shown there."""
        if live is not None:
            self._live = live
        with self._output.held():
            self.app.renderer.erase(leave_alternate_screen=False)
            self._output.write_raw(text.replace("\n", "\r\n"))
            self._draw()

    def show_live(self, text: str, run: int) -> None:
        if run != self.muted:
            self._live = text
            self.refresh()

    def show_status(self, forms: Sequence[str]) -> None:
        self._status = tuple(forms)
        self.refresh()

    def set_mark(self, mark: str) -> None:
        self._mark = mark
        self.refresh()

    def begin(self, run: int) -> None:
        self.running, self.muted, self._since = run, 0, time.monotonic()
        self._tick()

    def end(self, run: int) -> None:
        if self.running == run:
            self.running, self._live = 0, ""
            self.refresh()

    def resize(self) -> None:
        self.app.renderer.erase(leave_alternate_screen=False)
        self._draw()

    def clear(self) -> None:
        self.app.renderer.clear()
        self._draw()

    def leave(self) -> None:
        if self.app.is_running:
            self.app.exit()

    def put_back(self, text: str) -> None:
        """Put *text* before what is typed by now."""
        folded, typed = self.pastes.put_back(text), self.buffer.text
        self.buffer.text = f"{folded}\n{typed}" if typed else folded
        self.buffer.cursor_position = len(self.buffer.text)

    def ask(self, ticket: int, asked: Asked) -> None:
        self.menu = None
        self._live = ""
        self.question = Question(
            ticket=ticket,
            asked=asked.asked,
            left=asked.rows,
            always=asked.always,
            told=asked.told,
            shown_at=time.monotonic(),
        )
        self.turn_page(asked.title)

    def choose(self, ticket: int, title: str, options: Sequence[str]) -> None:
        self.menu = Menu(ticket=ticket, title=title, options=tuple(options))
        self.refresh()

    def withdraw(self, ticket: int) -> None:
        """Close the question or the menu; nobody waits for its answer any more."""
        if self.question is not None and self.question.ticket == ticket:
            self.question = None
        if self.menu is not None and self.menu.ticket == ticket:
            self.menu = None
        self.refresh()

    # What the keys do.

    def turn_page(self, before: str = "") -> None:
        """Bring more of the question on screen, as much as fits."""
        if self.question is None:
            return
        size = self._output.get_size()
        room = max(3, size.rows - 7)
        taken = 0
        page: list[str] = []
        for row in self.question.left:
            height = row.height(size.columns)
            if page and taken + height > room:
                break
            page.append(row.text)
            taken += height
        left = self.question.left[len(page) :]
        self.question = replace(self.question, left=left, shown_at=time.monotonic())
        self.print(before + "".join(page))

    def can_answer(self) -> bool:
        """Say if a key may answer the question now: nothing typed is ever taken for an answer."""
        asked = self.question
        if asked is None or asked.why or self.buffer.text:
            return False
        return time.monotonic() - asked.shown_at >= SETTLED

    def can_agree(self) -> bool:
        return self.can_answer() and self.question is not None and not self.question.left

    def answer(self, answer: Answer) -> None:
        if self.question is not None:
            ticket, self.question = self.question.ticket, None
            self.refresh()
            self._answered(ticket, answer)

    def press(self, letter: str, action: Callable[[], None]) -> None:
        """Do *action* soon, if nothing but *letter* is typed by then and the question stands."""
        asked, loop = self.question, self.app.loop
        self.buffer.insert_text(letter)

        def act() -> None:
            if self.question is asked and self.buffer.text == letter:
                self.buffer.reset()
                action()

        if loop is not None:
            loop.call_later(ALONE, act)

    def refuse(self) -> None:
        """Say no, and where a model waits for the answer, ask why."""
        if self.question is not None and not self.question.told:
            self.answer(Answer(approved=False))
        elif self.question is not None:
            self.question = replace(self.question, why=True)
            self.refresh()

    def move(self, step: int) -> None:
        if self.menu is not None:
            at = (self.menu.at + step) % len(self.menu.options)
            self.menu = replace(self.menu, at=at)
            self.refresh()

    def pick(self, *, chosen: bool) -> None:
        if self.menu is not None:
            menu, self.menu = self.menu, None
            self.refresh()
            self._answered(menu.ticket, menu.at if chosen else None)

    def submit(self) -> None:
        """Send what is typed."""
        self._stopped_at = float("-inf")
        typed = self.buffer.text
        text, pasted = self.pastes.whole(typed), self.pastes.pasted_in(typed)
        self.buffer.reset(append_to_history=True)
        self.post(Entered(text=text, pasted=pasted))

    def stop(self) -> None:
        """Show no more of the run from this moment on, and ask for its end."""
        self.muted = self.running
        self.post(Stop())

    def interrupt(self) -> None:
        """Do what Ctrl-C does: stop or clear, and at the second time leave."""
        now = time.monotonic()
        if now - self._stopped_at < TWICE:
            self.post(Leave())
            return
        self._stopped_at = now
        if self.question is not None and self.buffer.text:
            self.buffer.reset(append_to_history=True)  # the question stands
        else:
            self._refuse_all()
            if self.running:
                self.stop()
            elif self.buffer.text:
                self.buffer.reset(append_to_history=True)
        self.print("Ctrl-C again leaves, and so does Ctrl-D on an empty line\n")

    def _refuse_all(self) -> None:
        if self.menu is not None:
            self.pick(chosen=False)
        if self.question is not None:
            self.answer(Answer(approved=False))

    # Drawing.

    def refresh(self) -> None:
        """Draw soon: at once after a pause, else with the next frame."""
        loop = self.app.loop
        if loop is None or self._drawing_later:
            return
        wait = self._drawn_at + _FRAME - time.monotonic()
        if wait <= 0:
            self._draw_frame()
        else:
            self._drawing_later = True
            loop.call_later(wait, self._draw_frame)

    def _draw_frame(self) -> None:
        self._drawing_later = False
        self._drawn_at = time.monotonic()
        self.app.invalidate()

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        self.app.render_counter += 1  # or what is shown would be what was shown last
        self.app.renderer.render(self.app, self.app.layout)

    def _tick(self) -> None:
        # The elapsed time goes on where nothing else happens.
        loop = self.app.loop
        if self.running and loop is not None:
            self.refresh()
            loop.call_later(0.5, self._tick)

    def _may_complete(self) -> bool:
        text = self.buffer.document.text_before_cursor[-4096:]
        return self.menu is None and (text.startswith("/") or "@" in text)

    def _body(self) -> FloatContainer:
        prompt = BufferControl(
            self.buffer,
            input_processors=[
                Shown(self.pastes),
                BeforeInput(lambda: [("class:mark", self._mark)]),
            ],
        )
        rows = HSplit(
            [
                _part(FormattedTextControl(self._live_text), self._has_live, LIVE_ROWS, wrap=False),
                _part(FormattedTextControl(self._modal_text), self._has_modal, _LIST_ROWS + 3),
                Window(
                    prompt,
                    height=Dimension(min=1, max=_INPUT_ROWS),
                    wrap_lines=True,
                    dont_extend_height=True,
                ),
                # The application is as high as its content: room for the list of completions.
                ConditionalContainer(
                    Window(height=Dimension(min=0, preferred=_MENU_ROWS, max=_MENU_ROWS)),
                    filter=has_completions,
                ),
                Window(FormattedTextControl(self._status_text), height=1, dont_extend_height=True),
            ],
            align=VerticalAlign.TOP,
        )
        menu = CompletionsMenu(max_height=_MENU_ROWS, scroll_offset=1)
        return FloatContainer(rows, [Float(menu, xcursor=True, ycursor=True)])

    def _has_live(self) -> bool:
        return bool(self._live) and self.question is None

    def _has_modal(self) -> bool:
        return self.question is not None or self.menu is not None

    def _live_text(self) -> StyleAndTextTuples:
        size = self._output.get_size()
        rows = max(1, min(LIVE_ROWS, size.rows - 5))
        return [("", "\n".join(last_rows(self._live, size.columns, rows)))]

    def _modal_text(self) -> StyleAndTextTuples:
        if self.menu is not None:
            return _menu_text(self.menu)
        return [] if self.question is None else self._question_text(self.question)

    def _question_text(self, question: Question) -> StyleAndTextTuples:
        rows = "\n".join(wrapped(question.asked, self._output.get_size().columns))
        asked: StyleAndTextTuples = [("class:asked", f"{rows}\n")]
        hint = "\n".join(wrapped(self._hint(question), self._output.get_size().columns))
        return [*asked, ("", hint)]

    def _hint(self, question: Question) -> str:
        if question.why:
            return "no; tell the model why, or press Enter alone"
        if self.buffer.text not in ("", "y", "a", "n"):
            return "Enter sends what you typed instead; Ctrl-C clears it"
        if question.left:
            lines = "1 more line" if len(question.left) == 1 else f"{len(question.left)} more lines"
            return f"{lines}: Space · n no"
        always = " · a yes, always in this session" if question.always else ""
        return f"y yes{always} · n no"

    def _status_text(self) -> StyleAndTextTuples:
        forms = [form for form in self._status if form]
        if self.running:
            # First, so that it is there in a narrow terminal as well.
            clock = f"{time.monotonic() - self._since:.0f} s"
            going = clock if self._has_modal() else f"{clock} · Esc stops"
            forms = [f"{going} · {form}" for form in forms] or [going]
        room = self._output.get_size().columns - 1
        return [("", first_that_fits(forms or ["/help · @file · Ctrl-D leaves"], room))]


def _keyboard() -> Keyboard:
    return create_input()


def _part(
    control: UIControl, shown: Callable[[], bool], most: int, *, wrap: bool = True
) -> ConditionalContainer:
    window = Window(
        control, height=Dimension(min=0, max=most), wrap_lines=wrap, dont_extend_height=True
    )
    return ConditionalContainer(window, filter=Condition(shown))


def _menu_text(menu: Menu) -> StyleAndTextTuples:
    first = max(0, min(menu.at - _LIST_ROWS // 2, len(menu.options) - _LIST_ROWS))
    shown = menu.options[first : first + _LIST_ROWS]
    text: StyleAndTextTuples = [("class:asked", f"{menu.title}\n")]
    for number, option in enumerate(shown, first):
        chosen = number == menu.at
        text.append(("class:chosen" if chosen else "", f"{'>' if chosen else ' '} {option}\n"))
    text.append(("", f"{menu.at + 1} of {len(menu.options)} · Enter takes it · Esc closes"))
    return text
