"""`smista config`, `trust`, `credentials` and `apikey`: files, exit codes, and what is shown."""

import io
import os
import stat
import sys
import tomllib

import pytest

from cli import main
from smista.core.intents import Mode
from smista.local.config_files import load_client_config
from smista.local.paths import find_places


class User:
    """Somebody in a project of theirs; commands run in this process."""

    def __init__(self, tmp_path, capsys):
        self.home = tmp_path / "home"
        self.project = tmp_path / "project"
        self.project.mkdir()
        self.file = self.project / ".smista" / "config.toml"
        self.places = find_places({"SMISTA_HOME": str(self.home)}, tmp_path)
        self._capsys = capsys

    def run(self, *words):
        """Return the exit code, what was printed, and what was said beside it."""
        self._capsys.readouterr()
        code = main.run(words)
        said = self._capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    def write(self, text):
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(text)

    def config(self):
        return load_client_config(self.project, self.places)


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


@pytest.mark.parametrize("target", ["project", "global", "router"])
def test_a_starter_file_is_valid_and_changes_nothing(user, target):
    before = user.config().merged
    code, out, _ = user.run("config", "init", target)
    assert code == 0
    path = user.run("config", "path", target)[1]
    assert out == path
    assert user.run("config", "check", target)[0] == 0
    after, notices = user.config()
    assert notices == ()
    assert after.routing == before.routing
    assert after.privacy == before.privacy
    assert after.providers == before.providers
    assert set(after.tools.permissions.values()) <= {Mode.ASK}


def test_init_without_a_target_writes_the_projects_file_and_keeps_keys_out_of_git(user):
    code, out, _ = user.run("config", "init")
    assert (code, out.strip()) == (0, str(user.file))
    assert "secrets" in (user.file.parent / ".gitignore").read_text().splitlines()
    (user.file.parent / ".gitignore").write_text("mine")
    user.run("config", "init", "--force")
    lines = (user.file.parent / ".gitignore").read_text().splitlines()
    assert lines == ["mine", "secrets", "secrets*"]


def test_a_project_starter_does_not_undo_the_users_own_routes(user):
    user.run("config", "init", "global")
    text = user.places.policy_file.read_text().replace("ollama/qwen2.5-coder:7b", "ollama/mine")
    user.places.policy_file.write_text(text)
    user.run("config", "init")
    assert str(user.config().merged.routing.default.model) == "ollama/mine"


def test_init_replaces_a_file_only_when_told_to(user):
    user.write("x = 1\n")
    code, _, err = user.run("config", "init")
    assert code == 2
    assert "smista config init --force project" in err
    assert user.file.read_text() == "x = 1\n"
    assert user.run("config", "init", "--force", "project")[0] == 0
    assert user.run("config", "check")[0] == 0


def test_another_file_can_stand_in_for_every_target(user):
    code, out, _ = user.run("config", "--config", "sub/r.toml", "init", "router")
    other = user.project / "sub" / "r.toml"
    assert (code, out.strip()) == (0, str(other))
    assert user.run("config", "--config", "sub/r.toml", "check", "router")[0] == 0
    other.write_text("[router]\nport = 0\n")
    code, _, err = user.run("config", "--config", "sub/r.toml", "check", "router")
    assert code == 2
    assert f"{other}:2:1: router.port" in err
    assert not user.file.exists()


def test_paths_are_listed_with_whether_they_exist(user):
    user.run("config", "init")
    out = user.run("config", "path")[1]
    assert out.splitlines() == [
        f"router: {user.home / 'router.toml'} (missing)",
        f"global: {user.home / 'config.toml'} (missing)",
        f"project: {user.file} (exists)",
    ]


def test_check_says_all_faults_at_once_with_their_lines(user):
    user.write('surprise = 1\n[routing.default]\nmodel = "gpt"\n[tools.permissions]\nshell = 1\n')
    code, out, err = user.run("config", "check")
    assert (code, out) == (2, "")
    lines = err.splitlines()
    assert len(lines) == 3
    for spot in (":1:1: surprise", ":3:1: routing.default.model", ":5:1: tools.permissions.shell"):
        assert any(f"{user.file}{spot}" in line for line in lines), spot


@pytest.mark.parametrize("command", ["check", "show", "edit"])
def test_a_missing_file_points_at_init(user, command):
    code, _, err = user.run("config", command, "global")
    assert code == 2
    assert "smista config init global" in err


