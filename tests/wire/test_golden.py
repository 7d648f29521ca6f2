"""The recorded bytes of all dialects: what is sent, and what an answer means in any pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.errors import BadStream
from tests.wire.anthropic.prompts import GOLDEN as ANTHROPIC
from tests.wire.compatible.prompts import GOLDEN as COMPATIBLE
from tests.wire.gemini.prompts import GOLDEN as GEMINI
from tests.wire.golden import cut
from tests.wire.ollama.prompts import GOLDEN as OLLAMA
from tests.wire.openai.prompts import GOLDEN as OPENAI

RECORDED = [
    pytest.param(golden, name, id=f"{golden.folder.name}-{name}")
    for golden in (ANTHROPIC, COMPATIBLE, GEMINI, OLLAMA, OPENAI)
    for name in golden.names
]
each_recorded = pytest.mark.parametrize(("golden", "name"), RECORDED)


@each_recorded
def test_a_prompt_is_sent_as_recorded(golden, name):
    body, request = golden.body(name), golden.request(name)
    assert golden.sent(name) == body
    assert request.url == golden.url.format(model=golden.prompts[name].model)
    assert request.stream is body.get("stream", True)
    assert request.body == golden.request(name).body


@each_recorded
def test_an_answer_means_the_recorded_events(golden, name):
    assert golden.told(name) == (golden.events(name), None)


@each_recorded
@given(data=st.data())
def test_any_chunking_gives_the_same_events(golden, name, data):
    raw = golden.response(name)
    cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=20))
    assert golden.told(name, *cut(raw, cuts)) == (golden.events(name), None)


@each_recorded
def test_every_split_in_two_gives_the_same_events(golden, name):
    raw, wanted = golden.response(name), (golden.events(name), None)
    for at in range(len(raw)):
        assert golden.told(name, raw[:at], raw[at:]) == wanted


@each_recorded
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_every_byte_alone_gives_the_same_events_whatever_ends_the_lines(golden, name, ending):
    raw = golden.response(name).replace(b"\n", ending)
    pieces = (raw[at : at + 1] for at in range(len(raw)))
    assert golden.told(name, *pieces) == (golden.events(name), None)


@each_recorded
def test_the_last_line_counts_without_its_end_and_what_is_not_whole_is_a_bad_stream(golden, name):
    raw = golden.response(name).rstrip()
    assert golden.told(name, raw) == (golden.events(name), None)
    for at in range(golden.whole(raw)):
        _, fault = golden.told(name, raw[:at])
        assert isinstance(fault, BadStream)
        assert fault.retryable
        assert fault.details["kind"] in ("truncated_stream", "empty_response")
