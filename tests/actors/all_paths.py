"""Runs that take every path once, played the same way each time."""

import json
from functools import partial

from smista.core.errors import ProviderUnavailable
from smista.core.events import Status, TurnEnd
from smista.core.messages import ApprovalDecision, ApprovalDecisions, ApprovalDecisionsData
from smista.core.stream import TextDelta
from tests.actors.house import USER, House, hear, outcome, request, result
from tests.actors.test_memories import together
from tests.fakes import ScriptedProvider, Stall, called, descriptor, said

FAR, NEAR = "openai-compat:a", "openai-compat:near"
MODELS = [
    descriptor(NEAR, "m", local=True),
    descriptor(
        FAR, "dear", input_cost_per_million_tokens="1000", output_cost_per_million_tokens="2000"
    ),
]
SKILL = "---\nname: changelog\ndescription: Writes changelogs\n---\nSay what users see."
KEY = "ghp_" + "Ab1" * 12
DOWN = ProviderUnavailable("the model server is down")
FIX = {"path": "src/a.txt", "old": "teh", "new": "the"}
CHAIN = {"default": {"model": f"{FAR}/m", "fallbacks": [f"{NEAR}/m"]}}
HALF = object()
"""Where the model falls silent, to be broken off."""

FAR_SAYS = [
    # tools: allowed, asked, denied, run by the router, unknown
    together(
        ("read_file", {"path": "src/a.txt"}),
        ("edit_file", FIX),
        ("shell", {"command": "rm -rf /"}),
        ("memory", {"operation": "record", "scope": "user", "key": "tone", "value": "be brief"}),
        ("memory", {"operation": "record", "scope": "session", "value": "a.txt was fixed"}),
        ("use_skill", {"name": "changelog"}),
        ("fly", {}),
    ),
    said("The typo is fixed."),
    # a write that is rejected, with a key in it
    called("write_file", json.dumps({"path": "b.env", "content": f"TOKEN={KEY}\n"})),
    said("As you wish."),
    # a plan: rejected with a reason, written again, approved, carried out
    said("1. guess"),
    said("1. look 2. write"),
    said("It is carried out."),
    # input in the middle of a pause
    called("read_file", '{"path": "c"}'),
    said("Then not."),
    # a break in the middle of an answer
    [TextDelta(text="Once upon "), HALF],
    # one failure, then an answer
    [DOWN],
    said("At the second try."),
    # failures until the chain goes on
    [DOWN],
    [DOWN],
    [DOWN],
    # a failure after something was shown
    [TextDelta(text="Half an "), DOWN],
    # a call above the ceiling, approved
    said("Worth it."),
]
NEAR_SAYS = [said("From nearby."), said("From the chain's end.")]


def providers(stall: Stall) -> tuple[ScriptedProvider, ScriptedProvider]:
    """Return the two models' servers, one remote and one local, with all they will say."""
    far = [[stall if step is HALF else step for step in script] for script in FAR_SAYS]
    return (
        ScriptedProvider(*far, provider_id=FAR, local=False),
        ScriptedProvider(*NEAR_SAYS, provider_id=NEAR, local=True),
    )


def _policy(routing=CHAIN, **modes):
    given = request().policy.model_dump(mode="json")
    keywords = [{"intent": "edit", "keywords": ["fix"]}]
    tools = {"file_read": "allow", "file_write": "ask", "shell": "deny", **modes}
    return {
        **given,
        "classification": {"rules": keywords},
        "routing": routing,
        "tools": {"permissions": tools},
        "privacy": {"remote": {"mode": "ask"}},
    }


def _files(*paths):
    files = [
        {"path": path, "content": f"teh {path}", "content_hash": "sha256:0", "required": True}
        for path in paths
    ]
    skills = [{"name": "changelog", "content": SKILL}]
    return {"files": files, "instructions": [], "available_skills": skills}


async def _decide(house: House, paused: TurnEnd, decision: str, reason=None) -> TurnEnd:
    return await outcome(await house.tell(_decision(paused, decision, reason)))


