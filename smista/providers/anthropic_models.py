"""Anthropic's list of models → descriptors, newest first."""

from typing import Any, Final

from smista.core.model_ref import Capabilities, ModelDescriptor
from smista.providers.json_values import count, is_object, items, member, text

_PROVIDER: Final = "anthropic"
_WINDOW: Final = 200_000


def parse_models(value: Any) -> tuple[ModelDescriptor, ...]:
    """Return the models that *value*, the body of the list, offers; prices are not in it."""
    return tuple(_descriptor(entry) for entry in _entries(value))


def _entries(value: Any) -> list[dict[str, Any]]:
    found = [entry for entry in items(member(value, "data")) if _is_model(entry)]
    return sorted(found, key=lambda entry: text(entry.get("created_at")), reverse=True)


def _is_model(entry: Any) -> bool:
    return is_object(entry) and text(entry.get("id")) != "" and entry.get("lifecycle") != "retired"


def _descriptor(entry: dict[str, Any]) -> ModelDescriptor:
    able = entry.get("capabilities")
    return ModelDescriptor(
        provider=_PROVIDER,
        model=entry["id"],
        display_name=text(entry.get("display_name")) or None,
        capabilities=Capabilities(
            streaming=True,
            tools=True,
            system_prompt=True,
            memory=True,
            json_output=_can(able, "structured_outputs", default=True),
            images=_can(able, "image_input", default=True),
            reasoning=_can(able, "thinking", default=True) or _can(able, "effort", default=False),
        ),
        max_context_tokens=count(entry.get("max_input_tokens")) or _WINDOW,
        max_output_tokens=count(entry.get("max_tokens")) or None,
    )


def _can(able: Any, name: str, *, default: bool) -> bool:
    supported = member(member(able, name), "supported")
    return supported if isinstance(supported, bool) else default
