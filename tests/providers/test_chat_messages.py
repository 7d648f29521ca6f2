"""One history, re-expressed for servers that are strict about it."""

import json

import pytest

from smista.core.history import Call, Message, Role
from smista.core.prompt import Image, Prompt
from smista.providers.chat_messages import chat_messages, tool_name, wire_ids

HERE = "openai-compat:here"


def message(role: Role, text: str = "", **more) -> Message:
    return Message(uuid="u", role=role, text=text, run_id="r", **more)


def made_call(call_id: str, provider_id: str = "", arguments: str = "{}", name: str = "t") -> Call:
    return Call(call_id=call_id, provider_call_id=provider_id, name=name, arguments=arguments)


def asked(*calls: Call, provider: str = HERE, text: str = "") -> Message:
    return message(Role.ASSISTANT, text, calls=calls, provider=provider)


def answered(call_id: str, text: str = "ok", *, is_error: bool = False) -> Message:
    return message(Role.TOOL, text, call_id=call_id, is_error=is_error)


def expressed(*messages: Message, system: str = "", system_role: bool = True, images=()):
    prompt = Prompt(model="m", system=system, messages=messages, images=images)
    return chat_messages(prompt, provider=HERE, system_role=system_role)


def test_fc_45_a_provider_sees_its_own_ids_again():
    history = [asked(made_call("1", "functions.write:0"), made_call("2", "call_" + "x" * 40))]
    assert wire_ids(history, provider=HERE) == {
        "1": "functions.write:0",
        "2": "call_" + "x" * 40,
    }


@pytest.mark.parametrize("theirs", ["functions.write:0", "call_" + "x" * 60, "a|b", "", "é"])
def test_fc_45_ids_of_another_provider_are_rewritten_for_the_strictest_server(theirs):
    history = [asked(made_call("1", theirs), made_call("2", theirs), provider="anthropic")]
    ids = wire_ids(history, provider=HERE)
    assert all(len(made) == 9 and made.isalnum() for made in ids.values())
    assert len(set(ids.values())) == 2
    assert ids == wire_ids(history, provider=HERE)


def test_fc_45_an_id_used_twice_by_its_provider_stays_unique():
    history = [asked(made_call("1", "call_0")), asked(made_call("2", "call_0"))]
    ids = wire_ids(history, provider=HERE)
    assert ids["1"] == "call_0"
    assert ids["2"] != "call_0"


def test_fc_45_call_and_result_carry_the_same_id():
    said = expressed(asked(made_call("1", "a|b")), answered("1"))
    assert said[0]["tool_calls"][0]["id"] == said[1]["tool_call_id"]


def test_fc_47_an_unanswered_call_gets_a_note_in_its_place():
    said = expressed(
        asked(made_call("1", "a"), made_call("2", "b")),
        answered("1", "one"),
        message(Role.USER, "go on"),
    )
    assert [(m["role"], m.get("tool_call_id")) for m in said] == [
        ("assistant", None),
        ("tool", "a"),
        ("tool", "b"),
        ("user", None),
    ]
    assert said[1]["content"] == "one"
    assert "interrupted" in said[2]["content"]


def test_results_follow_their_call_in_its_order_and_orphans_are_left_out():
    said = expressed(
        answered("gone", "orphan"),
        asked(made_call("1", "a"), made_call("2", "b")),
        message(Role.USER, "by the way"),
        answered("2", "two"),
        answered("1", "one"),
    )
    assert [m["content"] for m in said] == [None, "one", "two", "by the way"]


def test_a_failed_call_is_marked_in_its_text_once():
    said = expressed(
        asked(made_call("1"), made_call("2")),
        answered("1", "no such file", is_error=True),
        answered("2", "Error: twice", is_error=True),
    )
    assert [m["content"] for m in said[1:]] == ["Error: no such file", "Error: twice"]


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("", {}),
        ('{"a":1}', {"a": 1}),
        ("null", {"malformed": "null"}),
        ('{"a":', {"malformed": '{"a":'}),
        ("[1]", {"malformed": "[1]"}),
    ],
)
def test_arguments_are_always_an_object(written, sent):
    said = expressed(asked(made_call("1", arguments=written)), answered("1"))
    assert json.loads(said[0]["tool_calls"][0]["function"]["arguments"]) == sent


@pytest.mark.parametrize(
    ("name", "sent"), [("", "unnamed"), ("a.b c", "a_b_c"), ("x" * 70, "x" * 64), ("ok-1", "ok-1")]
)
def test_fc_23_an_impossible_tool_name_does_not_poison_the_next_request(name, sent):
    assert tool_name(name) == sent


def test_blank_answers_are_left_out():
    assert expressed(message(Role.ASSISTANT, " \n"), message(Role.USER, "hi")) == [
        {"role": "user", "content": "hi"}
    ]


def test_the_preamble_is_the_first_message_under_the_role_the_model_knows():
    user = message(Role.USER, "hi")
    assert expressed(user, system="be brief")[0] == {"role": "system", "content": "be brief"}
    without = expressed(user, system="be brief", system_role=False)
    assert without == [{"role": "user", "content": "be brief\n\nhi"}]
    image = Image(media_type="image/png", data="AAAA")
    beside = expressed(user, system="be brief", system_role=False, images=(image,))
    assert beside[0] == {"role": "user", "content": "be brief"}
    assert len(beside) == 2


def test_images_go_with_the_newest_user_message():
    image = Image(media_type="image/png", data="AAAA")
    said = expressed(message(Role.USER, "old"), message(Role.USER, "new"), images=(image,))
    assert said[0]["content"] == "old"
    assert said[1]["content"] == [
        {"type": "text", "text": "new"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
