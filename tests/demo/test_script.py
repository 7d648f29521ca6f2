"""The script: what it accepts, how it chooses, what it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.demo.answer import answer, tokens
from smista.demo.asked import Asked, Result
from smista.demo.script import (
    ErrorStep,
    Reasoning,
    ScriptError,
    Text,
    Tokens,
    Tool,
    load_script,
    parse_script,
    split,
)

ALL_TOOLS = frozenset({"read_file", "write_file", "edit_file", "shell"})


def asked(user: str, *before: str, results=(), tools=ALL_TOOLS, **more) -> Asked:
    return Asked(
        model="demo",
        user=user,
        texts=(*before, user, *(result.text for result in results)),
        digest="d",
        given=(*before, user),
        results=tuple(results),
        tools=tools,
        **more,
    )


def say(request: Asked, *, call: int = 1, script: str | None = None):
    chosen = load_script() if script is None else parse_script(script)
    return answer(chosen, request, call=call)


def call_of(steps) -> tuple[str, dict]:
    (tool,) = [step for step in steps if isinstance(step, Tool)]
    return tool.tool, tool.arguments


def text_of(steps) -> str:
    return "".join(step.text for step in steps if isinstance(step, Text))


def done(tool: str, text: str = "ok", *, failed: bool = False) -> Result:
    return Result(tool=tool, text=text, failed=failed)


@pytest.mark.parametrize(
    "prompt",
    [
        "fix the typo in @hello.txt",
        "please correct hello.txt",
        "There are typos in @hello.txt, edit it!",
        "Fix @hello.txt",
    ],
)
def test_a_misspelt_word_of_an_attached_file_is_edited(prompt):
    steps = say(asked(prompt, "hello.txt\n\nHelo, world!"))
    assert call_of(steps) == (
        "edit_file",
        {"path": "hello.txt", "old": "Helo", "new": "Hello"},
    )
    assert isinstance(steps[0], Reasoning)


def test_the_path_and_the_word_are_those_of_the_prompt():
    steps = say(asked("fix the spelling in @docs/guide-1.md", "we recieve it"))
    assert call_of(steps) == (
        "edit_file",
        {"path": "docs/guide-1.md", "old": "recieve", "new": "receive"},
    )


def test_the_newest_mistake_counts():
    steps = say(asked("fix @b.txt", "a.txt: Helo", "b.txt: teh"))
    assert call_of(steps) == ("edit_file", {"path": "b.txt", "old": "teh", "new": "the"})


def test_after_the_edit_it_says_what_it_did():
    steps = say(asked("fix @hello.txt", "Helo", results=[done("edit_file")]))
    assert (
        text_of(steps) == 'I replaced "Helo" with "Hello" in hello.txt. Nothing else was changed.'
    )


@pytest.mark.parametrize("tool", ["edit_file", "read_file", "shell"])
def test_after_a_refused_call_it_says_that_nothing_was_changed(tool):
    results = [done(tool, "rejected by the user", failed=True)]
    steps = say(asked("fix @hello.txt", "Helo", results=results))
    assert "nothing was changed" in text_of(steps)
    assert "rejected by the user" in text_of(steps)
    assert not [step for step in steps if isinstance(step, Tool)]


def test_a_file_that_is_only_named_is_read_first_and_then_edited():
    first = say(asked("fix the typo in hello.txt"))
    assert call_of(first) == ("read_file", {"path": "hello.txt"})
    read = done("read_file", "Helo, world!")
    second = say(asked("fix the typo in hello.txt", results=[read]))
    assert call_of(second) == ("edit_file", {"path": "hello.txt", "old": "Helo", "new": "Hello"})
    third = say(asked("fix the typo in hello.txt", results=[read, done("edit_file")]))
    assert text_of(third).startswith('I replaced "Helo"')


def test_a_file_without_a_known_mistake_is_left_alone():
    steps = say(asked("fix hello.txt", results=[done("read_file", "Hello, world!")]))
    assert "nothing that I know how to correct" in text_of(steps)


@pytest.mark.parametrize(
    ("prompt", "call"),
    [
        (
            "replace 'a b' with 'c' in src/x.py",
            ("edit_file", {"path": "src/x.py", "old": "a b", "new": "c"}),
        ),
        ("create notes.md", ("write_file", {"path": "notes.md", "content": "Hello, world!\n"})),
        ("show me README.md", ("read_file", {"path": "README.md"})),
        ("run `ls -la`", ("shell", {"command": "ls -la"})),
    ],
)
def test_other_wishes_have_their_tools(prompt, call):
    assert call_of(say(asked(prompt))) == call


def test_without_tools_on_offer_it_only_talks():
    steps = say(asked("fix the typo in @hello.txt", "Helo", tools=frozenset()))
    assert not [step for step in steps if isinstance(step, Tool)]
    assert text_of(steps)


@given(st.text())
def test_any_prompt_gets_the_same_answer_twice(prompt):
    assert say(asked(prompt)) == say(asked(prompt))


def test_anything_else_is_echoed_as_it_is():
    assert text_of(say(asked("what is {tool} \\1?"))).endswith("You wrote: what is {tool} \\1?")


RULES = """
[[rules]]
name = "second"
when = { call = 2 }
say = [{ error = { status = 429, retry_after = "3" } }]

