"""What is remembered, as a person reads it."""

from datetime import UTC, datetime

import pytest

from cli.failures import BadUsage, CommandError
from cli.remembered import chosen, content_of, fact_text, facts_text, remembered_lines
from cli.render import render
from smista.core.events import Status, TurnEnd
from smista.sdk.answers import RememberedFact

AT = datetime(2026, 5, 25, 12, tzinfo=UTC)


def fact(tail: str, text: str = "uses vim", **changes) -> RememberedFact:
    given = {
        "id": f"018f9c3e-7a2b-7c4d-8e5f-00{tail}",
        "scope": "user",
        "content": {"plaintext": text},
        "created_at": AT,
        "updated_at": AT,
    }
    return RememberedFact(**{**given, **changes})


VIM = fact("aaaa000001", key="editor")
TABS = fact("aaaa000002", "tabs\n\x1b[31m", restricted=True)
SEALED = fact("bbbb000003", scope="session", content={"encrypted": {}})


def test_facts_are_lines_that_nothing_can_steer():
    first, second, third = facts_text([VIM, TABS, SEALED]).split("\n")
    assert first.split() == ["aaaa000001", "user", "editor:", "uses", "vim"]
    assert "␊" in second
    assert "\x1b" not in second
    assert second.endswith("(restricted)")
    assert "sealed" in third
    assert facts_text([VIM, TABS], "VIM uses") == first
    assert facts_text([VIM], "nothing") == "nothing of that kind is remembered"
    assert facts_text([]) == "nothing is remembered"


def test_a_fact_is_shown_with_all_that_is_known_of_it():
    shown = fact_text(TABS)
    assert f"id: {TABS.id}" in shown
    assert "never reaches a remote model" in shown
    assert "key:" not in shown
    assert content_of(VIM) == "uses vim"


def test_a_fact_is_chosen_by_key_id_or_the_beginning_of_its_short_id():
    known = [VIM, TABS, SEALED]
    for name in ("editor", VIM.id, "aaaa000001", "AAAA000001"):
        assert chosen(known, name) == VIM
    assert chosen(known, "bb") == SEALED
    with pytest.raises(BadUsage, match="aaaa000001, aaaa000002"):
        chosen(known, "aaaa")
    for name in ("zz", ""):
        with pytest.raises(CommandError, match="smista memory list"):
            chosen(known, name)


def test_what_a_turn_remembered_about_the_user_is_said_before_its_outcome():
    entry = {"operation": "recorded", "id": VIM.id, "key": "editor", "content": "vim\x07"}
    ending = TurnEnd(Status.IDLE, {"remembered": [entry]})
    first, second = render(ending).aside.split("\n")
    assert first == "remembered (editor): vim␇ [smista memory forget aaaa00]"
    assert second == "stopped"
    assert render(TurnEnd(Status.AWAITING_TOOL, {"remembered": [entry]})).aside == first


@pytest.mark.parametrize(
    "data", [{}, {"remembered": None}, {"remembered": "x"}, {"remembered": [1]}]
)
def test_a_router_that_tells_nonsense_of_it_is_passed_over(data):
    assert remembered_lines(data) == ()