def test_router_warnings_are_said_and_are_no_failure(user):
    user.run("config", "init", "router")
    user.places.router_file.write_text('[router.providers.openai]\nbase_url = "http://x"\n')
    code, out, err = user.run("config", "check", "router")
    assert (code, out.startswith("ok: ")) == (0, True)
    assert "warning: " in err
    assert "router.providers.openai.base_url" in err


def test_show_prints_what_counts_and_redacts_secrets(user):
    user.home.mkdir()
    user.places.policy_file.write_text('[providers.openai]\napi_key = "${secret:CANARY}"\n')
    user.write('[tools.permissions]\nshell = "deny"\n')
    code, out, _ = user.run("config", "show")
    shown = tomllib.loads(out)
    assert code == 0
    assert shown["providers"]["openai"]["api_key"] == "[redacted]"
    assert shown["tools"]["permissions"] == {"shell": "deny"}
    assert shown["routing"]["default"]["model"] == "ollama/qwen2.5-coder:7b"
    assert tomllib.loads(user.run("config", "show", "project")[1]) == {
        "tools": {"permissions": {"shell": "deny"}}
    }
    assert "CANARY" not in user.run("config", "show", "global")[1]


def test_show_redacts_the_password_of_the_store(user):
    user.home.mkdir()
    user.places.router_file.write_text(
        '[router.auth]\nlocal_bootstrap_enabled = false\n[router.storage]\nmode = "remote"\n'
        'url = "wss://user:canary@db"\npassword = "canary"\n'
    )
    code, out, _ = user.run("config", "show", "router")
    assert code == 0
    assert "canary" not in out
    storage = tomllib.loads(out)["router"]["storage"]
    assert storage["password"] == "[redacted]"
    assert storage["url"] == "wss://[redacted]@db"


def editor(tmp_path, text):
    script = tmp_path / "my editor"
    script.write_text(f"#!/bin/sh\ncat > \"$2\" <<'END'\n{text}END\n")
    script.chmod(0o755)
    return f"'{script}' --wait"


def test_what_the_user_saves_in_the_editor_is_trusted_and_checked(user, tmp_path, monkeypatch):
    user.write('[tools.permissions]\nshell = "allow"\n')
    monkeypatch.setenv("EDITOR", "false")
    monkeypatch.setenv("VISUAL", editor(tmp_path, '[tools.permissions]\ngit = "allow"\n'))
    assert user.run("config", "edit")[0] == 0
    config, notices = user.config()
    assert config.tools.permissions == {"git": Mode.ALLOW}
    assert notices == ()
    monkeypatch.setenv("VISUAL", editor(tmp_path, "surprise = 1\n"))
    code, _, err = user.run("config", "edit")
    assert code == 2
    assert ":1:1: surprise" in err


def test_looking_at_a_file_in_the_editor_is_no_trust(user, monkeypatch):
    user.write('[tools.permissions]\nshell = "allow"\n')
    monkeypatch.setenv("VISUAL", "true")
    assert user.run("config", "edit")[0] == 0
    assert user.config().notices


def test_an_editor_that_fails_is_said(user, monkeypatch):
    user.write("")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "/no/such/editor")
    code, _, err = user.run("config", "edit")
    assert code == 1
    assert "set EDITOR" in err


LOOSE = '[tools.permissions]\nshell = "allow"\nnetwork = "deny"\n'


def test_trust_without_a_terminal_shows_what_it_is_about_and_wants_a_yes(user, monkeypatch):
    monkeypatch.setattr("cli.commands.trust.open_terminal", lambda: None)
    user.write(LOOSE)
    code, _, err = user.run("trust")
    assert code == 2
    assert 'tools.permissions.shell = "allow"' in err
    assert "network" not in err
    assert user.config().notices
    assert user.run("trust", "--yes")[0] == 0
    assert user.config().merged.tools.permissions["shell"] is Mode.ALLOW
    assert user.run("trust", "--no")[0] == 0
    assert user.config().notices


def test_trust_is_shown_and_revoked_without_a_question(user):
    user.write(LOOSE)
    code, out, _ = user.run("trust", "show")
    assert code == 0
    assert 'tools.permissions.shell = "allow"' in out
    assert f"not decided yet: {user.file}" in out
    user.run("trust", "--yes")
    assert f"\ntrusted: {user.file}" in user.run("trust", "show")[1]
    assert user.run("trust", "revoke") == (0, f"not trusted: {user.file}\n", "")
    assert user.config().notices
    assert f"not trusted: {user.file}" in user.run("trust", "show")[1]
    assert user.run("trust", "show", "--yes")[0] == 2
    user.write('[tools.permissions]\nshell = "deny"\n')
    assert "counts as it is" in user.run("trust", "show")[1]


