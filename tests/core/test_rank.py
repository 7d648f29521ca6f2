"""Twins are merged into one, whatever chain of paths and contents joins them."""

import pytest

from tests.core.builders import decided, file, request, snapshot


def labels(*files: tuple[str, str]) -> list[str]:
    attached = {"files": [file(path, content) for path, content in files]}
    decision = decided(snapshot(request=request(attachments=attached)))
    return [item.label for item in decision.items if item.kind == "file"]


def test_a_file_that_is_the_twin_of_two_makes_them_one() -> None:
    assert labels(("a", "one"), ("b", "two"), ("a", "two")) == ["a"]


def test_what_was_merged_is_still_found_under_all_its_names() -> None:
    chain = [("a", "one"), ("b", "two"), ("c", "three"), ("b", "three"), ("a", "two")]
    assert labels(*chain) == ["a"]
    assert labels(*chain, ("c", "four"), ("d", "three"), ("e", "five")) == ["a", "e"]


@pytest.mark.parametrize("count", [2, 60])
def test_as_many_equal_files_as_there_are_become_one(count: int) -> None:
    assert len(labels(*((f"f{n}", "same") for n in range(count)))) == 1


def test_a_chain_that_is_joined_from_its_end_becomes_one() -> None:
    files = [(f"f{n}", f"text {n}") for n in range(30)]
    joints = [(f"f{n}", f"text {n + 1}") for n in reversed(range(29))]
    assert len(labels(*files, *joints)) == 1
