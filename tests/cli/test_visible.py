"""Nothing that steers a terminal or hides in it gets through."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.visible import visible, visible_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain — ünïcode 漢字 🙂", "plain — ünïcode 漢字 🙂"),
        ("a\n\tb", "a\n\tb"),
        ("\x1b[2Jgone", "␛[2Jgone"),
        ("safe\rEVIL", "safe␍EVIL"),
        ("line\r\nline", "line\nline"),
        ("\x07\x7f", "␇␡"),
        ("\x9b31m", "⟨U+009B⟩31m"),
        ("\u202etxt.exe", "⟨U+202E⟩txt.exe"),
        ("a\u200bb\ufeff", "a⟨U+200B⟩b⟨U+FEFF⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
    ],
)
def test_what_could_deceive_is_shown(text, shown):
    assert visible(text) == shown


def test_a_line_stays_one_line():
    assert visible_line("a\nb\tc") == "a␊b␉c"


@given(st.text(st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Cs"])))
def test_no_character_of_these_kinds_survives(text):
    kinds = {unicodedata.category(char) for char in visible(text) if char not in "\n\t"}
    # A few format characters only shape letters; none of them moves or hides text.
    left = [c for c in visible(text) if unicodedata.category(c) == "Cf"]
    assert kinds <= {"So", "Ps", "Pe", "Lu", "Sm", "Nd", "Cf"}
    assert all(unicodedata.bidirectional(c) in ("AN", "AL", "NSM", "L", "ON", "BN") for c in left)
