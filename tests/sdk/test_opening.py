"""Traces and usage of an encrypted session, as its own client reads them."""

import pytest

from smista.core.session_key import SessionKey
from smista.sdk.answers import RememberedFact, StoredMessage, TraceEntry
from smista.sdk.opening import is_sealed, open_facts, open_messages, open_trace, usage_of
from smista.sdk.sealing import Sealer, Tampered, UnknownEnvelope

SEALER = Sealer(SessionKey(bytes(range(32))), "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f")
COST = '{"type": "cost", "input_tokens": 3, "output_tokens": 2, "cost": "0.10"}'


def event(number, payload, *, kind="cost", model="m", task="chat"):
    return TraceEntry(
        event_type=kind,
        task_type=task,
        provider="p",
        model=model,
        created_at="2026-05-25T12:00:00Z",
        payload=payload,
        id=str(number),
    )


def sealed(number, text, **more):
    envelope = SEALER.seal_one(f"trace:{number}", text).model_dump()
    return event(number, {"encrypted": envelope}, **more)


async def test_sealed_payloads_are_opened_and_clear_ones_stay():
    clear = event(2, {"plaintext": {"type": "routing_decision"}})
    first, second = await open_trace(SEALER, [sealed(1, COST), clear])
    assert first.payload["plaintext"]["cost"] == "0.10"
    assert second == clear
    assert not is_sealed(first.payload)


async def test_events_that_changed_places_are_noticed():
    one, two = sealed(1, COST), sealed(2, COST)
    swapped = [one.model_copy(update={"id": "2"}), two.model_copy(update={"id": "1"})]
    with pytest.raises(Tampered, match="trace:"):
        await open_trace(SEALER, swapped)


@pytest.mark.parametrize("text", ["no json", "[]"])
async def test_what_is_no_event_is_said_to_be_none(text):
    with pytest.raises(UnknownEnvelope):
        await open_trace(SEALER, [sealed(1, text)])


async def test_usage_is_added_up_as_a_router_would():
    more = '{"type": "cost", "input_tokens": 10, "cached_tokens": 4}'
    entries = await open_trace(
        SEALER,
        [
            sealed(1, COST),
            sealed(2, COST, task="edit"),
            sealed(3, more, model="n"),
            sealed(4, '{"type": "routing_decision"}', kind="routing_decision"),
        ],
    )
    usage = usage_of(entries)
    assert usage["total"] == {
        "input_tokens": 16,
        "output_tokens": 4,
        "cached_tokens": 4,
        "estimated_cost": "0.2",
        "total_tokens": 20,
        "currency": "USD",
    }
    assert [(each["model"], each["request_count"]) for each in usage["by_model"]] == [
        ("m", 2),
        ("n", 1),
    ]
    assert usage["by_model"][1] == {
        "provider": "p",
        "model": "n",
        "input_tokens": 10,
        "cached_tokens": 4,
        "total_tokens": 10,
        "request_count": 1,
    }
    assert [each["task_type"] for each in usage["by_task_type"]] == ["chat", "edit"]


def test_figures_that_are_none_are_passed_over():
    odd = {"plaintext": {"type": "cost", "input_tokens": "3", "cost": "a lot"}}
    usage = usage_of([event(1, odd), sealed(2, COST)])
    assert usage["total"] == {}
    assert usage_of([]) == {"total": {}, "by_model": [], "by_task_type": []}


def message(role, text, reference, form="text"):
    content = {"encrypted": SEALER.seal_one(reference, text).model_dump()}
    return StoredMessage(role=role, content=content, reference=reference, format=form)


async def test_messages_are_read_as_they_were_said():
    calls = '{"text": "I will look.", "tool_calls": [{"call_id": "c1"}]}'
    entry = '{"content": "found", "is_error": false, "paths": null, "restricted": null}'
    clear = StoredMessage(role="user", content={"plaintext": "in clear"})
    told = await open_messages(
        SEALER,
        [
            message("user", '{"text": "mine", "tool_calls": []}', "message:1"),
            message("assistant", calls, "message:2", "calls"),
            message("tool", entry, "tool_call:3", "entry"),
            message("tool", "as text", "tool_call:4"),
            message("assistant", '["json"]', "message:5"),
            clear,
        ],
    )
    assert [each.content["plaintext"] for each in told] == [
        '{"text": "mine", "tool_calls": []}',
        "I will look.",
        "found",
        "as text",
        '["json"]',
        "in clear",
    ]


async def test_a_message_that_cannot_be_read_is_said_to_be():
    with pytest.raises(UnknownEnvelope, match="message:1"):
        await open_messages(SEALER, [message("assistant", "no json", "message:1", "calls")])


async def test_messages_that_changed_places_are_noticed():
    one = message("user", "yes", "message:1").model_copy(update={"reference": "message:2"})
    with pytest.raises(Tampered):
        await open_messages(SEALER, [one])


async def test_what_is_remembered_for_a_session_is_opened():
    when = "2026-05-25T12:00:00Z"
    envelope = SEALER.seal_one("memory:1", '{"key": "k", "content": "tea"}').model_dump()
    sealed = RememberedFact(
        id="1", scope="session", content={"encrypted": envelope}, created_at=when, updated_at=when
    )
    clear = sealed.model_copy(update={"id": "2", "content": {"plaintext": "coffee"}})
    first, second = await open_facts(SEALER, [sealed, clear])
    assert (first.key, first.content) == ("k", {"plaintext": "tea"})
    assert second == clear
