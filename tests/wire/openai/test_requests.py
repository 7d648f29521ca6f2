"""Requests to OpenAI, beyond the recorded bytes."""

from typing import Any

import pytest
from openai.types.responses import response_create_params
from pydantic import TypeAdapter

from tests.wire.openai.prompts import GOLDEN, ODD

SCHEMA: TypeAdapter[Any] = TypeAdapter(response_create_params.ResponseCreateParamsStreaming)


@pytest.mark.parametrize("name", GOLDEN.names)
def test_what_is_sent_has_the_shape_that_the_maker_describes(name):
    sent = SCHEMA.validate_python(GOLDEN.sent(name))
    for part in ("input", "tools"):
        list(sent.get(part, ()))  # lists are looked at as they are read


def test_the_names_of_tools_are_mapped_both_ways():
    request = GOLDEN.request("two_calls")
    ((wire, ours),) = request.names.items()
    assert ours == ODD.name
    assert len(wire) <= 64
    raw = GOLDEN.response("two_calls").replace(
        b'"name":"read_file"', b'"name":"%b"' % wire.encode()
    )
    events, fault = GOLDEN.read("two_calls", [raw])
    assert fault is None
    assert [e.name for e in events if hasattr(e, "name")] == [ODD.name] * 4
