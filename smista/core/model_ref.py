"""Names of providers and models, and what is known about a model."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Final, NamedTuple

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    field_serializer,
)
from pydantic_core import PydanticCustomError

from smista.core.errors import InvalidModelReference, InvalidProviderName, UnknownProvider
from smista.core.intents import Capability

BUILT_IN: Final = ("anthropic", "gemini", "ollama", "openai")
COMPAT: Final = "openai-compat:"
_NAME: Final = re.compile(r"[a-z0-9_-]+\Z")


def provider_id(text: str) -> str:
    """Return the canonical provider identifier of *text* (case is ignored).

    Raises InvalidProviderName for a malformed or forbidden instance name, else UnknownProvider.
    """
    name = text.lower()
    if name in BUILT_IN:
        return name
    if not name.startswith(COMPAT):
        known = ", ".join((*BUILT_IN, f"{COMPAT}<name>"))
        raise UnknownProvider(f"{text!r} is not a provider; use one of {known}")
    instance = name.removeprefix(COMPAT)
    if not _NAME.match(instance):
        raise InvalidProviderName(
            f"{text!r}: an instance name uses lowercase letters, digits, '-' and '_'"
        )
    if instance in BUILT_IN:
        raise InvalidProviderName(
            f"{text!r}: an instance may not bear the name of a built-in provider; rename it"
        )
    return name


class ModelRef(NamedTuple):
    """A model as rules name it: `provider/model`; the model's name may itself hold `/`."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"

    @classmethod
    def parse(cls, text: str) -> "ModelRef":
        """Raises InvalidModelReference, UnknownProvider or InvalidProviderName."""
        provider, slash, model = text.partition("/")
        if not slash or not provider or not model:
            raise InvalidModelReference(f"{text!r} is not a model reference; write provider/model")
        return cls(provider_id(provider), model)


def _parse_ref(value: object) -> ModelRef:
    if isinstance(value, ModelRef):
        return value
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "a model reference is a string provider/model")
    try:
        return ModelRef.parse(value)
    except (InvalidModelReference, UnknownProvider, InvalidProviderName) as error:
        raise PydanticCustomError(
            "domain", "{message}", {"code": error.code, "message": error.message}
        ) from None


ModelReference = Annotated[ModelRef, BeforeValidator(_parse_ref), PlainSerializer(str)]


class Capabilities(BaseModel):
    """Flags of what a model supports; an absent flag means not supported."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    streaming: bool = False
    tools: bool = False
    json_output: bool = False
    system_prompt: bool = False
    images: bool = False
    reasoning: bool = False
    memory: bool = False

    def supported(self) -> frozenset[Capability]:
        return frozenset(flag for flag in Capability if getattr(self, flag.value))


def _money(value: object) -> object:
    # A binary float has already lost the price; only text and integers are exact.
    if isinstance(value, float):
        raise PydanticCustomError("decimal_type", "write the amount as a quoted decimal string")
    return value


def plain(amount: Decimal) -> str:
    """Return *amount* without exponent and without trailing zeros: `0.08`, `3`, `0`."""
    text = format(amount, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


Money = Annotated[Decimal, BeforeValidator(_money), PlainSerializer(plain)]
"""USD, exact. On the wire a decimal string."""


class ModelDescriptor(BaseModel):
    """The facts about one model (*List models*): windows in tokens, prices in USD per million."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    provider: str
    model: str
    display_name: str | None = None
    local: bool = False
    auth: str = "api_key"
    capabilities: Capabilities = Capabilities()
    max_context_tokens: int
    max_output_tokens: int | None = None
    input_cost_per_million_tokens: Money | None = None
    output_cost_per_million_tokens: Money | None = None
    cache_read_cost_per_million_tokens: Money | None = None
    cache_write_cost_per_million_tokens: Money | None = None
    default_parameters: Mapping[str, Any] = {}

    @property
    def ref(self) -> ModelRef:
        return ModelRef(self.provider, self.model)

    @property
    def requires_api_key(self) -> bool:
        return self.auth == "api_key"

    @field_serializer("capabilities")
    def _only_supported(self, value: Capabilities) -> dict[str, bool]:
        return {flag.value: True for flag in Capability if flag in value.supported()}


class ProviderDescriptor(BaseModel):
    """One provider the router can route through; `local` holds for all its models."""

    model_config = ConfigDict(frozen=True)

    id: str
    display_name: str
    local: bool = False


class Unavailable(BaseModel):
    """A provider that could not be listed, with one of the reasons of *List models*."""

    model_config = ConfigDict(frozen=True)

    provider: str
    reason: str
    message: str | None = None


class Catalog(NamedTuple):
    """What could be listed now: the models, and the providers that dropped out and why.

    *by_name* are models that no list shows, but that resolve by their exact name.
    """

    models: tuple[ModelDescriptor, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()
    by_name: tuple[ModelDescriptor, ...] = ()

    def find(self, ref: ModelRef) -> ModelDescriptor | None:
        return next((m for m in self.models if m.ref == ref), None)
