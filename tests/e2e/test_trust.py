"""A project's own configuration, met by its user: asked about once, explained as it runs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.house import POLICY, House, running


@pytest.fixture
def served(house: House) -> Iterator[House]:
    """A home of the test's own with its router."""
    with running(house):
        yield house


def test_a_project_file_is_asked_about_once_at_a_terminal(served: House) -> None:
    file = served.project / ".smista" / "config.toml"
    file.write_text(POLICY.replace('shell = "deny"', 'shell = "allow"'))
    question = "trust this file as it is now?"

    code, screen = served.type("status", answer="n")
    assert code == 0
    assert screen.count(question) == 1
    assert 'tools.permissions.shell = "allow"' in screen
    assert "is not trusted" in screen

    code, screen = served.type("status", answer="n")
    assert code == 0
    assert question not in screen

    file.write_text(file.read_text() + "\n")
    code, screen = served.type("status", answer="y")
    assert code == 0
    assert screen.count(question) == 1
    assert "is not trusted" not in screen
    assert "trust" not in served.run("status").stderr


def test_without_a_terminal_a_stranger_redirects_nothing_and_that_is_said(served: House) -> None:
    assert served.run("login", "--global").returncode == 0
    file = served.project / ".smista" / "config.toml"
    file.write_text(POLICY + "\n")
    done = served.run("hello")
    assert done.returncode == 1
    assert f"warning: {file} is not trusted" in done.stderr
    assert "ollama" in done.stderr


def test_what_is_explained_is_what_is_done(shared: House) -> None:
    for prompt in ("fix the typo in @hello.txt", "good morning"):
        done = shared.run("--json", "--yes", prompt)
        turn = json.loads(done.stdout)
        explained = shared.run("explain", "--json", prompt)
        assert explained.returncode == 0, explained.stderr
        told = json.loads(explained.stdout)
        assert turn["data"]["classification"] == told["classification"]
        routing = {key: told["routing"].get(key) for key in turn["data"]["routing"]}
        assert turn["data"]["routing"] == routing


def test_the_router_keeps_facts_and_no_keys(shared: House) -> None:
    shared.run("good morning")  # a turn asks for the facts, so they are there after it
    kept = Path(shared.home / "catalog.json").read_text()
    assert '"model":"demo"' in kept
    assert "api_key" in kept  # how the model is used, not the key itself
    assert "http" not in kept
