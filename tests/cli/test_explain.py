"""`smista explain`: the decision that a run would make, said without a router or a network."""

import io
import json
import os
import socket
import sys
from datetime import UTC, datetime, timedelta

import pytest

from cli import main
from smista.core.model_ref import Capabilities, Catalog, ModelDescriptor
from smista.local.catalog_file import catalog_path, write_catalog
from smista.local.paths import find_places

POLICY = """\
[providers.ollama]
[providers.openai]

[[classification.rules]]
intent = "edit"
keywords = ["fix"]

[[routing.rules]]
name = "only notes"
priority = 1
paths = ["notes/**"]
model = "ollama/small"

[[routing.rules]]
name = "edits"
priority = 10
intent = "edit"
model = "openai/gone"
fallbacks = ["openai/big", "ollama/small", "openai/never"]
cost_limit = "0.50"

[[routing.rules]]
name = "anything"
priority = 20
model = "ollama/small"

[routing.default]
model = "ollama/small"

[tools.permissions]
shell = "deny"
"""


def model(ref, **facts):
    provider, _, name = ref.partition("/")
    local = provider == "ollama"
    base = {
        "local": local,
        "auth": "none" if local else "api_key",
        "capabilities": Capabilities(tools=True),
        "max_context_tokens": 10_000,
    }
    return ModelDescriptor(provider=provider, model=name, **{**base, **facts})


MODELS = (
    model("ollama/small"),
    model("openai/big", input_cost_per_million_tokens="10", output_cost_per_million_tokens="20"),
)


class User:
    def __init__(self, tmp_path, capsys):
        self.home = tmp_path / "home"
        self.home.mkdir()
        self.project = tmp_path / "project"
        self.project.mkdir()
        self.places = find_places({"SMISTA_HOME": str(self.home)}, tmp_path)
        self.file = self.places.policy_file
        self.file.write_text(POLICY)
        self._capsys = capsys

    def knows(self, *models, age=timedelta()):
        now = datetime.now(UTC) - age
        write_catalog(catalog_path(self.places), Catalog(models), now=now)

    def has_key(self, provider):
        secrets = self.home / "secrets"
        secrets.write_text(f'{provider} = "sk-canary"\n')
        secrets.chmod(0o600)

    def run(self, *words):
        self._capsys.readouterr()
        code = main.run(["explain", *words])
        said = self._capsys.readouterr()
        assert "canary" not in said.out + said.err
        assert "Traceback" not in said.err
        return code, said.out, said.err

    def json(self, *words):
        code, out, _ = self.run("--json", *words)
        return code, json.loads(out)


