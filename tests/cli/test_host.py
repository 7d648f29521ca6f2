"""What a person is asked, what the answer means, and what the model is told."""

import pytest

from cli.approvals import Answer, understand
from cli.host import NO, NOBODY, TerminalHost
from cli.questions import question_of
from smista.core.events import ToolRequest
from smista.core.policy import ToolsConfig
from smista.sdk.pauses import Approval
from tests.cli.ground import call, surroundings


class Person:
    """Answers as scripted and remembers the questions."""

    def __init__(self, *typed):
        self.typed, self.asked, self.offered = list(typed), [], []

    async def answer(self, question, *, always=False):
        self.asked.append(question)
        self.offered.append(always)
        return understand(self.typed.pop(0), always=always)


@pytest.fixture
def here(tmp_path):
    return surroundings(tmp_path)


def host(here, person, *, yes=False, sizes=None, **permissions):
    tools = ToolsConfig(permissions=permissions)
    return TerminalHost(here, tools, terminal=person, yes=yes, sizes=sizes)


async def run(one, *requests):
    return await one.run_tools(requests)


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        ("y\n", Answer(approved=True)),
        ("YES\n", Answer(approved=True)),
        ("\n", Answer(approved=False)),
        ("n\n", Answer(approved=False)),
        ("no\n", Answer(approved=False)),
        ("maybe\n", Answer(approved=False)),
        ("yn\n", Answer(approved=False)),
        ("y because\n", Answer(approved=False)),
        ("nope\n", Answer(approved=False)),
        ("because\n", Answer(approved=False)),
        ("n because\n", Answer(approved=False, reason="because")),
        ("n because I say so\n", Answer(approved=False, reason="I say so")),
        ("No, use tabs.\n", Answer(approved=False, reason="use tabs.")),
        ("n y\n", Answer(approved=False, reason="y")),
        ("a\n", Answer(approved=False)),
        ("", Answer(approved=False)),
    ],
)
def test_only_a_clear_yes_is_one(typed, means):
    assert understand(typed) == means


def test_always_counts_only_where_it_is_offered():
    assert understand("a\n", always=True) == Answer(approved=True, always=True)
    assert not understand("a\n").approved


async def test_a_no_with_a_reason_goes_to_the_model(here):
    person = Person("n because it is mine\n")
    one = host(here, person)
    (result,) = await run(one, call("write_file", path="a", content="x"))
    assert (result.decision, result.is_error) == ("rejected", True)
    assert result.content == f"{NO}: it is mine"
    assert one.refused_last
    assert not (here.root / "a").exists()


async def test_always_is_for_writes_inside_the_project(here, tmp_path, capsys):
    person = Person("a\n", "n\n", "n\n", "n\n", "n\n")
    one = host(here, person)
    results = await run(
        one,
        call("write_file", path="a", content="1"),
        call("write_file", path="b", content="2"),
        call("write_file", path="../c", content="3"),
        call("write_file", path=".envrc", content="4"),
        call("shell", command="touch d; true"),
        ToolRequest("c", "write_file", {"path": "e", "content": "5"}, "ask", True),
    )
    assert [r.decision for r in results] == ["approved", "approved", *["rejected"] * 4]
    assert person.offered == [True, False, False, False, False]
    assert sorted(path.name for path in here.root.iterdir()) == ["a", "b"]
    assert "+2" in capsys.readouterr().err


async def test_what_a_command_says_is_beside_the_answer_and_harmless(here, capsys):
    one = host(here, None, shell="allow")
    (result,) = await run(one, call("shell", "allow", command="printf 'a\\033[2Jb\\n'"))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "a␛[2Jb\n" in shown.err
    assert result.content.startswith("a\x1b[2Jb\n")


OUTSIDE = [
    ("edit_file", {"path": "../there", "old": "secret", "new": "x"}),
    ("edit_file", {"path": "../there", "old": "guess", "new": "x"}),
    ("edit_file", {"path": "../gone", "old": "guess", "new": "x"}),
    ("write_file", {"path": "../there", "content": "x"}),
    ("write_file", {"path": "../folder", "content": "x"}),
    ("read_file", {"path": "../there"}),
    ("read_file", {"path": "../gone"}),
    ("read_file", {"path": "link"}),
    ("read_file", {"path": "loop"}),
]


@pytest.mark.parametrize(("person", "told"), [(None, NOBODY), (Person(*["n\n"] * 9), NO)])
async def test_a_refusal_tells_nothing_of_what_is_outside(here, tmp_path, person, told):
    (tmp_path / "there").write_text("secret\n")
    (tmp_path / "folder").mkdir()
    (here.root / "link").symlink_to(tmp_path / "there")
    (here.root / "loop").symlink_to(here.root / "loop")
    one = host(here, person, yes=True, file_read="allow", file_write="allow")
    results = await run(one, *(call(name, "allow", **arguments) for name, arguments in OUTSIDE))
    assert {(r.content, r.is_error, r.decision, r.paths) for r in results} == {
        (told, True, "rejected", None)
    }


