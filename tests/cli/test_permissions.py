"""The stricter word counts: the router's, the policy's, or what the call touches."""

from itertools import product

import pytest

from cli.permissions import approved_in_advance, denied, mode_of
from cli.tools import leads_to, prepare
from smista.core.events import ToolRequest
from smista.core.intents import Mode, stricter
from smista.core.policy import ToolsConfig
from tests.cli.ground import call, surroundings

WRITE = {"path": "a.txt", "content": "x"}


@pytest.fixture
def here(tmp_path):
    return surroundings(tmp_path)


def mode(here, request, **permissions):
    return mode_of(
        request,
        prepare(request, here, agreed=leads_to(request, here)),
        ToolsConfig(permissions=permissions),
    )


@pytest.mark.parametrize(("router", "own"), list(product(["allow", "ask"], Mode)))
def test_a_routers_word_tightens_and_never_loosens(here, router, own):
    assert mode(here, call("shell", router, command="ls"), shell=own) is stricter(Mode(router), own)


@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file", "shell"])
def test_what_nobody_configured_is_asked(here, name):
    (here.root / "a.txt").write_text("x")
    arguments = {
        "read_file": {"path": "a.txt"},
        "write_file": WRITE,
        "edit_file": {"path": "a.txt", "old": "x", "new": "y"},
        "shell": {"command": "ls"},
    }
    assert mode(here, call(name, "allow", **arguments[name])) is Mode.ASK


def test_a_mode_under_the_tools_own_name_counts_too(here):
    request = call("write_file", "allow", **WRITE)
    assert mode(here, request, file_write="allow", write_file="deny") is Mode.DENY
    for key in ("file_write", "write_file"):
        assert denied(request, ToolsConfig(permissions={key: "deny"}))
    assert not denied(request, ToolsConfig(permissions={"shell": "deny"}))
    assert mode(here, request, file_write="allow", write_file="allow") is Mode.ALLOW


@pytest.mark.parametrize("path", ["../x", "/etc/x", "AGENTS.md", ".github/x"])
def test_outside_the_root_and_what_steers_others_always_asks(here, path):
    request = call("write_file", "allow", path=path, content="x")
    assert mode(here, request, file_write="allow") is Mode.ASK


def test_reading_outside_the_root_always_asks(here):
    assert (
        mode(here, call("read_file", "allow", path="/etc/hostname"), file_read="allow") is Mode.ASK
    )


def test_a_command_with_restricted_content_in_view_always_asks(here):
    request = ToolRequest("c", "shell", {"command": "ls"}, "allow", restricted_in_view=True)
    assert mode(here, request, shell="allow") is Mode.ASK
    assert mode(here, call("shell", "allow", command="ls"), shell="allow") is Mode.ALLOW


@pytest.mark.parametrize(
    ("request_", "covered"),
    [
        (call("write_file", **WRITE), True),
        (call("write_file", path="../x", content="x"), False),
        (call("write_file", path=".envrc", content="x"), False),
        (call("read_file", path="a.txt"), False),
        (call("shell", command="ls"), False),
    ],
)
def test_yes_covers_writes_inside_the_root_only(here, request_, covered):
    prepared = prepare(request_, here, agreed=leads_to(request_, here))
    assert approved_in_advance(prepared, yes=True) is covered
    assert not approved_in_advance(prepared, yes=False)


def test_fetching_follows_the_network_permission(here):
    request = call("fetch_url", "allow", url="https://example.org/a")
    assert mode(here, request) is Mode.ASK
    assert mode(here, request, network="allow") is Mode.ALLOW
    assert denied(request, ToolsConfig(permissions={"network": "deny"}))
    seen = ToolRequest("c", "fetch_url", {"url": "https://example.org"}, "allow", True)
    assert mode(here, seen, network="allow") is Mode.ASK
