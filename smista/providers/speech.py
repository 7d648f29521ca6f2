"""What a model says aloud and what it thinks, from pieces that may cut a character."""

from smista.core.stream import ReasoningDelta, StreamEvent, TextDelta
from smista.providers.text_pairs import TextPairs


class Speech:
    """The text and the reasoning of one answer. *spoke*: some text has been said."""

    def __init__(self) -> None:
        self._text = TextPairs()
        self._reasoning = TextPairs()
        self.spoke = False

    def say(self, piece: str) -> list[StreamEvent]:
        said = self._text.join(piece)
        self.spoke = self.spoke or bool(said)
        return [TextDelta(text=said)] if said else []

    def think(self, piece: str) -> list[StreamEvent]:
        thought = self._reasoning.join(piece)
        return [ReasoningDelta(text=thought)] if thought else []

    def rest(self) -> list[StreamEvent]:
        """Return what is left at the end."""
        thought, said = self._reasoning.rest(), self._text.rest()
        return [
            *([ReasoningDelta(text=thought)] if thought else []),
            *([TextDelta(text=said)] if said else []),
        ]
