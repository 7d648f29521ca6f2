"""Git diffs taken apart: every form git writes, and all that must not be trusted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.diffs import FileDiff, split_diff


def hunk(name: str, head: str | None = None, lines: str = "-old\n+new\n") -> str:
    head = head or f"diff --git a/{name} b/{name}\nindex 1..2 100644\n--- a/{name}\n+++ b/{name}"
    return f"{head}\n@@ -1 +1 @@\n{lines}"


def names(text: str) -> list[tuple[str, ...]]:
    return [part.names for part in split_diff(text)]


def unreadable(text: str) -> bool:
    (part,) = split_diff(text)
    return not part.readable and part.text == text


def test_a_diff_is_split_by_file():
    parts = split_diff(hunk("src/a.rs") + hunk(".env"))
    assert [part.names for part in parts] == [("src/a.rs",), (".env",)]
    assert [part.text for part in parts] == [hunk("src/a.rs"), hunk(".env")]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (
            (
                'diff --git "a/\\303\\244.txt" "b/\\303\\244.txt"\n'
                '--- "a/\\303\\244.txt"\n+++ "b/\\303\\244.txt"'
            ),
            ("ä.txt",),
        ),
        ('diff --git "a/q\\"\\t.x" "b/q\\"\\t.x"\nold mode 100644\nnew mode 100755', ('q"\t.x',)),
        ("diff --git a/my file b/my file\n--- a/my file\t\n+++ b/my file\t", ("my file",)),
        ("diff --git a/my file b/my file\nold mode 100644\nnew mode 100755", ("my file",)),
        (
            (
                "diff --git a/.env b/free.txt\nsimilarity index 90%\n"
                "rename from .env\nrename to free.txt\n--- a/.env\n+++ b/free.txt"
            ),
            ("free.txt", ".env"),
        ),
        (
            "diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y",
            ("y", "x"),
        ),
        ("diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n", ("n",)),
        ("diff --git a/n b/n\ndeleted file mode 100644\n--- a/n\n+++ /dev/null", ("n",)),
        ("diff --git .env .env\n--- .env\n+++ .env", (".env",)),
        ("diff --git a/i.png b/i.png\nBinary files a/i.png and b/i.png differ", ("i.png",)),
        ("diff --git a/sub b/sub\nindex 1..2 160000\n--- a/sub\n+++ b/sub", ("sub",)),
    ],
)
def test_headers_give_both_names_unquoted(head: str, expected: tuple[str, ...]):
    with_hunk = "---" in head
    text = hunk("", head) if with_hunk else f"{head}\n"
    (part,) = split_diff(text)
    assert part.readable
    assert part.names == expected


def test_a_name_without_prefix_counts_as_it_stands():
    (part,) = split_diff(hunk("", "diff --git .env .env\n--- .env\n+++ .env"))
    assert ".env" in part.raw


def test_combined_diffs_name_their_file():
    text = (
        "diff --cc src/.env\nindex 1,2..3\n--- a/src/.env\n+++ b/src/.env\n"
        "@@@ -1,1 -1,1 +1,1 @@@\n- one\n -two\n++three\n"
    )
    (part,) = split_diff(text)
    assert part.readable
    assert "src/.env" in part.names


def test_submodule_logs_name_their_directory():
    text = "Submodule vendor/lib 1234567...89abcde:\n  > Fix it\n" + hunk("a")
    assert names(text) == [("vendor/lib",), ("a",)]


@pytest.mark.parametrize(
    "text",
    [
        "no diff at all\n",
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        "preface\n" + hunk("x"),
        hunk("x") + "--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-SECRET\n",
        hunk("x") + "SECRET=1\n",
        "diff --git a/x y b/z w\nold mode 1\n",
        'diff --git "a/x\\9" "b/x\\9"\n--- "a/x\\9"\n+++ "b/x\\9"\n',
        "diff --git a/x b/x\nSECRET=1\n",
        "Submodule vendor 1234567...89abcde:\nSECRET=1\n",
    ],
)
def test_what_cannot_be_read_stays_whole_and_is_marked(text: str):
    assert unreadable(text)


def test_one_bad_header_marks_the_whole_diff():
    assert unreadable(hunk("good") + "diff --git a/x y b/z w\nold mode 1\n")


def test_separators_inside_a_line_do_not_start_a_file():
    tricky = "+x\u2028diff --git a/free b/free\x0bSECRET\n-y\n"
    (part,) = split_diff(hunk(".env", lines=tricky))
    assert part.names == (".env",)


def test_changed_lines_that_look_like_headers_are_content():
    lines = "--- a/other\n+++ b/other\n"
    assert names(hunk("x", lines=lines)) == [("x",)]


@given(st.lists(st.sampled_from(["a", "dir/b", ".env", "x y", "ü"]), min_size=1, max_size=5))
def test_the_parts_hold_every_line_once(files: list[str]):
    text = "".join(hunk(name) for name in files)
    parts = split_diff(text)
    assert "".join(part.text for part in parts) == text
    assert [part.names[0] for part in parts] == files


@given(st.text('ab-+@ \n/d"\\', max_size=200))
def test_any_text_gives_parts_that_hold_it_all(text: str):
    parts = split_diff(f"diff --git a/x b/x\n{text}")
    assert all(isinstance(part, FileDiff) for part in parts)
    kept = "".join(part.text for part in parts)
    assert [line for line in kept.split("\n") if line] == [
        line for line in f"diff --git a/x b/x\n{text}".split("\n") if line
    ]
