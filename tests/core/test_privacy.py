"""Restricted paths: every spelling of one file, and what happens when a list cannot be read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.paths import fold_path, normalise, relative, spellings
from smista.core.policy import Policy
from smista.core.privacy import Guard, guard
from tests.core.builders import ROOT, request

LOOK_ALIKES = (
    *("secrets/key.pem", "./secrets/key.pem", "secrets//key.pem", "secrets/./key.pem"),
    *("a/../secrets/key.pem", "secrets/x/../key.pem", "secrets\\key.pem", ".\\secrets\\key.pem"),
    *(f"{ROOT}/secrets/key.pem", f"{ROOT}//secrets/key.pem", f"{ROOT}/x/../secrets/key.pem"),
    *("../project/secrets/key.pem", "../../u/project/secrets/key.pem"),
    *("SECRETS/KEY.PEM", "Secrets/key.Pem", f"{ROOT.upper()}/SECRETS/key.pem"),
    *("secrets/key.pem.", "secrets/key.pem..", "secrets/key.pem ", "secrets/key.pem. ."),
    *("secrets./key.pem", "secrets /key.pem", "secrets. /KEY.pem"),
    *("secrets/key.pem::$DATA", "secrets/key.pem:stream", "secrets/key.pem:a:$DATA"),
    *("secrets::$INDEX_ALLOCATION/key.pem", "secrets/key.pem::$data"),
    *("secrets/k\u200bey.pem", "sec\u00adrets/key.pem", "secrets/\ufeffkey.pem"),
    *("secrets/key.p\u2060em", "secr\ufe0fets/key.pem", "secrets/key\u202e.pem"),
    *("secrets/key.pem\x00", "secrets/key.pem\n", "SECRE~1/key.pem", "secrets/KEY~1.PEM"),
    *("secrets/\u212aey.pem", "\u017fecrets/key.pem", "secrets/../secrets/key.pem/"),
    *("secrets/key.pem/..namedfork/rsrc", "secrets/key.pem/..namedfork"),
    *("secrets/.\u200b./secrets/key.pem", "secrets/.. /secrets/key.pem"),
)


def lists(root: str = ROOT, **privacy: Any) -> Guard:
    return guard(request(privacy=privacy).policy, root)


def test_there_are_forty_look_alikes():
    assert len(set(LOOK_ALIKES)) >= 40


@pytest.mark.parametrize("path", LOOK_ALIKES)
def test_every_look_alike_of_a_restricted_path_is_restricted(path: str):
    assert lists(restricted_paths=["secrets/key.pem"]).restricts(path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("straße.key", "STRASSE.KEY"),
        ("strasse.key", "straße.key"),
        ("café.txt", "cafe\u0301.txt"),
        ("cafe\u0301.txt", "CAFÉ.TXT"),
        ("ﬁle.txt", "FILE.txt"),
        ("SECRETS/**", "secrets/a"),
        ("secrets\\**", "secrets/a"),
        ("secrets/", "secrets"),
        ("foo.", "foo"),
        ("a/.ssh/**", "/home/other/a/.ssh/id"),
        ("/etc/passwd", "/etc/passwd"),
        (f"{ROOT}/private/**", "private/x"),
        (f"{ROOT}/private/**", f"{ROOT}/private/x"),
        (".env", "/tmp/.env"),
    ],
)
def test_pattern_and_path_are_read_alike(pattern: str, path: str):
    assert lists(restricted_paths=[pattern]).restricts(path)


@pytest.mark.parametrize(
    "path", ["src/main.rs", "secret/key.pem", "secrets.md", "docs/secrets/key.pem", "envelope.txt"]
)
def test_other_paths_stay_free(path: str):
    assert lists(restricted_paths=["/secrets/**", ".env"]).restricts(path) is None


def test_the_union_of_all_lists_counts_and_is_named():
    policy = request(
        privacy={"restricted_paths": ["a"], "remote": {"blocked_paths": ["b"]}},
        routing={
            "rules": [
                {"name": "r", "local_only": True, "paths": ["c/**"], "model": "ollama/m"},
                {"name": "s", "paths": ["d/**"], "model": "ollama/m"},
            ]
        },
    ).policy
    found = guard(policy, ROOT)
    assert found.restricts("a") == "a matches 'a' of privacy.restricted_paths"
    assert found.restricts("b") == "b matches 'b' of privacy.remote.blocked_paths"
    assert found.restricts("c/x") == "c/x matches 'c/**' of the local_only rule 'r'"
    assert found.restricts("d/x") is None


@pytest.mark.parametrize("pattern", ["!.env", "a[b", "", "x" * 300])
def test_a_bad_pattern_restricts_everything(pattern: str):
    assert "cannot be read" in (lists(restricted_paths=["x", pattern]).restricts("README.md") or "")


def test_without_lists_nothing_is_restricted():
    assert lists().restricts("SECRE~1") is None
    assert not lists().active


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("./a//b/../c/", "a/c"),
        ("/a/../../b", "/b"),
        ("../x", "../x"),
        ("a\\b", "a/b"),
        ("e\u0301", "é"),
        (".", ""),
    ],
)
def test_normalised_paths(path: str, plain: str):
    assert normalise(path) == plain


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("src/a", "src/a"),
        (f"{ROOT}/src/a", "src/a"),
        ("../project/a", "a"),
        ("../other/a", None),
        (f"{ROOT}x/a", None),
        (ROOT, ""),
    ],
)
def test_paths_relative_to_the_root(path: str, found: str | None):
    assert relative(path, ROOT) == found


def test_routing_compares_a_path_as_given_and_relative_to_the_root():
    assert spellings(f"{ROOT}/src/a", ROOT) == ("src/a", f"{ROOT}/src/a".lstrip("/"))
    assert spellings("src/a", ROOT) == ("src/a",)


@given(st.text(max_size=30))
def test_folding_twice_changes_nothing(path: str):
    assert fold_path(fold_path(path)) == fold_path(path)


@given(st.lists(st.sampled_from(["a", "B", "ß", "é", "x.y", ".env"]), min_size=1, max_size=4))
def test_a_path_restricts_itself_however_it_is_written(parts: list[str]):
    path = "/".join(parts)
    found = lists(restricted_paths=[f"/{path}"])
    for spelling in (path, path.upper(), path.casefold(), f"./{path}", f"{ROOT}/{path}"):
        assert found.restricts(spelling)


def test_a_policy_is_compiled_for_its_own_root():
    policy: Policy = request(privacy={"restricted_paths": ["/x"]}).policy
    assert guard(policy, "/one").restricts("/one/x")
    assert guard(policy, "/two").restricts("/two/x")
