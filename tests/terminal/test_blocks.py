"""A streamed answer is cut into the same blocks however it comes, and held in bounded pieces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.interactive.blocks import MOST, Block, Blocks

TEXT = (
    "# Title\n\nOne *two*\nthree.\n\n1. item\n\n   more of it\n\n2. item\n\n"
    "```python\ndef f():\n\n    return 1\n```\nafter\r\n\r\n~~~\na ``` b\n~~~\n\n> quote\nend"
)


def cut(text: str, edges: list[int]) -> list[Block]:
    blocks = Blocks()
    done: list[Block] = []
    for begin, end in pairwise([0, *sorted(edges), len(text)]):
        done += blocks.feed(text[begin:end])
    return done + blocks.finish()


@given(st.lists(st.integers(0, len(TEXT))))
def test_any_split_gives_the_same_blocks(edges):
    assert cut(TEXT, edges) == cut(TEXT, [])


def test_code_keeps_its_language_and_a_list_its_parts():
    blocks = cut(TEXT, [])
    assert Block(text="def f():\n\n    return 1", language="python") in blocks
    assert Block(text="a ``` b", language="") in blocks
    assert any("item\n\n   more of it" in block.text for block in blocks)


@given(st.text(alphabet="ab \n`~#>-", max_size=300), st.lists(st.integers(0, 300)))
def test_no_word_is_lost(text, edges):
    edges = [min(edge, len(text)) for edge in edges]
    said = "".join(block.text for block in cut(text, edges))
    for letter in "ab":
        assert said.count(letter) <= text.count(letter)
        if "`" not in text and "~" not in text:
            assert said.count(letter) == text.count(letter)


@pytest.mark.parametrize("piece", ["word ", "w", "line\n", "```\nlong code\n"])
def test_what_never_ends_is_held_in_pieces(piece):
    blocks = Blocks()
    longest = 0
    for _ in range(20_000):
        for block in blocks.feed(piece):
            longest = max(longest, len(block.text))
        assert len(blocks.rest) <= 2 * MOST
    assert longest <= 2 * MOST
