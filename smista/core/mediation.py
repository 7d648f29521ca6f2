"""What happens to a tool call: allowed, asked, or denied, with the reason the model is told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from smista.core.arguments import parse_arguments, unknown_tool
from smista.core.calls import call_restriction, touched_paths
from smista.core.decision import Decision
from smista.core.git_calls import git_network, git_writes
from smista.core.intents import Mode, stricter
from smista.core.permissions import mode_of
from smista.core.pipeline import decide
from smista.core.privacy import guard
from smista.core.prompt import Tool
from smista.core.skills import offered_skill
from smista.core.snapshot import Snapshot
from smista.core.tools import BY_NAME, CLIENT_TOOLS, ROUTER_TOOLS

__all__ = [
    "Verdict",
    "announced",
    "mediate",
    "parse_arguments",
    "restricted_path",
    "touched_paths",
]


@dataclass(frozen=True, slots=True)
class Verdict:
    """*restricted_in_view*: the client has to say so when it asks, and suspend its grants.

    *local_from_now* is the reason why the rest of the run needs local models, if this call goes
    out: its result will hold restricted content.
    """

    mode: Mode
    reason: str
    restricted_in_view: bool = False
    local_from_now: str | None = None


def mediate(
    name: str, arguments: Mapping[str, Any], decision: Decision, snapshot: Snapshot
) -> Verdict:
    """Return the verdict on a call that the model of *decision* made. *arguments* are parsed.

    *snapshot* is the one the decision was made on.
    """
    tool = BY_NAME.get(name)
    if tool is None:
        return Verdict(Mode.DENY, unknown_tool(name))
    refusal = _refusal(tool, arguments, snapshot)
    if refusal is not None:
        return Verdict(Mode.DENY, refusal)
    mode, reason = _mode(tool, arguments, decision)
    if mode is Mode.DENY:
        return Verdict(mode, reason)
    if name in ROUTER_TOOLS and all(offer.name != name for offer in decision.prompt.tools):
        return Verdict(Mode.DENY, f"{name} was not offered to this model")
    restricted = restricted_path(name, arguments, snapshot)
    if restricted is not None and not decision.descriptor.local and not _has_local(snapshot):
        refused = f"{restricted}; a remote model may not see it, and the route has no local one"
        return Verdict(Mode.DENY, refused)
    return Verdict(mode, reason, decision.restricted_in_view, restricted)


def announced(decision: Decision) -> frozenset[str]:
    """Return the tools whose calls a client may hear of while the model still writes them."""
    return frozenset(tool.name for tool in decision.prompt.tools) - ROUTER_TOOLS


def restricted_path(name: str, arguments: Mapping[str, Any], snapshot: Snapshot) -> str | None:
    """Return why a call counts as one for a restricted path, None if it does not."""
    request = snapshot.request
    lists = guard(request.policy, request.workspace.root)
    if name == "use_skill":
        skill = offered_skill(request.attachments, str(arguments.get("name")))
        return None if skill is None or skill.path is None else lists.restricts(skill.path)
    return call_restriction(lists, name, arguments)


def _refusal(tool: Tool, arguments: Mapping[str, Any], snapshot: Snapshot) -> str | None:
    known = CLIENT_TOOLS if snapshot.offered_tools is None else snapshot.offered_tools
    if tool.name not in known:
        return f"{tool.name} is not available here"
    if snapshot.plan_mode and (tool.writes or (tool.name == "git" and _git(arguments, git_writes))):
        return f"{tool.name} may change things, and this run is in plan mode"
    return None


def _mode(tool: Tool, arguments: Mapping[str, Any], decision: Decision) -> tuple[Mode, str]:
    modes = decision.permissions
    mode = mode_of(tool, modes)
    outward = tool.permission == "network"
    if tool.name == "git" and _git(arguments, git_network):
        outward = True
        mode = stricter(mode, mode_of(BY_NAME["fetch_url"], {**modes, "fetch_url": Mode.ALLOW}))
    if decision.restricted_in_view and mode is Mode.ALLOW and (outward or tool.name == "shell"):
        return Mode.ASK, f"restricted content is in view, so {tool.name} has to be asked for"
    return mode, f"{tool.name} is set to {mode.value} ({tool.permission})"


def _git(arguments: Mapping[str, Any], question: Callable[[Sequence[str]], bool]) -> bool:
    given = arguments.get("arguments")
    return question(cast("list[str]", given) if isinstance(given, list) else ())


def _has_local(snapshot: Snapshot) -> bool:
    """Say if this turn could be served by a local model, were remote ones barred."""
    return isinstance(decide(replace(snapshot, barred="a call for a restricted path")), Decision)