def test_trust_is_not_given_to_a_broken_or_missing_file(user):
    assert user.run("trust", "--yes")[0] == 2
    user.write("[routing.default]\nmodel = 'openai/x'\n")
    code, _, err = user.run("trust", "--yes")
    assert code == 2
    assert "not enabled" in err
    assert not (user.home / "trusted.json").exists()


def test_check_says_that_a_file_is_not_trusted_yet(user):
    user.write(LOOSE)
    code, out, err = user.run("config", "check")
    assert (code, out) == (0, f"ok: {user.file}\n")
    assert "smista trust" in err


def test_keys_are_stored_checked_and_removed(user, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"sk-canary\n")))
    code, out, err = user.run("credentials", "set", "OpenAI")
    assert (code, err) == (0, "")
    assert "canary" not in out
    secrets = user.project / ".smista" / "secrets"
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    assert tomllib.loads(secrets.read_text()) == {"openai": "sk-canary"}
    assert user.run("credentials", "get", "openai") == (0, "there is a key of openai\n", "")
    assert user.run("credentials", "--global", "rm", "openai")[1].startswith("the key of openai is")
    assert user.run("credentials", "check", "openai")[0] == 0
    assert user.run("credentials", "delete", "openai")[0] == 0
    assert user.run("credentials", "check", "openai")[0] == 1


def test_a_key_among_the_words_is_warned_about(user):
    code, out, err = user.run("credentials", "--global", "add", "openai-compat:mine", "sk-canary")
    assert code == 0
    assert "shell's history" in err
    assert "canary" not in out + err
    assert "sk-canary" in (user.home / "secrets").read_text()


@pytest.mark.parametrize(
    "words", [("set", "nobody", "k"), ("set", "openai", "a b"), ("set", "openai")]
)
def test_what_is_no_key_or_no_provider_is_refused(user, words):
    assert user.run("credentials", *words)[0] == 2


def test_a_mistyped_provider_is_guessed(user):
    assert "did you mean 'openai'?" in user.run("credentials", "check", "opnai")[2]


@pytest.mark.parametrize("source", ["env", "helper"])
def test_a_router_key_that_would_not_be_used_is_not_kept(user, source):
    user.home.mkdir()
    user.places.policy_file.write_text(f'[router]\nauth_source = "{source}"\n')
    code, _, err = user.run("apikey", "set", "sk-canary")
    assert code == 2
    assert "smista apikey new" in err
    assert not (user.project / ".smista").exists()


def test_where_smista_home_is_set_the_keyring_cannot_be_enforced(user):
    code, out, err = user.run("--enforce-keyring", "credentials", "check", "openai")
    assert (code, out) == (2, "")
    assert "SMISTA_HOME" in err


def test_the_router_key_is_kept_like_the_others(user):
    assert user.run("apikey", "check")[0] == 1
    assert user.run("apikey", "--global", "add", "sk-smista-x")[0] == 0
    assert user.run("apikey", "get") == (0, "there is a router key\n", "")
    assert user.run("apikey", "--global", "remove")[0] == 0
    assert user.run("apikey", "check")[0] == 1


def test_init_writes_through_no_link(user, tmp_path):
    (tmp_path / "private").write_text("mine")
    user.file.parent.mkdir()
    user.file.symlink_to(tmp_path / "private")
    assert user.run("config", "init", "--force")[0] == 0
    assert (tmp_path / "private").read_text() == "mine"
    assert not user.file.is_symlink()
    (user.file.parent / ".gitignore").unlink()
    (user.file.parent / ".gitignore").symlink_to(tmp_path / "private")
    assert user.run("config", "init", "--force")[0] == 2
    assert (tmp_path / "private").read_text() == "mine"


def test_a_starter_file_is_readable_for_whom_the_user_lets_read(user):
    user.run("config", "init")
    assert stat.S_IMODE(user.file.stat().st_mode) == 0o600  # run() takes 077 unless told otherwise
    user.run("config", "init", "global")
    assert stat.S_IMODE(user.places.policy_file.stat().st_mode) == 0o600


def test_keys_that_came_with_the_project_are_not_used_and_that_is_said(user):
    user.file.parent.mkdir()
    (user.file.parent / "secrets").write_text('router = "sk-of-a-stranger"\n')
    code, out, err = user.run("apikey", "check")
    assert (code, out) == (1, "no router key; obtain one: smista login\n")
    assert "was not written by smista for you" in err
