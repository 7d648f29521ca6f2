"""Tools whose arguments OpenAI holds a model to."""

import json

import pytest

from smista.core.arguments import parse_arguments
from smista.core.history import Message, Role
from smista.core.prompt import Prompt
from smista.core.tools import TOOLS
from smista.providers.openai import OpenAI
from smista.providers.strict_schema import strict_schema

MEMORY = next(tool for tool in TOOLS if tool.name == "memory")


def declared(*tools):
    said = Message(uuid="1", role=Role.USER, text="hi", run_id="r")
    prompt = Prompt(model="m", system="", messages=(said,), tools=tools)
    return {tool["name"]: tool for tool in json.loads(OpenAI().request(prompt).body)["tools"]}


def test_the_memory_tool_is_strict_and_its_optional_members_may_be_null():
    tool = declared(*TOOLS)["memory"]
    assert tool["strict"] is True
    shape = tool["parameters"]
    assert shape["required"] == ["operation", "scope", "key", "value"]
    assert shape["additionalProperties"] is False
    assert shape["properties"]["key"]["type"] == ["string", "null"]
    assert shape["properties"]["scope"]["enum"] == ["user", "session"]


def test_other_tools_are_declared_as_before():
    tool = declared(*TOOLS)["read_file"]
    assert tool["strict"] is False
    assert tool["parameters"]["required"] == ["path"]


def test_what_a_strict_model_sends_is_taken():
    text = '{"operation":"forget","scope":"user","key":"k","value":null}'
    assert parse_arguments("memory", text) == {"operation": "forget", "scope": "user", "key": "k"}
    assert isinstance(parse_arguments("memory", '{"operation":null,"scope":"user"}'), str)
    assert isinstance(parse_arguments("read_file", '{"path":"a","start_line":null}'), str)


@pytest.mark.parametrize("tool", [t for t in TOOLS if t.strict], ids=lambda t: t.name)
def test_every_strict_tool_has_a_strict_schema(tool):
    assert set(strict_schema(tool.parameters)["required"]) == set(tool.parameters["properties"])


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "object", "properties": {}, "required": []},
        {**MEMORY.parameters, "anyOf": []},
    ],
)
def test_a_schema_without_a_strict_form_is_a_mistake_of_ours(parameters):
    with pytest.raises(ValueError, match="strict"):
        strict_schema(parameters)
