"""Which commands there are: where each lives and what it is for, without importing any of them."""

from enum import StrEnum
from typing import Final, NamedTuple

from cli.arguments import PROMPT
from cli.interactive.opening import INTERACTIVE


class Section(StrEnum):
    """A heading of `smista --help`; HIDDEN commands stand under none."""

    ASK = "Ask"
    LOOK_BACK = "Look back"
    SET_UP = "Set up"
    ROUTER = "The router"
    HIDDEN = ""


class Entry(NamedTuple):
    """*help* is the first line of the command's own words; a test holds the two together."""

    module: str
    help: str
    section: Section


COMMANDS: Final[dict[str, Entry]] = {
    "run": Entry(
        "cli.commands.prompt",
        "Run one prompt: the words, with what is piped in after them.",
        Section.ASK,
    ),
    "explain": Entry(
        "cli.commands.explain",
        "Show what would become of a prompt, and why: intent, rules, models, context, tools, cost.",
        Section.ASK,
    ),
    "trace": Entry(
        "cli.commands.trace",
        "Show the trace of SESSION, or of this project's newest one.",
        Section.LOOK_BACK,
    ),
    "session": Entry(
        "cli.commands.session",
        "List, show, export, import, rename, archive and delete sessions.",
        Section.LOOK_BACK,
    ),
    "usage": Entry(
        "cli.commands.usage",
        "Show what your sessions used and cost, or SESSION alone.",
        Section.LOOK_BACK,
    ),
    "memory": Entry(
        "cli.commands.memory",
        "Show, export and forget what is remembered about you.",
        Section.LOOK_BACK,
    ),
    "undo": Entry(
        "cli.commands.undo",
        "Take back the last change of a file in SESSION, or in this project's newest one.",
        Section.LOOK_BACK,
    ),
    "config": Entry(
        "cli.commands.config",
        "Create, find, show, edit and check configuration files.",
        Section.SET_UP,
    ),
    "credentials": Entry(
        "cli.commands.credentials",
        "Keep, check and remove the keys of model providers.",
        Section.SET_UP,
    ),
    "keys": Entry(
        "cli.commands.keys",
        "List, check, export and import the keys of encrypted sessions.",
        Section.SET_UP,
    ),
    "login": Entry(
        "cli.commands.login",
        "Create a local user and keep its router key.",
        Section.SET_UP,
    ),
    "apikey": Entry(
        "cli.commands.apikey",
        "Keep, check, obtain and remove the key of the router.",
        Section.SET_UP,
    ),
    "trust": Entry(
        "cli.commands.trust",
        "Decide whether this project's .smista/config.toml counts in full.",
        Section.SET_UP,
    ),
    "completion": Entry(
        "cli.commands.completion",
        "Print a script that completes commands, flags and @paths in SHELL.",
        Section.SET_UP,
    ),
    "start": Entry(
        "cli.commands.router",
        "Start the router; it goes on in the background.",
        Section.ROUTER,
    ),
    "status": Entry(
        "cli.commands.router",
        "Say whether the router answers, and its version.",
        Section.ROUTER,
    ),
    "stop": Entry(
        "cli.commands.router",
        "Stop the router and wait until it is gone.",
        Section.ROUTER,
    ),
    "demo-model": Entry(
        "cli.commands.demo_model",
        "Serve a scripted model until interrupted.",
        Section.ROUTER,
    ),
    PROMPT: Entry("cli.commands.prompt", "", Section.HIDDEN),
    INTERACTIVE: Entry("cli.interactive.command", "", Section.HIDDEN),
}
"""Command → what is known of it; the command itself is `module.command`, `-` as `_`."""
