"""The trace as a person reads it."""

from datetime import UTC, datetime

from cli.timeline import said_in, timeline
from smista.sdk.answers import StoredMessage, TraceEntry


def entry(event_type, at=datetime(2026, 5, 25, 9, 0, 1, tzinfo=UTC), **payload):
    return TraceEntry(
        event_type=event_type,
        task_type="edit",
        provider="p",
        model="m",
        matched_rule="r -> p/m",
        created_at=at,
        payload={"plaintext": payload},
    )


RUN = [
    entry("message", role="user"),
    entry("classification", intent="edit", reason="keyword 'fix'", matched_rule=1),
    entry("routing_decision", provider="p", model="m", reason="rule 'r'"),
    entry("context_selection", kind="file", path="a.py", included=True, reason="required"),
    entry("tool_call", tool_name="shell", status="failed", error="x" * 200, masked=["token"]),
    entry("approval", decision="rejected", target_type="tool_call", reason="no"),
    entry("classification", intent="chat", reason="default"),
    entry("cost", provider="p", model="m", input_tokens=1, output_tokens=2, cost="0.5"),
    entry("message", role="assistant", provider="p", model="m", interrupted=True),
    entry("message", role="user"),
]


def test_a_trace_reads_as_a_timeline_turn_by_turn():
    said = ["fix\nit", "I fi", "go on"]
    lines = timeline(RUN, said).split("\n")
    assert lines[:5] == [
        "2026-05-25 (UTC)",
        "09:00:01  asked     fix it",
        "09:00:01  intent    edit: keyword 'fix' (rule 2 of your classification rules)",
        "09:00:01  route     rule r -> p/m: rule 'r'",
        "09:00:01  context   in  a.py: required",
    ]
    assert lines[5].startswith("09:00:01  tool      shell failed xxx")
    assert len(lines[5]) < 160
    assert lines[6:] == [
        "                    left out: token",
        "09:00:01  approval  rejected (tool_call): no",
        "",
        "09:00:01  intent    chat: default",
        "09:00:01  cost      p/m: 1 in + 2 out tokens, 0.5 USD",
        "09:00:01  answered  I fi  (p/m, interrupted)",
        "",
        "09:00:01  asked     go on",
    ]


def test_without_the_texts_it_tells_who_spoke():
    lines = timeline(RUN).split("\n")
    assert lines[1] == "09:00:01  asked     by you"
    assert "09:00:01  answered  p/m, interrupted" in lines


def test_a_trace_whose_begin_is_gone_has_the_texts_of_what_is_left():
    lines = timeline(RUN[-2:], ["fix it", "I fi", "go on"]).split("\n")
    assert lines[1:] == [
        "09:00:01  answered  I fi  (p/m, interrupted)",
        "",
        "09:00:01  asked     go on",
    ]
    assert "by you" in timeline(RUN, ["one text", "for three messages"])


def test_models_that_were_passed_over_and_tries_that_failed_are_told():
    passed = [{"model": "q/x", "code": "unknown_model", "reason": "not listed"}]
    reason = "rule 'r'; q/x was passed over: not listed"
    events = [
        entry("routing_decision", provider="p", model="m", reason=reason, attempts=passed),
        entry("routing_decision", provider="p", model="m", reason="busy", error="e", tries=2),
        entry("routing_decision", provider="", model="", reason="none", error="no_route"),
    ]
    assert timeline(events).split("\n")[1:] == [
        "09:00:01  route     rule r -> p/m: rule 'r'",
        "                    passed over q/x: not listed",
        "09:00:01  failed    p/m e (try 2): busy",
        "09:00:01  failed    no_route: none",
    ]


def test_each_day_is_told_once():
    later = datetime(2026, 5, 26, tzinfo=UTC)
    events = [entry("classification"), entry("classification"), entry("classification", at=later)]
    dates = [line for line in timeline(events).split("\n") if "UTC" in line]
    assert dates == ["2026-05-25 (UTC)", "2026-05-26 (UTC)"]


def test_a_sealed_event_says_so():
    sealed = entry("tool_call").model_copy(update={"payload": {"encrypted": {}}})
    assert timeline([sealed]).endswith("tool      sealed (p/m)")


def test_only_what_user_and_models_said_is_told_of_messages():
    said = [
        StoredMessage(role="user", content={"plaintext": "a"}),
        StoredMessage(role="assistant", content={"encrypted": {}}),
        StoredMessage(role="tool", content={"plaintext": "b"}),
    ]
    assert said_in(said) == ["a", "sealed"]


def test_foreign_text_in_a_trace_is_harmless():
    events = [
        entry("classification", intent="\x1b[2J", reason="\x1b]0;x\x07"),
        entry("message", role="user"),
    ]
    assert "[31m" in timeline(events, ["\x1b[31m"])
    assert "\x1b" not in timeline(events, ["\x1b[31m"])


def test_what_it_does_not_know_it_names():
    assert timeline([entry("weather")]).endswith("  weather")
