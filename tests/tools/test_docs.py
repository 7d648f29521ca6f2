"""The drawn pages say all that the code says, and a page that says something else is found out."""

from pathlib import Path

import pytest

from smista.core import errors
from smista.core.lifecycle import SERVING, WAITING
from tools import docs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    return tmp_path


def test_a_page_that_was_edited_by_hand_is_found_and_drawn_anew(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert docs.main(["--check"]) == 1
    assert docs.main([]) == 0
    assert docs.main(["--check"]) == 0

    page = folder / "errors.md"
    page.write_text(page.read_text().replace("no_route", "no_way"))
    capsys.readouterr()
    assert docs.main(["--check"]) == 1
    assert "errors.md" in capsys.readouterr().err
    assert "no_way" in page.read_text()

    docs.main([])
    assert "no_way" not in page.read_text()


def test_every_step_of_the_table_is_a_row() -> None:
    rows = [line for line in docs.lifecycle_page().splitlines() if line.startswith("| `")]
    assert len(rows) == len(WAITING) + len(SERVING)


def test_every_code_that_can_be_raised_is_on_the_page() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.code for kind in kinds if issubclass(kind, errors.SmistaError)}
    assert {code for code in codes if f"| `{code}` |" not in docs.errors_page()} == set()
