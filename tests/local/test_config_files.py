"""`config.toml`: layers, how they merge, and what is refused."""

import pytest

from smista.core.intents import Mode
from smista.local.config_files import combine, load_client_config
from smista.local.findings import InvalidConfig
from smista.local.paths import find_places
from smista.local.toml_source import read_source
from smista.local.trust import remember

ROUTED = """
[providers.openai]
type = "OpenAI"
[routing.default]
model = "openai/gpt"
"""


class Files:
    def __init__(self, tmp_path):
        self.root = tmp_path / "p"
        (self.root / ".smista").mkdir(parents=True)
        (tmp_path / "home").mkdir()
        self.places = find_places({"SMISTA_HOME": str(tmp_path / "home")}, tmp_path)

    def own(self, text):
        self.places.policy_file.write_text(text)

    def project(self, text, *, trusted=True):
        file = self.root / ".smista" / "config.toml"
        file.write_text(text)
        remember(self.places, file, read_source(file).digest, trusted=trusted)

    def load(self):
        return load_client_config(self.root, self.places)

    def findings(self):
        with pytest.raises(InvalidConfig) as caught:
            self.load()
        return {finding.place: finding for finding in caught.value.findings}


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


def test_without_any_file_the_built_in_configuration_is_valid(files):
    config, notices = files.load()
    assert str(config.routing.default.model) == "ollama/qwen2.5-coder:7b"
    assert list(config.providers) == ["ollama"]
    assert ".env" in config.privacy.restricted_paths
    assert notices == ()
    assert config.policy().source == "merged"
    assert config.local_preferences.encrypt_sessions


def test_the_project_goes_over_the_user_and_the_user_over_the_defaults(files):
    files.own(
        '[tools.permissions]\nshell = "deny"\nfile_read = "allow"\n[router]\nauto_start = true'
    )
    files.project('[tools.permissions]\nshell = "ask"\n[local_preferences]\nlocal_only = true')
    config, _ = files.load()
    assert config.tools.permissions == {"shell": Mode.ASK, "file_read": Mode.ALLOW}
    assert config.router.auto_start
    assert config.local_preferences.travelling().local_only


def test_the_built_in_provider_leaves_with_its_route(files):
    files.own(ROUTED)
    assert list(files.load().merged.providers) == ["openai"]
    files.own('[providers.openai]\ntype = "openai"\n')
    assert sorted(files.load().merged.providers) == ["ollama", "openai"]


def test_rules_are_replaced_by_name_and_the_default_route_whole():
    lower = {"rules": [{"name": "a", "n": 1}, {"name": "b", "n": 1}], "default": {"fallbacks": []}}
    higher = {"rules": [{"name": "b", "n": 2}, {"name": "c", "n": 2}], "default": {"model": "m"}}
    merged = combine({"routing": lower}, {"routing": higher})["routing"]
    assert [(rule["name"], rule["n"]) for rule in merged["rules"]] == [("a", 1), ("b", 2), ("c", 2)]
    assert merged["default"] == {"model": "m"}


def test_classification_rules_are_taken_whole_and_privacy_lists_united():
    lower = {"classification": {"rules": [1, 2]}, "privacy": {"restricted_paths": ["x"]}}
    higher = {"classification": {"rules": [3]}, "privacy": {"restricted_paths": ["y", ".env"]}}
    merged = combine(lower, higher)
    assert merged["classification"]["rules"] == [3]
    united = merged["privacy"]["restricted_paths"]
    assert united[0] == ".env"
    assert united[-2:] == ["x", "y"]
    assert united.count(".env") == 1


def test_merging_changes_no_layer():
    lower = {"routing": {"rules": [{"name": "a"}]}, "privacy": {"restricted_paths": ["x"]}}
    before = repr(lower)
    combine(lower, {"routing": {"rules": [{"name": "b"}]}, "privacy": {"restricted_paths": ["y"]}})
    assert repr(lower) == before


def test_every_fault_is_found_in_one_pass(files):
    files.own("surprise = 1\n[tools.permissions]\nshell = 'maybe'\n")
    files.project(
        """
        [[classification.rules]]
        intent = "dance"
        [[routing.rules]]
        name = "a"
        model = "nomodel"
        effort = "much"
        typo = 1
        """
    )
    assert set(files.findings()) == {
        "surprise",
        "tools.permissions.shell",
        "classification.rules[0].intent",
        "routing.rules[0].model",
        "routing.rules[0].effort",
        "routing.rules[0].typo",
    }


def test_the_merged_rules_are_checked(files):
    files.own(
        """
        [tools.permissions]
        shell = "ask"
        [privacy]
        restricted_paths = ["!x"]
        [providers.openai]
        api_key = "sk-inline-canary"
        [providers.nobody]
        [[routing.rules]]
        name = "same"
        model = "anthropic/claude"
        [[routing.rules]]
        name = "same"
        model = "openai/gpt"
        fallbacks = ["openai/gpt"]
        required_permissions = { permissions = { shell = "allow" } }
        """
    )
    findings = files.findings()
    assert {
        "privacy.restricted_paths[0]",
        "providers.openai.api_key",
        "providers.nobody",
        "routing.rules[0].model",
        "routing.rules[1].name",
        "routing.rules[1].fallbacks[0]",
        "routing.rules[1].priority",
        "routing.rules[1].required_permissions.permissions.shell",
    } == set(findings)
    assert "canary" not in "".join(map(str, findings.values()))


def test_rules_that_never_match_together_are_not_ambiguous(files):
    rule = '[[routing.rules]]\nname = "{0}"\nintent = "{0}"\nmodel = "ollama/m"\n'
    files.own(rule.format("plan") + rule.format("edit"))
    assert len(files.load().merged.routing.rules) == 2


def test_a_project_cannot_send_the_user_to_another_machine(files):
    files.project('[router]\nurl = "https://evil.example"\nauth_source = "helper"\n')
    assert set(files.findings()) == {"router.url", "router.auth_source"}


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("http://127.0.0.1:7331", True),
        ("http://localhost:7331/", True),
        ("http://[::1]:7331", True),
        ("https://router.example", True),
        ("http://router.example", False),
        ("http://127.0.0.1.evil.example", False),
        ("http://user:pw@127.0.0.1", False),
        ("ftp://127.0.0.1", False),
        ("127.0.0.1:7331", False),
    ],
)
def test_keys_are_sent_in_clear_on_this_machine_only(files, url, good):
    files.own(f'[router]\nurl = "{url}"\n')
    if good:
        assert files.load().merged.router.url == url
    else:
        assert set(files.findings()) == {"router.url"}