@pytest.fixture
def user(tmp_path, capsys, monkeypatch):
    made = User(tmp_path, capsys)
    for name in [name for name in os.environ if name.startswith("SMISTA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SMISTA_HOME", str(made.home))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(made.project)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    return made


def line_of(text):
    return POLICY.split("\n").index(text) + 1


def test_every_rule_is_named_with_its_line_and_why_it_did_or_did_not_match(user):
    user.knows(*MODELS)
    _, out, _ = user.run("fix the parser")
    section = out.split("rules\n")[1].split("\n\n")[0].splitlines()
    lines = [
        number for number, line in enumerate(POLICY.split("\n"), 1) if line == "[[routing.rules]]"
    ]
    assert section == [
        f"  -  rule 'only notes': no task path fits its paths  [{user.file}:{lines[0]}]",
        f"  -> rule 'edits' matched the edit intent  [{user.file}:{lines[1]}]",
        f"  =  rule 'anything' matched any task, but 'edits' is stronger  [{user.file}:{lines[2]}]",
    ]
    assert f"[{user.file}:{line_of('[[classification.rules]]')}]" in out


def test_every_model_of_the_chain_says_why_it_does_not_serve(user):
    user.knows(*MODELS)
    code, made = user.json("fix it")
    assert code == 0
    assert [(m["model"], m["serves"], m.get("code")) for m in made["models"]] == [
        ("openai/gone", False, "unknown_model"),
        ("openai/big", False, "missing_provider_credentials"),
        ("ollama/small", True, None),
        ("openai/never", False, None),
    ]
    assert made["models"][3]["reason"] == "not reached"
    assert (made["routing"]["provider"], made["routing"]["model"]) == ("ollama", "small")
    assert made["estimated_cost"]["max"] == "0"


def test_a_stored_key_counts_and_is_not_shown(user):
    user.knows(*MODELS)
    user.has_key("openai")
    code, made = user.json("fix it")
    assert code == 0
    assert made["routing"]["model"] == "big"
    assert made["estimated_cost"]["known"]
    assert float(made["estimated_cost"]["max"]) > float(made["estimated_cost"]["min"]) > 0
    _, out, _ = user.run("fix it")
    assert "limit 0.5" in out
    assert "openai/big (remote)" in out


def test_the_context_is_a_table_with_sizes_and_marks(user):
    user.knows(*MODELS)
    user.has_key("openai")
    (user.project / ".env").write_text("A=" + "x" * 38)
    (user.project / "a.py").write_text("print(1)")
    code, made = user.json("fix @a.py like in @.env")
    assert code == 0
    items = {item["label"]: item for item in made["context"]}
    assert items[".env"]["tokens"] == 10
    assert items[".env"]["restricted"]
    assert items["a.py"]["required"]
    assert not items["a.py"]["restricted"]
    # A required restricted file keeps the whole turn on this machine.
    assert made["routing"]["provider"] == "ollama"
    assert "restricted_paths" in made["models"][1]["reason"]


def test_tools_are_shown_under_the_modes_that_govern_them(user):
    user.knows(*MODELS)
    _, made = user.json("hello")
    assert made["tools"]["shell"] == "deny"
    assert made["tools"]["write_file"] == "ask"
    _, made = user.json("--permission", "file_write=deny", "--no-network", "hello")
    assert made["tools"]["write_file"] == "deny"
    assert made["tools"]["fetch_url"] == "deny"


@pytest.mark.parametrize(
    "words",
    [("--permission", "shell=allow"), ("--permission", "shell=maybe"), ("--remote", "allow")],
)
def test_a_run_cannot_be_explained_under_weaker_rules(user, words):
    user.knows(*MODELS)
    code, out, err = user.run(*words, "hello")
    assert (code, out) == (2, "")
    assert err


def test_a_refusal_is_explained_and_is_a_failure(user):
    user.knows(*MODELS)
    code, made = user.json("--model", "openai/big", "--local-only", "hello")
    assert code == 4
    assert made["error"]["code"] == "override_not_allowed"
    assert [rule["chosen"] for rule in made["rules"]] == [False] * 3
    _, out, _ = user.run("--model", "openai/big", "--local-only", "hello")
    assert "refused, override_not_allowed" in out
    assert "but a model was asked for" in out


def test_the_facts_and_their_age_are_named(user):
    user.knows(*MODELS, age=timedelta(hours=3, minutes=5))
    _, _, err = user.run("hello")
    assert "facts about 2 models as the router last listed them, 3 hours ago" in err


def test_without_facts_it_says_how_to_get_them_and_still_explains_the_rest(user):
    code, out, err = user.run("fix it")
    assert code == 1
    assert "smista start" in err
    assert "rule 'edits' matched the edit intent" in out


def test_nothing_is_asked_over_the_network(user, monkeypatch):
    user.knows(*MODELS)

    def refuse(*_args, **_kwargs):
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert user.run("fix it")[0] == 0


def test_control_characters_of_a_policy_do_not_reach_the_terminal(user):
    user.file.write_text(POLICY.replace('"anything"', '"any\\u001b[31mthing"'))
    user.knows(*MODELS)
    _, out, _ = user.run("hello")
    assert "\x1b" not in out
    assert "any\\x1b[31mthing" in out