[[rules]]
name = "model"
when = { model = "other", prompt = 'port (?P<port>\\d+)' }
say = [{ text = "{model} at {port}" }, { usage = { input = 9, output = 1 } }]

[[rules]]
name = "result"
when = { results = true, after = ["shell"] }
say = [{ text = "{tool}: {result}" }]
"""


def test_rules_are_tried_in_order_and_their_groups_are_variables():
    other = Asked(model="other", user="x", texts=("old port 1", "port 22", "x"), digest="d")
    steps = say(other, script=RULES)
    assert text_of(steps) == "other at 22"
    assert tokens(other, steps) == Tokens(input=9, output=1)
    (failure,) = say(other, call=2, script=RULES)
    assert isinstance(failure, ErrorStep)
    assert (failure.error.status, failure.error.retry_after) == (429, "3")
    assert (
        text_of(say(asked("x", results=[done("shell", " out \n")]), script=RULES)) == "shell: out"
    )


def test_a_request_no_rule_fits_is_an_error():
    (failure,) = say(asked("x"), script=RULES)
    assert isinstance(failure, ErrorStep)
    assert failure.error.status == 400


def test_usage_is_counted_where_the_script_does_not_say_it():
    request = asked("abcdefgh")
    steps = (Reasoning(reasoning="abcd"), Text(text="abcde"))
    assert tokens(request, steps) == Tokens(input=2, output=3, reasoning=1)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("rules = [", "TOML"),
        ("", "rules"),
        ("[[rules]]\nname='x'\nsay=[]", "say"),
        ("[[rules]]\nname='x'\nsay=[{tetx='a'}]", "say"),
        ("[[rules]]\nname='x'\nsay=[{text='{nobody}'}]", "{nobody}"),
        ("[[rules]]\nname='x'\nwhen={user='('}\nsay=[{text='a'}]", "no pattern"),
        ("[[rules]]\nname='x'\nwhen={usr='a'}\nsay=[{text='a'}]", "usr"),
        ("[[rules]]\nname='x'\nsay=[{error={status=200}}]", "status"),
    ],
)
def test_a_script_that_cannot_be_used_says_where(text, named):
    with pytest.raises(ScriptError, match="script") as caught:
        parse_script(text)
    assert named in caught.value.message


def test_a_script_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ScriptError, match=r"no\.toml"):
        load_script(tmp_path / "no.toml")
    path = tmp_path / "yes.toml"
    path.write_text("[[rules]]\nname='x'\nsay=[{text='a'}]", encoding="utf-8")
    assert load_script(path).rules[0].name == "x"


@given(st.text(), st.integers(1, 9), st.none() | st.integers(1, 9))
def test_deltas_joined_are_the_text(text, words, deltas):
    pieces = split(Text(text=text, words=words, deltas=deltas))
    assert "".join(pieces) == text
    assert all(pieces)
    assert deltas is None or len(pieces) <= deltas


def test_a_text_is_split_into_as_many_deltas_as_asked():
    assert len(split(Text(text="a b c d e f g h i j", deltas=10))) == 10
    assert split(Text(text="a b c", words=2)) == ["a b ", "c"]
