"""What is taught once is known the next time, and the user owns it: over the command line."""

import json
from collections.abc import Iterator

import pytest

from smista.core.facts import handle
from tests.e2e.house import POLICY, House

REMEMBERING = POLICY.replace("[tools.permissions]", '[tools.permissions]\nmemory = "allow"')
SKILL = "---\nname: review\ndescription: Reviews a change.\n---\nLook twice, says LONGBODY."


@pytest.fixture(autouse=True)
def _policy(shared: House) -> Iterator[None]:
    shared.write_policy(REMEMBERING)
    yield
    shared.write_policy(POLICY)


def test_a_fact_is_told_at_once_known_in_the_next_session_and_forgotten_on_demand(
    shared: House,
) -> None:
    taught = shared.run("remember tabs, \u202enot spaces")
    assert taught.returncode == 0, taught.stderr
    assert "remembered: tabs, ⟨U+202E⟩not spaces" in taught.stderr

    asked = shared.run("what do you know")
    assert "(user) tabs" in asked.stdout

    (fact,) = json.loads(shared.run("memory", "export").stdout)["facts"]
    assert fact["content"]["plaintext"].startswith("tabs")
    short = handle(fact["id"])[:6]
    assert f"id: {fact['id']}" in shared.run("memory", "show", short).stdout

    unasked = shared.run("memory", "forget", short)
    assert unasked.returncode == 2
    assert "--yes" in unasked.stderr
    assert shared.run("memory", "forget", short, "--yes").returncode == 0
    assert shared.run("memory", "list").stdout == "nothing is remembered\n"


def test_a_person_is_asked_about_a_fact_where_they_want_it(shared: House) -> None:
    shared.write_policy(REMEMBERING.replace('memory = "allow"', 'memory = "ask"'))
    code, screen = shared.type("remember tabs", answer="y")
    assert code == 0, screen
    assert screen.index("value: tabs") < screen.index("remember it?")
    code, screen = shared.type("remember spaces", answer="n")
    assert "the user said no" in screen


def test_a_skill_of_the_project_is_read_when_the_model_asks_for_it(shared: House) -> None:
    place = shared.project / ".agents/skills/review"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(SKILL)
    (shared.project / ".agents/skills/empty").mkdir()
    done = shared.run("use skill review", "--json")
    assert done.returncode == 0, done.stderr
    assert "skill empty left out" in done.stderr
    told = [json.loads(line) for line in shared.run("trace", "--json").stdout.splitlines()]
    calls = [e["payload"]["plaintext"] for e in told if e["event_type"] == "tool_call"]
    assert [call["status"] for call in calls] == ["pending", "completed"]
    assert "LONGBODY" in calls[-1]["result"]
    assert ".agents/skills/review" in calls[-1]["result"]


def test_an_encrypted_session_keeps_a_fact_to_itself_and_only_its_key_reads_it(
    shared: House,
) -> None:
    shared.write_policy(POLICY)
    taught = shared.run("remember tabs")
    assert "remembered" not in taught.stderr
    session = taught.stderr.split("session ")[-1].split()[0]
    listed = shared.run("memory", "list", "--session", session)
    assert listed.stdout.split()[1:] == ["session", "tabs"], listed.stderr
    short = listed.stdout.split()[0]
    forgotten = shared.run("memory", "forget", short, "--session", session, "--yes")
    assert forgotten.stdout == "forgotten: tabs\n"
