"""Where keys stand: the walk finds every place that the TOML library finds."""

import string
import tomllib

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from smista.local.findings import spell
from smista.local.toml_places import find_places
from smista.local.toml_source import parse_source


def places_in(value, place=()):
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return
    for step, below in items:
        yield (*place, step)
        yield from places_in(below, (*place, step))


KEYS = st.one_of(
    st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=5),
    st.text("ab\".\\' ]=#\t", min_size=1, max_size=5),
)
SCALARS = st.one_of(
    st.integers(-9, 9),
    st.booleans(),
    st.text("ab\"'\\#=[]{},\n\té", max_size=8),
    st.dates(),
)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(KEYS, below, max_size=3)),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
@settings(max_examples=300)
def test_every_key_and_item_of_a_document_has_a_place(data):
    text = tomlkit.dumps(data)
    read = tomllib.loads(text)
    assert set(places_in(read)) <= set(find_places(text))


HAND = '''\
# a comment with [brackets] and "quotes"
top = 1
dotted.key = "a # no comment"

[table."quoted key".inner]  # another
list = [
    "one", # first
    'two',
    [3, 4],
]
multi = """
[not.a.table]
x = "1"
"""
literal = \'\'\'
[neither]\'\'\'
inline = { a = 1, b.c = [true], "d e" = { f = 2 } }

[[rows]]
name = 1
[[rows]]
name = 2
[rows.sub]
deep = 3
[[rows.many]]
x = 4
[[rows.many]]
x = 5
'''


@pytest.mark.parametrize(
    ("place", "spot"),
    [
        (("top",), (2, 1)),
        (("dotted", "key"), (3, 1)),
        (("table", "quoted key", "inner", "list"), (6, 1)),
        (("table", "quoted key", "inner", "list", 1), (8, 5)),
        (("table", "quoted key", "inner", "list", 2, 1), (9, 9)),
        (("table", "quoted key", "inner", "literal"), (15, 1)),
        (("table", "quoted key", "inner", "inline", "b", "c", 0), (17, 26)),
        (("table", "quoted key", "inner", "inline", "d e", "f"), (17, 43)),
        (("rows", 0), (19, 1)),
        (("rows", 1, "name"), (22, 1)),
        (("rows", 1, "sub", "deep"), (24, 1)),
        (("rows", 1, "many", 1, "x"), (28, 1)),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_and_column_are_those_an_editor_shows(place, spot, end):
    source = parse_source(HAND.replace("\n", end).encode(), "f")
    assert source.faults == ()
    assert source.spot(place) == spot


def test_what_is_not_there_is_shown_at_the_table_it_belongs_in():
    source = parse_source(HAND.encode(), "f")
    assert source.spot(("rows", 0, "missing")) == (19, 1)
    assert source.spot(("nothing", "like", "it")) is None


def test_places_are_spelt_as_they_are_written():
    place = ("routing", "rules", 2, "paths", 0)
    assert spell(place) == "routing.rules[2].paths[0]"
    assert spell(("providers", "openai-compat:a", "type")) == 'providers."openai-compat:a".type'


@given(st.text("ab=[]{}\"'.,#\n \\1", max_size=60))
@settings(max_examples=500)
def test_the_walk_ends_on_any_text(text):
    find_places(text)
