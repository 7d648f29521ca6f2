"""The calls that the router runs itself: memory and use_skill. Nothing in here waits.

A call is settled in the draft of its turn, like one that a client answers.
"""

from collections.abc import Mapping
from typing import Any

from actors.draft import Draft
from smista.core.arguments import parse_arguments
from smista.core.facts import recalled
from smista.core.intents import Mode
from smista.core.records import MemoryRecord, MemoryScope, ToolCallRecord
from smista.core.remembering import Owner, Remembered, remember
from smista.core.secret import Plain
from smista.core.skills import instructions, offered_skill
from smista.core.snapshot import Fact

_CHANGES = ("record", "update")
_MASKED = "the call held a key, which is not kept, so it was not run; ask again without it"
_KEPT_HERE = (
    "; the session is encrypted, so it is kept for this session alone, unless the user sets"
    ' memory = "allow" under [tools.permissions]'
)


def run_own_call(draft: Draft, call_id: str, *, local: bool) -> None:
    """Run a call of a router's tool that may be run. *local*: its model runs on this machine."""
    call = draft.state.calls[call_id]
    if call.masked:
        draft.answer_call(call_id, _MASKED, is_error=True, paths=())
        return
    written = call.arguments.text if isinstance(call.arguments, Plain) else ""
    arguments = parse_arguments(call.tool_name, written)
    if isinstance(arguments, str):
        draft.answer_call(call_id, arguments, is_error=True, paths=())
    elif call.tool_name == "use_skill":
        _use_skill(draft, call, str(arguments["name"]))
    else:
        done, redirected = _outcome(draft, call, arguments, local=local)
        _apply(draft, done)
        told = done.told + (_KEPT_HERE if redirected and done.written else "")
        draft.answer_call(call.id, told, is_error=done.is_error, paths=())


def cannot_succeed(
    draft: Draft, call_id: str, arguments: Mapping[str, Any], *, local: bool
) -> bool:
    """Say if a call fails whatever its user says, so that nobody need be asked."""
    call = draft.state.calls[call_id]
    if call.tool_name == "use_skill":
        attachments = draft.input.request.attachments
        return offered_skill(attachments, str(arguments["name"])) is None
    return _outcome(draft, call, arguments, local=local)[0].is_error


def recall(draft: Draft) -> tuple[Fact, ...]:
    """Return what the next prompt may hold of what is remembered."""
    return recalled((*draft.state.facts, *draft.memory.of_user))


def _use_skill(draft: Draft, call: ToolCallRecord, name: str) -> None:
    attachments = draft.input.request.attachments
    skill = offered_skill(attachments, name)
    if skill is None:
        names = ", ".join(each.name for each in attachments.available_skills)
        text = f"there is no skill {name!r} on offer; there are {names or 'none'}"
        draft.answer_call(call.id, text, is_error=True, paths=())
        return
    paths = () if skill.path is None else (skill.path,)
    draft.answer_call(call.id, instructions(skill), is_error=False, paths=paths)


def _outcome(
    draft: Draft, call: ToolCallRecord, arguments: Mapping[str, Any], *, local: bool
) -> tuple[Remembered, bool]:
    """Return what becomes of a memory call, and whether it is kept for the session instead."""
    scope = MemoryScope(str(arguments["scope"]))
    redirected = scope is MemoryScope.USER and _stays_here(draft, arguments)
    scope = MemoryScope.SESSION if redirected else scope
    owner = _owner(draft, scope, call, local=local)
    return remember(arguments, _facts(draft, scope), owner), redirected


def _stays_here(draft: Draft, arguments: Mapping[str, Any]) -> bool:
    """Say if a fact for the user has to stay in an encrypted session: the policy may allow it."""
    modes = draft.input.request.policy.tools.permissions
    agreed = modes.get("memory") is Mode.ALLOW
    return draft.state.session.encrypted and not agreed and arguments["operation"] in _CHANGES


def _facts(draft: Draft, scope: MemoryScope) -> tuple[MemoryRecord, ...]:
    return draft.memory.of_user if scope is MemoryScope.USER else draft.state.facts


def _owner(draft: Draft, scope: MemoryScope, call: ToolCallRecord, *, local: bool) -> Owner:
    session = draft.state.session
    of_user = scope is MemoryScope.USER
    return Owner(
        scope=scope,
        id=session.user_id if of_user else session.id,
        now=draft.now,
        new_id=lambda: draft.new_id("user_memory" if of_user else "context_memory"),
        restricted=call.restricted,
        local=local,
    )


def _apply(draft: Draft, done: Remembered) -> None:
    if done.written is not None:
        draft.write_fact(done.written)
    if done.dropped is not None:
        draft.drop_fact(done.dropped)
