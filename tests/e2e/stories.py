"""Runs that pause and speak in every way, and what has to be left of each of them."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smista.core.events import TurnEnd
from smista.core.messages import Break
from smista.core.request import ExecuteRequest
from tests.e2e.fate import Moment
from tests.e2e.house import demo_model
from tests.e2e.stubborn import Said, Stubborn, inject

LONG = "".join(f"{n} " for n in range(12))
_SLOWLY = ", ".join(f'{{ text = "{n} " }}, {{ pause_ms = 2 }}' for n in range(12))

KEEP = '{ operation = "record", scope = "session", key = "gate", value = "blue" }'

SCRIPT = f"""
[[rules]]
name = "refused"
when = {{ results = true, failed = true }}
say = [{{ text = "Then not." }}]

[[rules]]
name = "look first"
when = {{ user = 'mend', results = false }}
say = [
    {{ text = "I look first. " }},
    {{ tool = "read_file", arguments = {{ path = "hello.txt" }} }},
    {{ tool = "read_file", arguments = {{ path = "notes.txt" }} }},
]

[[rules]]
name = "then edit"
when = {{ user = 'mend', after = ["read_file"] }}
say = [
    {{ reasoning = "It is the first line. " }},
    {{ tool = "edit_file", arguments = {{ path = "hello.txt", old = "Helo", new = "Hello" }} }},
]

[[rules]]
name = "then say so"
when = {{ user = 'mend', results = true }}
say = [{_SLOWLY}]

[[rules]]
name = "a plan in words"
when = {{ user = 'plan the move' }}
say = [{{ text = "Pack. Move. Unpack." }}]

[[rules]]
name = "a shorter plan"
when = {{ user = 'shorter' }}
say = [{{ text = "Move." }}]

[[rules]]
name = "remember, and write"
when = {{ user = 'keep it', results = false }}
say = [
    {{ tool = "memory", arguments = {KEEP} }},
    {{ tool = "write_file", arguments = {{ path = "new.txt", content = "new" }} }},
]

[[rules]]
name = "one call"
when = {{ user = '(write|carry it out)', results = false }}
say = [
    {{ text = "I write. " }},
    {{ tool = "write_file", arguments = {{ path = "new.txt", content = "new" }} }},
]

[[rules]]
name = "one call was made"
when = {{ user = '(write|carry it out)', results = true }}
say = [{_SLOWLY}]

[[rules]]
name = "begin and never end"
when = {{ user = 'never end' }}
say = [{{ text = "it begins " }}, {{ hold = true }}]

[[rules]]
name = "count"
when = {{ user = 'count' }}
say = [{_SLOWLY}]

[[rules]]
name = "echo"
say = [{{ text = "You wrote: {{user}}" }}]
"""

PROVIDERS = """
[router.rate_limit]
enabled = false

[router.providers."openai-compat:abroad"]
base_url = "{model}"
local = false

