"""The person at a machine, as whoever runs tools sees them. Knows of no terminal."""

from typing import Protocol

from cli.approvals import Answer
from cli.questions import Question


class Person(Protocol):
    """Who watches and decides: somebody at a terminal, or nobody."""

    def say(self, line: str) -> None:
        """Show *line*, which is harmless already, beside the answer."""
        ...

    def put(self, title: str, shown: str) -> None:
        """Show all of a change or command, whoever wrote it, without a question."""
        ...

    def output(self, text: str) -> None:
        """Show what a command says while it runs, as it is; it may hold anything."""
        ...

    async def ask(self, question: Question, *, always: bool = False) -> Answer | None:
        """Put *question* with all that it is about; None if there is nobody to answer.

        *always*: also offer to say yes to all such things from here on.
        """
        ...
