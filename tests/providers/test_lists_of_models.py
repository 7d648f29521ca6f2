"""Whatever a provider sends for a list of models, reading it raises nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.model_ref import ModelDescriptor
from smista.providers.anthropic_models import parse_models as parse_anthropic
from smista.providers.facts import load_facts
from smista.providers.gemini_models import parse_models as parse_gemini
from smista.providers.openai_models import parse_names

NAMES = (
    *("data", "id", "display_name", "created_at", "lifecycle", "line", "capabilities"),
    *("max_input_tokens", "max_tokens", "thinking", "supported", "models", "name", "displayName"),
    *("supportedGenerationMethods", "inputTokenLimit", "outputTokenLimit"),
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "gpt-5", "claude-x-1", "models/gemini-9", "generateContent", "retired"])
    | st.text(max_size=5)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6)
    ),
    max_leaves=20,
)
ENTRIES = st.lists(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=8), max_size=3)


@given(JSON, ENTRIES)
def test_any_json_at_all_makes_a_list_of_models(value, entries):
    for given_ in (value, {"data": entries, "models": entries}):
        for parse in (parse_anthropic, parse_gemini):
            assert all(isinstance(model, ModelDescriptor) for model in parse(given_))
        for name in parse_names(given_):
            assert load_facts().openai(name).model == name


@pytest.mark.parametrize(
    ("name", "talks"),
    [
        ("gpt-6.2-sol", True),
        ("gpt-4o-mini-2024-07-18", True),
        ("chatgpt-4o-latest", True),
        ("o3", True),
        ("gpt-4o-audio-preview", False),
        ("gpt-realtime", False),
        ("gpt-image-2", False),
        ("gpt-4o-transcribe", False),
        ("gpt-4o-search-preview", False),
        ("gpt-3.5-turbo-instruct", False),
        ("text-embedding-3-small", False),
        ("omni-moderation-latest", False),
        ("whisper-1", False),
        ("dall-e-3", False),
        ("sora-2", False),
    ],
)
def test_of_openais_list_only_models_that_answer_text_with_text_are_taken(name, talks):
    assert parse_names({"data": [{"id": name}]}) == ((name,) if talks else ())
