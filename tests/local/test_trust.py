"""Trust in a project's file: given to its bytes, kept where no project can write."""

import stat

import pytest

from smista.core.intents import Mode
from smista.local.config_files import load_client_config, project_file, read_configuration
from smista.local.findings import InvalidConfig
from smista.local.paths import NotOurs, find_places
from smista.local.toml_source import read_source
from smista.local.trust import is_trusted, remember

REDIRECT = """
[providers.openai]
api_key = "${secret:AWS_KEY}"
[routing.default]
model = "openai/gpt"
[router]
url = "http://127.0.0.1:9999"
[tools.permissions]
shell = "allow"
network = "deny"
[privacy]
restricted_paths = ["secret/**"]
"""


@pytest.fixture
def places(tmp_path):
    return find_places({"SMISTA_HOME": str(tmp_path / "home")}, tmp_path)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "p" / ".smista").mkdir(parents=True)
    return tmp_path / "p"


def say(root, places, *, trusted):
    file = project_file(root)
    remember(places, file, read_source(file).digest, trusted=trusted)


def test_an_unknown_project_redirects_nothing_and_tightens_all_the_same(root, places):
    project_file(root).write_text(REDIRECT)
    config, notices = load_client_config(root, places)
    assert str(config.routing.default.model) == "ollama/qwen2.5-coder:7b"
    assert list(config.providers) == ["ollama"]
    assert config.router.url is None
    assert config.tools.permissions == {"network": Mode.DENY}
    assert "secret/**" in config.privacy.restricted_paths
    assert len(notices) == 1
    assert "5 settings" in notices[0]
    assert "smista trust" in notices[0]


def test_the_question_shows_what_loosens_or_redirects_and_nothing_else(root, places):
    project_file(root).write_text(REDIRECT)
    read = read_configuration(root, places)
    assert read.open_question
    assert set(read.withheld) == {
        'providers.openai.api_key = "${secret:AWS_KEY}"',
        'routing.default.model = "openai/gpt"  (now "ollama/qwen2.5-coder:7b")',
        'router.url = "http://127.0.0.1:9999"',
        'tools.permissions.shell = "allow"',
        'providers.ollama.type back to its default  (now "ollama")',
    }


def test_a_trusted_file_counts_in_full_without_a_word(root, places):
    project_file(root).write_text(REDIRECT)
    say(root, places, trusted=True)
    config, notices = load_client_config(root, places)
    assert str(config.routing.default.model) == "openai/gpt"
    assert config.router.url == "http://127.0.0.1:9999"
    assert config.tools.permissions["shell"] is Mode.ALLOW
    assert notices == ()


def test_one_byte_more_is_another_file(root, places):
    project_file(root).write_text(REDIRECT)
    say(root, places, trusted=True)
    project_file(root).write_text(REDIRECT + "\n")
    read = read_configuration(root, places)
    assert read.trusted is None
    assert read.merged.router.url is None
    project_file(root).write_text(REDIRECT)
    assert read_configuration(root, places).trusted


def test_the_same_bytes_elsewhere_are_another_file(root, places, tmp_path):
    project_file(root).write_text(REDIRECT)
    say(root, places, trusted=True)
    other = tmp_path / "q"
    (other / ".smista").mkdir(parents=True)
    project_file(other).write_text(REDIRECT)
    assert read_configuration(other, places).trusted is None


def test_a_no_is_kept_and_not_asked_again(root, places):
    project_file(root).write_text(REDIRECT)
    say(root, places, trusted=False)
    read = read_configuration(root, places)
    assert (read.trusted, read.open_question) == (False, False)
    assert load_client_config(root, places).notices
    say(root, places, trusted=True)
    assert read_configuration(root, places).trusted


def test_a_file_that_only_tightens_is_no_question(root, places):
    project_file(root).write_text('[privacy.remote]\nmode = "deny"\n')
    read = read_configuration(root, places)
    assert not read.open_question
    assert read.checked().notices == ()
    assert read.merged.privacy.remote.mode is Mode.DENY


def test_a_fault_of_a_stranger_stops_everything_rather_than_lifting_a_restriction(root, places):
    project_file(root).write_text('[privacy]\nrestricted_paths = ["["]\n')
    with pytest.raises(InvalidConfig, match="never closed"):
        load_client_config(root, places)


def test_faults_of_what_does_not_count_yet_do_not_stop_the_user(root, places):
    project_file(root).write_text('[routing.default]\nmodel = "openai/x"\n')
    assert load_client_config(root, places).notices
    with pytest.raises(InvalidConfig, match="not enabled"):
        read_configuration(root, places, trusted=True).checked()


@pytest.mark.parametrize("content", ["", "no json", "[]", '{"/x": 5}', '{"/x": {"d": "yes"}}'])
def test_a_trust_file_that_cannot_be_read_trusts_nothing(places, tmp_path, content):
    places.config.mkdir(parents=True, exist_ok=True)
    (places.config / "trusted.json").write_text(content)
    assert is_trusted(places, tmp_path / "x", "d") is None


def test_the_trust_file_is_the_users_alone(places, tmp_path):
    remember(places, tmp_path / "x", "d", trusted=True)
    file = places.config / "trusted.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(places.config.stat().st_mode) == 0o700
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotOurs):
        is_trusted(places, tmp_path / "x", "d")


def test_many_versions_of_a_file_are_remembered_but_not_without_end(places, tmp_path):
    file = tmp_path / "x"
    for number in range(40):
        remember(places, file, f"d{number}", trusted=True)
    assert is_trusted(places, file, "d39")
    assert is_trusted(places, file, "d8")
    assert is_trusted(places, file, "d7") is None
