"""The scripts that the user page shows are scripts that work."""

import re
from pathlib import Path

import pytest

from smista.demo.answer import answer
from smista.demo.asked import Asked
from smista.demo.script import Text, parse_script

PAGE = Path(__file__).parents[2] / "docs" / "demo-model.md"


def shown_script() -> str:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (script,) = [block for block in blocks if "[[rules]]" in block]
    return script


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ("My name is Ada", "Hello Ada, nice to meet you!"),
        ("what?", "I do not understand: what?"),
    ],
)
def test_the_script_of_the_page_answers_as_it_says(user, said):
    request = Asked(model="demo", user=user, texts=(user,), digest="d")
    steps = answer(parse_script(shown_script()), request, call=1)
    assert "".join(step.text for step in steps if isinstance(step, Text)) == said


def test_the_page_names_every_member_of_a_condition_and_every_step():
    page = PAGE.read_text("utf-8")
    for member in ("user", "prompt", "results", "after", "failed", "correction", "tools", "call"):
        assert f"| `{member}` |" in page
    for step in ("text", "reasoning", "tool", "usage", "pause_ms", "hold", "error", "cut"):
        assert f"{{ {step} = " in page