def _decision(paused: TurnEnd, decision: str, reason=None) -> ApprovalDecisions:
    assert paused.status is Status.AWAITING_APPROVAL, paused
    approval_id = paused.data["approval"]["approval_id"]
    made = ApprovalDecision(approval_id=approval_id, decision=decision, reason=reason)
    return ApprovalDecisions(data=ApprovalDecisionsData(decisions=(made,)))


async def play(house: House, stall: Stall) -> dict[str, Status]:
    """Take every path, each in a session of its own; return how the runs ended."""
    paths = {
        "tools": _tools,
        "a rejected write": _a_rejected_write,
        "a rejected disclosure": _a_rejected_disclosure,
        "a plan": _a_plan,
        "new input": _new_input,
        "a break": partial(_a_break, stall=stall),
        "a second try": partial(_run, text="once more"),
        "a fallback": partial(_run, text="and along the chain"),
        "a failure": partial(_run, text="and half of it"),
        "a ceiling raised": partial(_a_ceiling, decision="approved"),
        "a ceiling kept": partial(_a_ceiling, decision="rejected"),
        "no route": partial(_run, text="nowhere to go", policy=_policy({})),
    }
    ends: dict[str, Status] = {}
    for name, path in paths.items():
        made = await house.directory.create(USER, title=name, scope="/project", key_id=None)
        house.session_id = made.id
        ends[name] = await path(house)
    return ends


async def _agreed(house: House, turn: TurnEnd) -> TurnEnd:
    """Agree to every disclosure that is asked about; return what comes then."""
    while turn.data.get("approval", {}).get("kind") == "remote_disclosure":
        turn = await _decide(house, turn, "approved")
    return turn


async def _ask(house: House, text: str, **changes) -> TurnEnd:
    given = {"policy": _policy(), **changes}
    return await _agreed(house, await outcome(await house.execute(text, **given)))


async def _run(house: House, text: str, **changes) -> Status:
    return (await _ask(house, text, **changes)).status


async def _tools(house: House) -> Status:
    paused = await _ask(house, "fix teh typo", attachments=_files("src/a.txt"))
    read, edit = paused.data["tool_requests"]
    results = (
        result(read["call_id"], "teh a", paths=("src/a.txt",)),
        result(edit["call_id"], "edited", decision="approved"),
    )
    return (await _agreed(house, await outcome(await house.answer(*results)))).status


async def _a_rejected_write(house: House) -> Status:
    paused = await _ask(house, "write b")
    (write,) = paused.data["tool_requests"]
    refused = result(write["call_id"], "", decision="rejected")
    return (await _agreed(house, await outcome(await house.answer(refused)))).status


async def _a_rejected_disclosure(house: House) -> Status:
    given = {"policy": _policy(), "attachments": _files("/elsewhere/d.txt")}
    paused = await outcome(await house.execute("look elsewhere", **given))
    return (await _decide(house, paused, "rejected", "it is private")).status


async def _a_plan(house: House) -> Status:
    first = await _ask(house, "", input={"text": "how to go on", "command": "plan"})
    second = await _decide(house, first, "rejected", "do not guess")
    return (await _decide(house, second, "approved")).status


async def _new_input(house: House) -> Status:
    await _ask(house, "read c")
    return (await _agreed(house, await outcome(await house.inject("leave c alone")))).status


async def _a_break(house: House, stall: Stall) -> Status:
    paused = await outcome(await house.execute("tell a story", policy=_policy()))
    turn = await house.tell(_decision(paused, "approved"))
    await stall.reached.wait()
    await hear(await house.stop())
    return (await outcome(turn)).status


async def _a_ceiling(house: House, decision: str) -> Status:
    rule = {"name": "dear", "model": f"{FAR}/dear", "cost_limit": "0.0001"}
    paused = await _ask(house, "think hard", policy=_policy({"rules": [rule]}))
    return (await _decide(house, paused, decision)).status