async def test_outside_the_project_a_change_is_asked_about_twice(here, tmp_path, capsys):
    (tmp_path / "there").write_text("old\n")
    edit = call("edit_file", path="../there", old="old", new="new")
    person = Person("y\n", "n\n", "y\n", "y\n")
    one = host(here, person)
    first, second = await run(one, edit, edit)
    assert first.decision == "rejected"
    assert second.decision == "approved"
    assert (tmp_path / "there").read_text() == "new\n"
    assert len(person.asked) == 4
    assert "@@ -1 +1 @@" in capsys.readouterr().err


async def test_outside_the_project_one_yes_reads(here, tmp_path):
    (tmp_path / "there").write_text("text\n")
    (result,) = await run(host(here, Person("y\n")), call("read_file", path="../there"))
    assert (result.content, result.decision) == ("text\n", "approved")
    assert str(tmp_path / "there") in result.paths


async def test_a_link_is_put_before_the_user_as_what_it_leads_to(here, tmp_path, capsys):
    (tmp_path / "there").write_text("text\n")
    (here.root / "innocent").symlink_to(tmp_path / "there")
    await run(host(here, Person("n\n")), call("read_file", path="innocent"))
    assert f"path: {tmp_path / 'there'}\n" in capsys.readouterr().err


async def test_what_was_named_in_advance_is_asked_again_with_restricted_content_in_view(here):
    person = Person("n\n")
    one = TerminalHost(here, ToolsConfig(), terminal=person, named=frozenset({"shell"}))
    seen = ToolRequest("c", "shell", {"command": "touch a"}, "ask", True)
    free, held = await run(one, call("shell", command="touch b"), seen)
    assert (free.decision, held.decision) == ("approved", "rejected")


async def test_a_question_says_that_restricted_content_could_leave(here):
    person = Person("n\n")
    request = ToolRequest("c", "shell", {"command": "ls"}, "allow", True)
    await run(host(here, person, shell="allow"), request)
    assert "restricted content is in view" in person.asked[0]


def approval(kind, **detail):
    return Approval(approval_id="a", kind=kind, detail=detail)


def test_a_disclosure_says_who_sees_what_and_how_much():
    paths = ["src/a.py", "tool:shell", "history", "memory", "b.py"]
    asked = approval("remote_disclosure", provider="openai", model="gpt", paths=paths)
    question = question_of(asked, {"src/a.py": 2048, "tool:shell": 100, "other": 1})
    assert question.title == "openai/gpt on another machine would see, 2.1 KB known of it:"
    assert question.shown.split("\n") == [
        "src/a.py (2.0 KB)",
        "what the tool shell answered (100 bytes)",
        "what was said before in this session",
        "remembered facts about you or this session",
        "b.py",
    ]
    assert "openai" in question.asked
    local = approval("remote_disclosure", provider="ollama", model="m", paths=["a"], local=True)
    assert "on this machine" in question_of(local, {}).title


def test_a_cost_is_told_with_what_was_spent_and_the_limit():
    detail = {"provider": "p", "model": "m", "spent": "0.1", "cost_limit": "0.2"}
    shown = question_of(approval("cost_limit", estimated_cost="0.3", **detail), {}).shown
    assert all(figure in shown for figure in ("0.3 USD", "0.1 USD", "0.2 USD"))
    unknown = question_of(approval("cost_limit", estimated_cost=None, **detail), {})
    assert "unknown" in unknown.shown


def test_a_plan_is_shown_whole():
    asked = approval("plan", plan="u", path=".smista/plans/u.md", content="1. do\n2. check")
    question = question_of(asked, {})
    assert question.title == "plan .smista/plans/u.md"
    assert question.shown == "1. do\n2. check"


async def test_a_router_that_asks_hears_the_reason(here):
    asked = approval("plan", path="p", content="c")
    decision = await host(here, Person("n smaller steps\n")).decide(asked)
    assert (decision.decision, decision.reason) == ("rejected", "smaller steps")
    assert (await host(here, Person("n\n")).decide(asked)).reason is None


async def test_without_a_terminal_a_plan_is_refused_for_good_and_why_is_said(here, capsys):
    assert (await host(here, None).decide(approval("plan", content="c"))).reason is None
    assert "plan: refused: it needs an answer" in capsys.readouterr().err
    asked = approval("cost_limit", spent="1")
    assert (await host(here, None).decide(asked)).reason == NOBODY