[[router.providers."openai-compat:abroad".models]]
name = "demo"
max_context_tokens = 32768
input_cost_per_million_tokens = "3"
output_cost_per_million_tokens = "4"
"""

_HOME = "openai-compat:demo/demo"
_POLICY: dict[str, Any] = {
    "version": 1,
    "source": "merged",
    "classification": {
        "rules": [
            {"intent": "review", "keywords": ["abroad"]},
            {"intent": "summarize", "keywords": ["costly"]},
        ]
    },
    "routing": {
        "default": {"model": _HOME},
        "rules": [
            {
                "name": "far away",
                "intent": "review",
                "model": "openai-compat:abroad/demo",
                "fallbacks": [_HOME],
            },
            {
                "name": "not for free",
                "intent": "summarize",
                "model": _HOME,
                "cost_limit": "0.000001",
            },
        ],
    },
    "tools": {"permissions": {"file_read": "allow", "file_write": "ask"}},
    "privacy": {"remote": {"mode": "ask"}},
}
_NOTES = {"path": "notes.txt", "content": "a note", "content_hash": "-", "required": True}


def task(text: str, *, command: str | None = None, notes: bool = False) -> ExecuteRequest:
    """Return a prompt under the policy of these runs, with or without a file of notes."""
    return ExecuteRequest.model_validate(
        {
            "input": {"text": text, "command": command},
            "workspace": {"root": "/p", "referenced_paths": []},
            "policy": _POLICY,
            "local_preferences": {"auto_apply": False, "local_only": False, "no_network": False},
            "attachments": {"files": [_NOTES] if notes else [], "instructions": []},
        }
    )


@dataclass(frozen=True, kw_only=True)
class Story:
    """*play* brings a run to its end. What is left: the transcript, what tools did, and rows."""

    name: str
    play: Callable[[Stubborn], Awaitable[TurnEnd | None]]
    said: Said
    executed: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    diffs: int = 0
    approvals: int = 0
    plans: int = 0
    facts: int = 0
    model_calls: int = 1
    """Those that ended by themselves, so that their cost is known."""


async def _mend(client: Stubborn) -> TurnEnd:
    looked = await client.use_tools(await client.say(task("mend it")))
    return await client.use_tools(looked)


async def _remember(client: Stubborn) -> TurnEnd:
    return await client.use_tools(await client.say(task("keep it and write it")))


async def _refuse(client: Stubborn) -> TurnEnd:
    return await client.use_tools(await client.say(task("write it")), "rejected")


async def _abroad(client: Stubborn) -> TurnEnd:
    asked = await client.say(task("write it abroad", notes=True))
    call = await client.decide(asked, "remote_disclosure")
    return await client.decide(await client.use_tools(call), "remote_disclosure")


async def _stay(client: Stubborn) -> TurnEnd:
    asked = await client.say(task("write it abroad", notes=True))
    call = await client.decide(asked, "remote_disclosure", "rejected", "it is private")
    return await client.use_tools(call)


async def _pay(client: Stubborn) -> TurnEnd:
    asked = await client.say(task("write it, costly"))
    call = await client.decide(asked, "cost_limit")
    return await client.decide(await client.use_tools(call), "cost_limit")


async def _refuse_to_pay(client: Stubborn) -> TurnEnd:
    asked = await client.say(task("write it, costly"))
    return await client.decide(asked, "cost_limit", "rejected")


async def _plan(client: Stubborn) -> TurnEnd:
    long = await client.say(task("plan the move", command="plan"))
    short = await client.decide(long, "plan", "rejected", "shorter")
    return await client.use_tools(await client.decide(short, "plan"))


async def _inject_into_a_stream(client: Stubborn) -> TurnEnd | None:
    first, second = await client.interrupt(task("never end"), inject("count"))
    assert first == "superseded"
    if second == "completed":
        return None
    # The run was over when the router died; its client heard so and has to ask anew.
    assert second == "invalid_request"
    assert client.fate.kills > 0
    return await client.restate(task("count"))


async def _inject_into_a_pause(client: Stubborn) -> TurnEnd:
    await client.say(task("write it"))
    client.fate.meet(Moment.PAUSED)
    return await client.say(inject("count"))


async def _break_a_stream(client: Stubborn) -> None:
    assert await client.interrupt(task("never end"), Break()) == ("idle", "idle")


async def _break_a_pause(client: Stubborn) -> TurnEnd:
    await client.say(task("write it"))
    return await client.say(Break())


async def _abandon_a_pause(client: Stubborn) -> TurnEnd:
    await client.say(task("write it"))
    return await client.say(task("count"))


_ASKED = ("user", "write it")
_WROTE = [("assistant", "I write. "), ("tool", "write_file is done"), ("assistant", LONG)]
_LEFT_OFF = [("user", "never end"), ("assistant", "it begins ")]
_COUNTED = [("user", "count"), ("assistant", LONG)]
_WRITING = {"write_file": 1}

STORIES = (
    Story(
        name="tools in two rounds",
        play=_mend,
        said=[
            ("user", "mend it"),
            ("assistant", "I look first. "),
            ("tool", "read_file is done"),
            ("tool", "read_file is done"),
            ("assistant", ""),
            ("tool", "edit_file is done"),
            ("assistant", LONG),
        ],
        executed={"read_file": 2, "edit_file": 1},
        calls=3,
        diffs=1,
        approvals=1,
        model_calls=3,
    ),
    Story(
        name="a fact is kept beside a call",
        play=_remember,
        said=[
            ("user", "keep it and write it"),
            ("assistant", ""),
            ("tool", "remembered here (under 'gate')"),
            ("tool", "write_file is done"),
            ("assistant", LONG),
        ],
        executed={"write_file": 1},
        calls=2,
        diffs=1,
        approvals=1,
        facts=1,
        model_calls=2,
    ),
    Story(
        name="a call that is refused",
        play=_refuse,
        said=[
            _ASKED,
            ("assistant", "I write. "),
            ("tool", "the user rejected this call"),
            ("assistant", "Then not."),
        ],
        calls=1,
        diffs=1,
        approvals=1,
        model_calls=2,
    ),
    Story(
        name="what goes abroad is agreed to",
        play=_abroad,
        said=[("user", "write it abroad"), *_WROTE],
        executed=_WRITING,
        calls=1,
        diffs=1,
        approvals=4,
        model_calls=2,
    ),
    Story(
        name="nothing goes abroad",
        play=_stay,
        said=[("user", "write it abroad"), *_WROTE],
        executed=_WRITING,
        calls=1,
        diffs=1,
        approvals=2,
        model_calls=2,
    ),
    Story(
        name="the price is agreed to",
        play=_pay,
        said=[("user", "write it, costly"), *_WROTE],
        executed=_WRITING,
        calls=1,
        diffs=1,
        approvals=3,
        model_calls=2,
    ),
    Story(
        name="the price is refused",
        play=_refuse_to_pay,
        said=[("user", "write it, costly")],
        approvals=1,
        model_calls=0,
    ),
    Story(
        name="a plan is refused, then carried out",
        play=_plan,
        said=[
            ("user", "plan the move"),
            ("assistant", "Pack. Move. Unpack."),
            ("user", "shorter"),
            ("assistant", "Move."),
            ("user", "The plan is approved. Carry it out."),
            *_WROTE,
        ],
        executed=_WRITING,
        calls=1,
        diffs=1,
        approvals=3,
        plans=2,
        model_calls=4,
    ),
    Story(
        name="new input in the middle of a stream",
        play=_inject_into_a_stream,
        said=[*_LEFT_OFF, *_COUNTED],
    ),
    Story(
        name="new input instead of a result",
        play=_inject_into_a_pause,
        said=[
            _ASKED,
            ("assistant", "I write. "),
            ("tool", "cancelled: the user gave new input instead"),
            *_COUNTED,
        ],
        calls=1,
        diffs=1,
        model_calls=2,
    ),
    Story(
        name="a stream is broken off",
        play=_break_a_stream,
        said=_LEFT_OFF,
        model_calls=0,
    ),
    Story(
        name="a pause is broken off",
        play=_break_a_pause,
        said=[
            _ASKED,
            ("assistant", "I write. "),
            ("tool", "cancelled by the user"),
        ],
        calls=1,
        diffs=1,
    ),
    Story(
        name="a new task instead of a result",
        play=_abandon_a_pause,
        said=[
            _ASKED,
            ("assistant", "I write. "),
            ("tool", "the task was abandoned for a new one"),
            *_COUNTED,
        ],
        calls=1,
        diffs=1,
        model_calls=2,
    ),
)


@contextmanager
def scripted_model(folder: Path) -> Iterator[str]:
    """Serve the model of these runs; its address is lent."""
    with demo_model(folder, SCRIPT) as model:
        yield model
