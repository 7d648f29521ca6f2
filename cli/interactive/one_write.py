"""An output that hands over whole frames, and a prompt that shows what could not be seen."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.output.vt100 import Vt100_Output

from cli.interactive.pastes import Pastes

_SYNC, _SYNCED = "\x1b[?2026h", "\x1b[?2026l"


class OneWrite(Vt100_Output):
    """Hands the terminal what was drawn in between in one piece, so that no half is ever seen."""

    _held = False

    def __init__(self, stdout: TextIO, *, term: str | None) -> None:
        def size() -> Size:
            columns, rows = os.get_terminal_size(stdout.fileno())
            return Size(rows=rows or 24, columns=columns or 80)

        super().__init__(stdout, size, term=term)

    @contextmanager
    def held(self) -> Generator[None]:
        self._held = True
        try:
            self.write_raw(_SYNC)
            yield
            self.write_raw(_SYNCED)
        finally:
            self._held = False
            self.flush()

    def flush(self) -> None:
        if not self._held:
            super().flush()

    @property
    def responds_to_cpr(self) -> bool:
        # No question to the terminal, so no answer of it among what is typed.
        return False


class Shown(Processor):
    """Shows folds by their labels, and what could not be seen by its name."""

    def __init__(self, pastes: Pastes) -> None:
        self._pastes = pastes

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        text = fragment_list_to_text(fragments)
        shown = [self._pastes.shown(char) for char in text]
        if all(map(str.__eq__, shown, text)):
            return Transformation(fragments)
        starts = [0]
        for each in shown:
            starts.append(starts[-1] + len(each))

        def to_display(index: int) -> int:
            return starts[min(index, len(text))]

        def to_source(index: int) -> int:
            return max(number for number, start in enumerate(starts) if start <= max(index, 0))

        whole = "".join(shown)
        return Transformation([("", whole)], to_display, to_source)
