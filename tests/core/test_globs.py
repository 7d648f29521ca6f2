"""Globs: the meaning of each sign, an independent library as witness, and no way to hold us."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wcmatch import glob

from smista.core.globs import compile_globs, problem


def matches(pattern: str, path: str, *, folded: bool = False, floating: bool = False) -> bool:
    return bool(compile_globs((pattern,), folded=folded, floating=floating).hits(path))


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        (".env", ".env", True),
        (".env", "deep/down/.env", True),
        (".env", "x.env", False),
        ("*.pem", "a/b/key.pem", True),
        ("*.pem", "a/b/.pem", True),
        ("*.pem", "a/b.pem/c", False),
        ("src/*.rs", "src/a.rs", True),
        ("src/*.rs", "src/b/a.rs", False),
        ("src/*.rs", "lib/src/a.rs", False),
        ("src/**", "src/b/a.rs", True),
        ("src/**", "src", False),
        ("src/**/a.rs", "src/a.rs", True),
        ("src/**/a.rs", "src/x/y/a.rs", True),
        ("**/auth/**", "src/auth/x.rs", True),
        ("**/auth/**", "auth/x.rs", True),
        ("**/auth/**", "src/author/x.rs", False),
        ("/Makefile", "Makefile", True),
        ("/Makefile", "sub/Makefile", False),
        ("secrets/", "secrets/a/b", True),
        ("/secrets/", "secrets/a", True),
        ("a/{b,c/d}/e", "a/c/d/e", True),
        ("a/{b,c{d,e}}", "a/ce", True),
        ("*.{ts,tsx}", "x/y.tsx", True),
        ("file[0-9].txt", "file7.txt", True),
        ("file[!0-9].txt", "file7.txt", False),
        ("file[^0-9].txt", "filex.txt", True),
        ("a[]]b", "a]b", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a[.-0]c/x", "a/c/x", False),
        ("**", "anything/at/all", True),
        (".env.*.local", ".env.test.local", True),
        ("id_rsa*", "x/id_rsa.pub", True),
        ("./src/x", "src/x", True),
        ("src//x", "src/x", True),
    ],
)
def test_what_a_pattern_fits(pattern: str, path: str, fits: bool):
    assert matches(pattern, path) is fits


def test_for_privacy_a_tree_holds_its_own_root():
    assert matches(".ssh/**", ".ssh", folded=True)
    assert matches("secrets/", "secrets", folded=True)


def test_floating_patterns_fit_at_every_depth():
    assert matches(".ssh/**", "home/u/.ssh/id", floating=True)
    assert matches("/etc/passwd", "etc/passwd", floating=True)


@pytest.mark.parametrize(
    "pattern", ["", "!x", "a[b", "a{b", "[z-a]", "x" * 257, "{a,b}" * 11, "a[b/c]"]
)
def test_bad_patterns_say_why_and_match_nothing(pattern: str):
    assert problem(pattern)
    compiled = compile_globs((pattern,))
    assert compiled.bad == (0,)
    assert not compiled.hits("x")


def test_at_most_a_thousand_patterns_count():
    assert compile_globs(tuple(f"p{n}" for n in range(1001))).bad == (1000,)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("**/*a*a*a*b", "a" * 50_000),
        ("*a" * 100 + "b", "a" * 50_000),
        ("**/a/" * 50 + "b", "a/" * 5_000 + "c"),
        ("/".join(["*"] * 100) + "/**/x", "a/" * 5_000 + "c"),
        ("**/" * 60 + "x*y", "x/" * 5_000),
    ],
)
def test_no_pattern_eats_the_processor(pattern: str, path: str):
    # Without care each of these takes longer than the universe lasts; ending at all is the point.
    assert not matches(pattern, path)


PARTS = st.sampled_from(["a", "b", "ab", "*", "**", "?", "a*", "*b", "[ab]", ".a", "*.b", "a*b*"])
NAMES = st.sampled_from(["a", "b", "ab", "aab", "ba", ".a", "a.b", ".b", "abb", "c"])


@given(st.lists(PARTS, min_size=2, max_size=5), st.lists(NAMES, min_size=1, max_size=6))
@example(["**", "a", "**", "b"], ["a", "b", "a", "c", "b"])
def test_another_library_agrees(parts: list[str], names: list[str]):
    pattern, path = "/".join(parts), "/".join(names)
    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.FORCEUNIX
    expected = glob.globmatch(path, pattern, flags=flags)
    assert matches(pattern, path) == expected


@given(st.text("ab*?[]{}!^-,/.\\", max_size=20))
def test_any_text_is_a_pattern_or_a_finding(pattern: str):
    found = problem(pattern)
    compiled = compile_globs((pattern,))
    assert (found is not None) == (compiled.bad == (0,))
    compiled.hits("a/b")


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_every_plain_path_fits_itself(names: list[str]):
    path = "/".join(names)
    assert matches(f"/{path}", path)
