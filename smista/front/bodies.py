"""Bytes of a body → a checked value, or an error that names places and kinds, never values."""

from collections.abc import Collection
from functools import cache, lru_cache
from itertools import islice
from typing import Annotated, Any, Final, TypeVar, cast

import trio
from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from smista.core.errors import (
    InvalidJson,
    InvalidModelReference,
    InvalidProviderName,
    InvalidRequest,
    PermissionExpansion,
    RequestError,
    RequestTooLarge,
    UnknownEffort,
    UnknownIntent,
    UnknownProvider,
    UnsupportedMediaType,
)
from smista.core.messages import Continuation
from smista.core.model_ref import Capabilities
from smista.core.policy import Frozen, Policy
from smista.core.request import ExecuteRequest
from smista.core.session_export import SessionExport
from smista.front.asked import Asked

T = TypeVar("T")

# How a fingerprint is made is its client's business: the router compares it and nothing else.
KeyId = Annotated[str, StringConstraints(pattern=r"^kf_[A-Za-z0-9_-]{1,64}$")]
Title = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]

_DOMAIN: Final[dict[str, type[RequestError]]] = {
    error.code: error
    for error in (
        InvalidModelReference,
        InvalidProviderName,
        PermissionExpansion,
        UnknownEffort,
        UnknownIntent,
        UnknownProvider,
    )
}
_FIELDS_AT_MOST: Final = 50
_LARGE: Final = 131_072
"""Bodies above this many bytes are parsed off the loop, which they would hold up otherwise."""
_VALUES_AT_MOST: Final = 100_000
"""Checking and complaining cost seconds when ten million bytes are all little values."""
IMPORTED_AT_MOST: Final = 500_000
"""The same of an exported session: about what ten million bytes of a long trace hold."""
_ERRORS_AT_MOST: Final = 1_000
_POLICIES: Final = 64
_parsers: Final = trio.CapacityLimiter(2)


class CreateSession(Frozen):
    """A session to be made; *key_id* makes it an encrypted one (*Create a session*)."""

    title: Title
    scope: str | None = None
    key_id: KeyId | None = None


class UpdateSession(Frozen):
    """What changes of a session; what is absent stays (*Update a session*)."""

    title: Title | None = None
    archived: bool | None = None


CREATE_SESSION: Final = TypeAdapter(CreateSession)
UPDATE_SESSION: Final = TypeAdapter(UpdateSession)
EXECUTE: Final = TypeAdapter(ExecuteRequest)
IMPORT: Final = TypeAdapter(SessionExport)
CONTINUATION: Final[TypeAdapter[Any]] = TypeAdapter(Continuation)


async def read_body(asked: Asked, shape: TypeAdapter[T], values: int = _VALUES_AT_MOST) -> T:
    """Return the body as *shape*; a large one may hold so many *values*.

    Raises UnsupportedMediaType, InvalidJson, RequestTooLarge, InvalidRequest or a domain error.
    """
    media = asked.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise UnsupportedMediaType("send the body as JSON with Content-Type: application/json")
    body = await asked.read()
    if len(body) > _LARGE:
        return await trio.to_thread.run_sync(parse, body, shape, values, limiter=_parsers)
    return parse(body, shape)


def parse(body: bytes, shape: TypeAdapter[T], values: int = _VALUES_AT_MOST) -> T:
    """Return *body* as *shape*; raises as `read_body` does."""
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidJson(f"the body is not JSON that can be read: {_where(error)}") from None
    if len(body) > _LARGE and _holds_more_than(values, value):
        raise RequestTooLarge(f"the body holds more than {values} values; send less")
    try:
        return shape.validate_python(_with_known_policy(value))
    except ValidationError as error:
        if error.error_count() > _ERRORS_AT_MOST:
            raise InvalidRequest("the body does not have the expected shape anywhere") from None
        raise refused(error.errors(include_url=False, include_input=False)) from None


def _with_known_policy(value: Any) -> Any:
    """Return *value* with its policy parsed, if it has one that can be: most are sent again.

    One that cannot be is left as it is, so that its faults are told with their whole place.
    """
    if not isinstance(value, dict):
        return cast("object", value)
    members = cast("dict[str, Any]", value)
    if not isinstance(members.get("policy"), dict):
        return members
    try:
        text = to_json(members["policy"])
        return {**members, "policy": _policy(text)} if len(text) <= _LARGE else members
    except ValueError:  # also what pydantic raises for a policy that does not fit
        return members


@lru_cache(maxsize=_POLICIES)
def _policy(text: bytes) -> Policy:
    """Return the policy of *text*; the same text gives the same object, parsed once."""
    return Policy.model_validate_json(text)


def _holds_more_than(most: int, value: Any) -> bool:
    """Return whether there are more than *most* members and items in *value*, at any depth."""
    seen, pending = 0, [value]
    while pending and seen <= most:
        inner = _inner(pending.pop())
        seen += len(inner)
        pending.extend(islice(inner, most))
    return seen > most


def _inner(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("Collection[Any]", value) if isinstance(value, list) else ()


def _where(error: ValueError) -> str:
    # The parser names what it expected and the position, and quotes nothing of the text.
    return str(error).splitlines()[0][:120] if str(error) else "it is empty"


def refused(errors: list[ErrorDetails]) -> RequestError:
    """Return the one error that answers *errors*; a domain problem goes before mere shape."""
    for error in errors:
        context = error.get("ctx", {})
        if error["type"] == "domain" and context.get("code") in _DOMAIN:
            field = _field(error)
            return _DOMAIN[context["code"]](str(context["message"]), fields=[field])
    fields = [_field(error) for error in errors[:_FIELDS_AT_MOST]]
    places = ", ".join(field["place"] for field in fields[:3])
    return InvalidRequest(f"the body does not have the expected shape at {places}", fields=fields)


def _field(error: ErrorDetails) -> dict[str, str]:
    # Names that are not ours come from the client (keys of maps): they count as values.
    steps = (str(step) if _is_ours(step) else "*" for step in error["loc"])
    return {"place": ".".join(("body", *steps)), "kind": error["type"]}


def _is_ours(step: int | str) -> bool:
    return isinstance(step, int) or step in _own_names()


@cache
def _own_names() -> frozenset[str]:
    names = set(Capabilities.model_fields)
    pending: list[type[Frozen]] = [Frozen]
    while pending:
        model = pending.pop()
        names.update(model.model_fields)
        pending.extend(model.__subclasses__())
        tag = model.model_fields.get("type")
        names.update({str(tag.default)} if tag else ())
    return frozenset(names)
