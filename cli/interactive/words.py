"""What is typed at the prompt, read: a slash command or a prompt. Pure."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """*argument* is shown in the help. *anytime*: also while a run is going."""

    name: str
    summary: str
    argument: str = ""
    anytime: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Slash:
    """A command that was meant, with the text after it."""

    command: Command
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A slash word that is no command. *meant*: the nearest one, if any is near."""

    word: str
    meant: str | None


COMMANDS: Final = (
    Command(name="chat", summary="leave plan mode"),
    Command(name="clear", summary="clear the screen and end this session"),
    Command(name="diff", summary="show the project's uncommitted changes", anytime=True),
    Command(name="help", summary="show keys and commands", anytime=True),
    Command(name="memory", argument="[words]", summary="show what is remembered", anytime=True),
    Command(name="model", argument="[model|auto]", summary="choose a model for this session"),
    Command(name="plan", summary="plan first, act after you agree"),
    Command(
        name="preview", argument="<prompt>", summary="show the route, call no model", anytime=True
    ),
    Command(name="providers", summary="list providers, local or remote", anytime=True),
    Command(name="quit", summary="leave", anytime=True),
    Command(name="reasoning", summary="show what the model thought last", anytime=True),
    Command(name="resume", argument="[session]", summary="go on in an earlier session"),
    Command(name="skill", argument="<name>", summary="use a skill in the next prompt"),
    Command(name="skills", summary="list the skills of this project", anytime=True),
    Command(name="status", summary="show the router's state and version", anytime=True),
    Command(name="trace", summary="show what was decided, and why", anytime=True),
    Command(name="undo", summary="take back the last change of a file"),
    Command(name="usage", summary="show tokens and cost of this session", anytime=True),
)
_ALIASES: Final = {"q": "quit", "exit": "quit"}
_BY_NAME: Final = {command.name: command for command in COMMANDS}
_SLASH: Final = re.compile(r"/([A-Za-z?][\w-]*)(?:\s+(.*))?", re.S)
"""A path such as /etc/hosts is no command: its first word holds a second slash."""


def understand_line(text: str) -> Slash | Unknown | None:
    """Return the command that *text* gives, what it may have meant, or None for a prompt.

    The beginning of a name is enough where it can mean only one command.
    """
    said = _SLASH.fullmatch(text.strip())
    if said is None:
        return None
    word, rest = said[1].lower(), (said[2] or "").strip()
    name = _ALIASES.get(word, word)
    if name not in _BY_NAME:
        begun = [known for known in _BY_NAME if known.startswith(name)]
        if len(begun) != 1:
            return Unknown(word=word, meant=_nearest(word))
        name = begun[0]
    return Slash(command=_BY_NAME[name], rest=rest)


def _nearest(word: str) -> str | None:
    near = get_close_matches(word, [*_BY_NAME, *_ALIASES], n=1, cutoff=0.5)
    return near[0] if near else None


KEYS: Final = (
    ("Enter", "send; while a run is going, tell it to the model at once"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "begin a new line"),
    ("Esc", "answer no, close the list, or stop the run"),
    ("Ctrl-C", "stop or clear; twice: leave"),
    ("Ctrl-D", "leave, on an empty line"),
    ("Ctrl-O", "show what the model thought last"),
    ("Up, Down", "earlier prompts"),
    ("@path", "attach a file; Down, Up choose, Tab or Right take it"),
    ("y, a, n, Space", "at a question: yes, always in this session, no, read on"),
)


def help_text() -> str:
    """Return all keys and commands, one a line."""
    rows = [(f"/{each.name} {each.argument}".rstrip(), each.summary) for each in COMMANDS]
    rows = [*rows, ("", ""), *KEYS]
    width = max(len(left) for left, _ in rows)
    return "\n".join(f"{left.ljust(width)}  {right}".rstrip() for left, right in rows)
