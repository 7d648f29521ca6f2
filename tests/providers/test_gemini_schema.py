"""Tool schemas in Gemini's subset: accepted, and with their meaning kept."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from smista.core.tools import TOOLS
from smista.providers.gemini_schema import gemini_schema

TAKEN = {
    *("type", "format", "description", "nullable", "enum", "items", "properties", "required"),
    *("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"),
    *("minimum", "maximum", "pattern", "anyOf"),
}
TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"}


def check(schema: Any) -> None:
    """Fail unless *schema* holds only what the API's Schema object has."""
    assert set(schema) <= TAKEN
    assert ("anyOf" in schema) != ("type" in schema)
    assert schema.get("type", "STRING") in TYPES
    if "enum" in schema:
        assert schema["type"] == "STRING"
        assert all(isinstance(value, str) for value in schema["enum"])
    if schema.get("type") == "ARRAY":
        check(schema["items"])
    for inner in [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]:
        check(inner)
    assert set(schema.get("required", [])) <= set(schema.get("properties", {}))


def member(**schema: Any) -> Any:
    """Return what *schema* becomes as the one member of an object."""
    made = gemini_schema({"type": "object", "properties": {"x": schema}})
    assert made is not None
    check(made)
    return made["properties"]["x"]


def test_our_own_tools_are_taken():
    for tool in TOOLS:
        made = gemini_schema(tool.parameters)
        assert made is not None
        check(made)
        assert set(made["properties"]) == set(tool.parameters["properties"])


def test_fc_49_a_tool_without_parameters_has_no_schema():
    assert gemini_schema({}) is None
    assert (
        gemini_schema({"type": "object", "properties": {}, "additionalProperties": False}) is None
    )


def test_fc_49_a_schema_with_everything_at_once_keeps_its_meaning():
    made = gemini_schema(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": False,
            "$defs": {"Age": {"type": "integer", "exclusiveMinimum": 0, "description": "Years"}},
            "properties": {
                "age": {"$ref": "#/$defs/Age"},
                "kind": {"const": "a", "description": "Which"},
                "page": {"type": "string", "format": "uri", "default": "http://x"},
                "name": {"type": ["string", "null"]},
                "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"const": 7}]}},
                "size": {"type": "number", "exclusiveMaximum": 2.5},
            },
            "required": ["age", "gone"],
        }
    )
    check(made)
    assert made == {
        "type": "OBJECT",
        "properties": {
            "age": {"type": "INTEGER", "minimum": 1, "description": "Years"},
            "kind": {"type": "STRING", "enum": ["a"], "description": "Which"},
            "page": {"type": "STRING", "description": 'Format: uri. Default: "http://x".'},
            "name": {"type": "STRING", "nullable": True},
            "tags": {
                "type": "ARRAY",
                "items": {
                    "anyOf": [{"type": "STRING"}, {"type": "NUMBER", "description": "One of: 7."}]
                },
            },
            "size": {"type": "NUMBER", "description": "Less than 2.5."},
        },
        "required": ["age"],
    }


def test_null_among_alternatives_is_a_flag():
    assert member(anyOf=[{"type": "string"}, {"type": "null"}]) == {
        "type": "STRING",
        "nullable": True,
    }


def test_several_types_are_alternatives():
    made = member(type=["string", "integer"], description="Either")
    assert made == {
        "anyOf": [{"type": "STRING"}, {"type": "INTEGER"}],
        "description": "Either",
    }


def test_parts_of_all_of_are_one():
    made = member(
        allOf=[
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "boolean"}}},
        ]
    )
    assert made["type"] == "OBJECT"
    assert set(made["properties"]) == {"a", "b"}
    assert made["required"] == ["a"]


def test_a_schema_that_refers_to_itself_ends():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    made = gemini_schema({"$ref": "#/$defs/Node", "$defs": {"Node": node}})
    check(made)
    twice = {"$ref": "#/$defs/Tree"}
    tree = {"type": "object", "properties": dict.fromkeys("abcdefgh", twice)}
    check(gemini_schema({"$ref": "#/$defs/Tree", "$defs": {"Tree": tree}}))
    loop = gemini_schema(
        {
            "properties": {"x": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
        }
    )
    check(loop)


def test_an_array_says_what_it_holds():
    assert member(type="array") == {"type": "ARRAY", "items": {"type": "STRING"}}
    assert member(items={"type": "integer"})["items"] == {"type": "INTEGER"}


WORDS = st.sampled_from(
    [
        *("type", "items", "properties", "required", "anyOf", "oneOf", "allOf", "enum", "const"),
        *("$ref", "format", "default", "minimum", "exclusiveMinimum", "description", "title"),
    ]
)
LEAVES = st.sampled_from(
    [None, True, 0, 3, 1.5, "", "string", "null", "object", "array", "#/properties", "#/x/y", "uri"]
)
SCHEMAS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5)
)


@given(st.dictionaries(WORDS, SCHEMAS, max_size=5))
def test_nonsense_becomes_a_schema_or_none(schema):
    made = gemini_schema({"properties": {"x": schema}})
    if made is not None:
        json.dumps(made)
        for inner in made["properties"].values():
            assert set(inner) <= TAKEN
