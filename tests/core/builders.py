"""Snapshots for tests of the core, made from as little as a test has to say."""

from typing import Any

from smista.core.decision import Decision, Refusal
from smista.core.history import Call, Message, Role
from smista.core.model_ref import Capabilities, ModelDescriptor
from smista.core.pipeline import decide
from smista.core.request import ExecuteRequest
from smista.core.snapshot import Snapshot

ROOT = "/home/u/project"


def model(name: str, **facts: Any) -> ModelDescriptor:
    provider, _, rest = name.partition("/")
    local = facts.pop("local", provider == "ollama")
    base: dict[str, Any] = {
        "auth": "none" if local else "api_key",
        "capabilities": Capabilities(streaming=True, tools=True, reasoning=True, images=True),
        "max_context_tokens": 100_000,
    }
    return ModelDescriptor(provider=provider, model=rest, local=local, **{**base, **facts})


def request(**parts: Any) -> ExecuteRequest:
    policy = {
        "version": 1,
        "source": "merged",
        "classification": parts.get("classification", {}),
        "routing": parts.get("routing", {"default": {"model": "ollama/small"}}),
        "tools": parts.get("tools", {}),
        "privacy": parts.get("privacy", {}),
    }
    return ExecuteRequest.model_validate(
        {
            "input": {"text": "hello", **parts.get("input", {})},
            "workspace": {"root": ROOT, "referenced_paths": [], **parts.get("workspace", {})},
            "policy": policy,
            "local_preferences": {
                "auto_apply": False,
                "local_only": False,
                "no_network": False,
                **parts.get("preferences", {}),
            },
            "attachments": {"files": [], "instructions": [], **parts.get("attachments", {})},
        }
    )


def file(path: str, content: str = "text", **more: Any) -> dict[str, Any]:
    return {"path": path, "content": content, "content_hash": "h", "required": False, **more}


def snapshot(text: str = "hello", **facts: Any) -> Snapshot:
    made = facts.pop("request", None) or request()
    base: dict[str, Any] = {
        "models": (model("ollama/small"),),
        "credentials": frozenset({"openai", "anthropic"}),
        "run_id": "run",
    }
    return Snapshot(request=made, text=text, **{**base, **facts})


def said(uuid: str, text: str, role: Role = Role.USER, **more: Any) -> Message:
    return Message(uuid=uuid, role=role, text=text, **{"run_id": "old", **more})


def called(uuid: str, name: str, arguments: str, **more: Any) -> Message:
    call = Call(call_id=f"call-{uuid}", provider_call_id="p", name=name, arguments=arguments)
    return said(uuid, "", Role.ASSISTANT, calls=(call,), **more)


def answered(uuid: str, text: str, **more: Any) -> Message:
    return said(f"{uuid}-result", text, Role.TOOL, call_id=f"call-{uuid}", **more)


def decided(taken: Snapshot) -> Decision:
    decision = decide(taken)
    assert isinstance(decision, Decision), decision
    assert decide(taken) == decision
    return decision


def refused(taken: Snapshot) -> Refusal:
    refusal = decide(taken)
    assert isinstance(refusal, Refusal), refusal
    return refusal


def prompt_text(decision: Decision) -> str:
    """Return every word that the model of *decision* would be sent."""
    prompt = decision.prompt
    calls = [call.name + call.arguments for m in prompt.messages for call in m.calls]
    texts = [m.text for m in prompt.messages]
    return "\n".join((prompt.system, *texts, *calls, *(image.data for image in prompt.images)))
