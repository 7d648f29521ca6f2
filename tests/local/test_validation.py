"""Every row of both validation tables, by name: what fires it, where it is said, and the cure."""

import pytest

from smista.core.intents import Mode
from smista.local.config_files import configuration, own_configuration
from smista.local.config_layers import layer_of
from smista.local.config_overrides import Override, override
from smista.local.findings import InvalidConfig, Severity
from smista.local.router_file import parse_router
from smista.local.toml_source import parse_source

RULE = '[[routing.rules]]\nname = "{name}"\nmodel = "ollama/m"\n'

POLICY_ROWS = {
    "unknown provider": (
        '[routing.default]\nmodel = "openai/x"\n[providers.ollama]\n',
        ("routing.default.model", 2, "not enabled", "[providers.openai]"),
    ),
    "unknown provider of a fallback": (
        '[routing.default]\nmodel = "ollama/x"\nfallbacks = ["ollama/y", "openai/x"]\n',
        ("routing.default.fallbacks[1]", 3, "not enabled", "[providers.openai]"),
    ),
    "invalid glob in restricted_paths": (
        '[privacy]\nrestricted_paths = [\n  "ok",\n  "{a,b",\n]\n',
        ("privacy.restricted_paths[1]", 4, "'{' is never closed", "write a pattern"),
    ),
    "invalid glob in blocked_paths": (
        '[privacy.remote]\nblocked_paths = ["[a"]\n',
        ("privacy.remote.blocked_paths[0]", 2, "'[' is never closed", "write a pattern"),
    ),
    "invalid glob in a rule": (
        RULE.format(name="a") + 'paths = ["!x"]\n',
        ("routing.rules[0].paths[0]", 4, "may not start with '!'", "write a pattern"),
    ),
    "duplicate rule name": (
        RULE.format(name="a") + "priority = 1\n" + RULE.format(name="a"),
        ("routing.rules[1].name", 6, "taken by another rule", "rename"),
    ),
    "invalid fallback: its own model": (
        RULE.format(name="a") + 'fallbacks = ["ollama/m"]\n',
        ("routing.rules[0].fallbacks[0]", 4, "its own model", "drop"),
    ),
    "invalid fallback: listed twice": (
        RULE.format(name="a") + 'fallbacks = ["ollama/n", "ollama/n"]\n',
        ("routing.rules[0].fallbacks[1]", 4, "stands before it", "drop"),
    ),
    "ambiguous rules": (
        RULE.format(name="a") + 'intent = "plan"\n' + RULE.format(name="b") + "local_only = true\n",
        ("routing.rules[1].priority", 5, "as strong as the rule 'a'", "lower priority number"),
    ),
    "permission widening by a rule": (
        '[tools.permissions]\nshell = "ask"\n'
        + RULE.format(name="a")
        + 'required_permissions = { permissions = { shell = "allow" } }\n',
        (
            "routing.rules[0].required_permissions.permissions.shell",
            6,
            "looser here than the configured ask",
            "'ask' or 'deny'",
        ),
    ),
    "inline secret": (
        '[providers.ollama]\napi_key = "sk-canary"\n',
        ("providers.ollama.api_key", 2, "a key stands in the file", "credentials set ollama"),
    ),
    "unknown intent": (
        RULE.format(name="a") + 'intent = "reveiw"\n',
        ("routing.rules[0].intent", 4, "unknown intent", "did you mean 'review'?"),
    ),
    "invalid permission value": (
        '[tools.permissions]\nshell = "yes"\n',
        ("tools.permissions.shell", 2, "unknown permission mode", "allow, ask, deny"),
    ),
    "invalid model reference": (
        '[routing.default]\nmodel = "gpt"\n',
        ("routing.default.model", 2, "not a model reference", "provider/model"),
    ),
    "unknown provider type": (
        '[providers.ollama]\ntype = "olama"\n',
        ("providers.ollama.type", 2, "not a provider", "did you mean 'ollama'?"),
    ),
    "unknown provider table": (
        "[providers.anthropicc]\n",
        ("providers.anthropicc", 1, "not a provider", "did you mean 'anthropic'?"),
    ),
    "an instance with the name of a built-in provider": (
        '[providers."openai-compat:openai"]\n',
        ('providers."openai-compat:openai"', 1, "may not bear the name", "correct"),
    ),
    "unknown effort": (
        RULE.format(name="a") + 'effort = "hihg"\n',
        ("routing.rules[0].effort", 4, "unknown effort", "did you mean 'high'?"),
    ),
    "unknown key": (
        RULE.format(name="a") + "prioritty = 1\n",
        ("routing.rules[0].prioritty", 4, "unknown key", "did you mean 'priority'?"),
    ),
    "unknown table": (
        "[privcy]\n",
        ("privcy", 1, "unknown key", "did you mean 'privacy'?"),
    ),
    "unknown context kind": (
        '[[classification.rules]]\nintent = "edit"\nrequires_any_context = ["git_dif"]\n',
        (
            "classification.rules[0].requires_any_context[0]",
            3,
            "no such kind",
            "did you mean 'git_diff'?",
        ),
    ),
    "a tool misspelt": (
        '[tools.permissions]\nshel = "deny"\n',
        ("tools.permissions.shel", 2, "no such tool", "did you mean 'shell'?"),
    ),
    "a rule without a model": (
        '[[routing.rules]]\nname = "a"\n',
        ("routing.rules[0].model", 1, "missing", "add model"),
    ),
    "text where a switch belongs": (
        RULE.format(name="a") + 'local_only = "yes"\n',
        ("routing.rules[0].local_only", 4, "true or false", "without quotes"),
    ),
    "text where a number belongs": (
        RULE.format(name="a") + 'priority = "1"\n',
        ("routing.rules[0].priority", 4, "a whole number", "without quotes"),
    ),
    "a table where a list belongs": (
        '[privacy]\nrestricted_paths = "secrets"\n',
        ("privacy.restricted_paths", 2, "it should be a list", '["…"'),
    ),
    "a price as a binary float": (
        RULE.format(name="a") + "cost_limit = 0.5\n",
        ("routing.rules[0].cost_limit", 4, "quoted decimal", ""),
    ),
    "a limit below zero": (
        RULE.format(name="a") + 'cost_limit = "-1"\n',
        ("routing.rules[0].cost_limit", 4, "below zero", '"0.50"'),
    ),
    "a router that keys would reach in clear": (
        '[router]\nurl = "http://router.example"\n',
        ("router.url", 2, "in clear", "https://"),
    ),
}


def own(text):
    return layer_of(parse_source(text.encode(), "config.toml"))


@pytest.mark.parametrize("row", POLICY_ROWS)
def test_policy_row(row):
    text, (place, line, message, remedy) = POLICY_ROWS[row]
    findings = own_configuration(own(text)).findings
    assert [finding.place for finding in findings] == [place], [*map(str, findings)]
    found = findings[0]
    assert (found.line, found.file, found.severity) == (line, "config.toml", Severity.ERROR)
    assert message in found.message
    assert remedy in f"{found.message} {found.remedy}"
    assert "canary" not in str(found)


def test_policy_row_missing_default_route():
    """The built-in route goes with its provider, so this takes a layer that unsets nothing else."""
    from smista.local.config_checks import check_config
    from smista.local.config_model import ConfigFile

    faults = check_config(ConfigFile())
    assert [(fault.place, fault.message) for fault in faults] == [
        (("routing", "default"), "there is no default route")
    ]
    assert "[routing.default]" in faults[0].remedy


def test_policy_row_unsafe_override_and_permission_widening():
    text = '[privacy.remote]\nmode = "deny"\n[tools.permissions]\nshell = "ask"\n'
    config = own_configuration(own(text)).checked().merged
    with pytest.raises(InvalidConfig) as caught:
        override(
            config,
            Override(
                remote_mode=Mode.ALLOW,
                permissions={"shell": Mode.ALLOW, "network": Mode.ALLOW, "shel": Mode.DENY},
            ),
        )
    assert {finding.place: finding.message.split(":")[0] for finding in caught.value.findings} == {
        "privacy.remote.mode": "unsafe override",
        "tools.permissions.shell": "permission widening",
        "tools.permissions.network": "permission widening",
        "tools.permissions.shel": "there is no such tool",
    }


def test_an_override_may_add_restrictions():
    config = own_configuration(own('[tools.permissions]\nshell = "ask"\n')).checked().merged
    said = Override(remote_mode=Mode.DENY, permissions={"shell": Mode.DENY}, local_only=True)
    stricter = override(config, said)
    assert stricter.privacy.remote.mode is Mode.DENY
    assert stricter.tools.permissions == {"shell": Mode.DENY}
    assert stricter.local_preferences.local_only
    assert not stricter.local_preferences.no_network


def test_rules_apart_by_intent_are_not_ambiguous():
    text = "".join(
        RULE.format(name=name) + f'intent = "{name}"\n' for name in ("plan", "edit", "review")
    )
    assert own_configuration(own(text)).findings == ()


def test_a_rule_without_an_intent_overlaps_every_intent():
    text = RULE.format(name="a") + "local_only = true\n" + RULE.format(name="b")
    assert own_configuration(own(text)).findings == ()
    text += 'intent = "plan"\n'
    assert [f.place for f in own_configuration(own(text)).findings] == ["routing.rules[1].priority"]


def test_each_finding_names_the_file_and_the_line_it_came_from():
    mine = own('[privacy]\nrestricted_paths = ["{"]\n' + RULE.format(name="a"))
    text = RULE.format(name="b") + 'priority = 1\nfallbacks = ["openai/x"]\n'
    theirs = layer_of(parse_source(f'[privacy]\nrestricted_paths = ["["]\n{text}'.encode(), "p"))
    findings = configuration(mine, theirs, file=None, word=lambda _: True).findings
    assert {(finding.file, finding.place, finding.line) for finding in findings} == {
        ("config.toml", "privacy.restricted_paths[0]", 2),
        ("p", "privacy.restricted_paths[0]", 2),
        ("p", "routing.rules[0].fallbacks[0]", 7),
    }


def test_a_rule_that_replaces_another_is_found_in_its_own_file():
    mine = own(RULE.format(name="a") + RULE.format(name="b") + "priority = 2\n")
    text = 'x = 1\n[[routing.rules]]\nname = "a"\nmodel = "openai/m"\n'
    theirs = layer_of(parse_source(text.encode(), "p"))
    findings = configuration(mine, theirs, file=None, word=lambda _: True).findings
    assert [(f.file, f.place, f.line) for f in findings] == [
        ("p", "x", 1),
        ("p", "routing.rules[0].model", 4),
    ]


DEMO_MODEL = """[[router.providers."openai-compat:a".models]]
name = "m"
max_context_tokens = 1
"""
ROUTER_ROWS = {
    "invalid port": ("[router]\nport = 0\n", "router.port", 2, "error"),
    "invalid host": ('[router]\nhost = "a b"\n', "router.host", 2, "error"),
    "invalid host with a port": ('[router]\nhost = "h:1"\n', "router.host", 2, "error"),
    "empty host": ('[router]\nhost = ""\n', "router.host", 2, "error"),
    "public bind": ('[router]\nhost = "0.0.0.0"\n', "router.host", 2, "error"),
    "public bind that is meant": (
        '[router]\nallow_public = true\nhost = "::"\n',
        "router.host",
        3,
        "warning",
    ),
    "missing storage path": ('[router.storage]\npath = ""\n', "router.storage.path", 2, "error"),
    "missing storage URL": (
        '[router.auth]\nlocal_bootstrap_enabled = false\n[router.storage]\nmode = "remote"\n',
        "router.storage.url",
        3,
        "error",
    ),
    "unsupported storage engine": (
        '[router.storage]\nengine = "sqlite"\n',
        "router.storage.engine",
        2,
        "error",
    ),
    "unsupported storage mode": (
        '[router.storage]\nmode = "cloud"\n',
        "router.storage.mode",
        2,
        "error",
    ),
    "local bootstrap in remote mode": (
        '[router.storage]\nmode = "remote"\nurl = "wss://db:8000"\n',
        "router.auth.local_bootstrap_enabled",
        1,
        "error",
    ),
    "own Ollama that is in the cloud": (
        '[router.ollama]\nenabled = true\nbase_url = "https://ollama.com"\n',
        "router.ollama.base_url",
        3,
        "warning",
    ),
    "own Ollama that is far away": (
        '[router.ollama]\nenabled = true\nbase_url = "http://203.0.113.9:11434"\n',
        "router.ollama.base_url",
        3,
        "warning",
    ),
    "local endpoint that is far away": (
        '[router.providers."openai-compat:a"]\nlocal = true\nbase_url = "http://[2001:db8::1]/v1"\n',
        'router.providers."openai-compat:a".base_url',
        3,
        "warning",
    ),
    "zero timeout": (
        "[router.limits]\ntool_timeout_ms = 0\n",
        "router.limits.tool_timeout_ms",
        2,
        "error",
    ),
    "zero size limit": (
        "[router.limits]\nmax_context_bytes = 0\n",
        "router.limits.max_context_bytes",
        2,
        "error",
    ),
    "excessive timeout": (
        "[router.limits]\nprovider_timeout_ms = 3600001\n",
        "router.limits.provider_timeout_ms",
        2,
        "warning",
    ),
    "zero rate limit": (
        "[router.rate_limit]\nperiod_ms = 0\n",
        "router.rate_limit.period_ms",
        2,
        "error",
    ),
    "unsafe CORS, empty": (
        "[router.cors]\nenabled = true\n",
        "router.cors.allowed_origins",
        1,
        "error",
    ),
    "unsafe CORS, any origin": (
        '[router.cors]\nenabled = true\nallowed_origins = ["*"]\n',
        "router.cors.allowed_origins",
        3,
        "error",
    ),
    "invalid OpenTelemetry protocol": (
        '[router.opentelemetry]\nprotocol = "smoke"\n',
        "router.opentelemetry.protocol",
        2,
        "error",
    ),
    "invalid OpenTelemetry ratio": (
        "[router.opentelemetry]\nsample_ratio = 1.5\n",
        "router.opentelemetry.sample_ratio",
        2,
        "error",
    ),
    "invalid OpenTelemetry endpoint": (
        '[router.opentelemetry]\nendpoint = "there"\n',
        "router.opentelemetry.endpoint",
        2,
        "error",
    ),
    "invalid OpenTelemetry service name": (
        '[router.opentelemetry]\nservice_name = ""\n',
        "router.opentelemetry.service_name",
        2,
        "error",
    ),
    "ignored endpoint": (
        '[router.providers.openai]\nbase_url = "http://x"\n',
        "router.providers.openai.base_url",
        2,
        "warning",
    ),
    "an instance without an address": (
        '[router.providers."openai-compat:a"]\nlocal = true\n',
        'router.providers."openai-compat:a".base_url',
        1,
        "error",
    ),
    "a model declared twice": (
        '[router.providers."openai-compat:a"]\nbase_url = "http://x"\n' + 2 * DEMO_MODEL,
        'router.providers."openai-compat:a".models[1].name',
        7,
        "error",
    ),
    "a table outside of [router]": ("[limits]\n", "limits", 1, "error"),
    "unknown key": ("[router]\nprot = 1\n", "router.prot", 2, "error"),
    "text where a number belongs": ('[router]\nport = "1"\n', "router.port", 2, "error"),
}


@pytest.mark.parametrize("row", ROUTER_ROWS)
def test_router_row(row):
    text, place, line, severity = ROUTER_ROWS[row]
    _, findings = parse_router(parse_source(text.encode(), "router.toml"))
    found = [(f.place, f.line, str(f.severity)) for f in findings]
    assert found == [(place, line, severity)], [*map(str, findings)]
    assert findings[0].message


def test_router_keys_are_guessed():
    _, findings = parse_router(parse_source(b"[router]\nprot = 1\n[limits]\n[rooter]\n", "r"))
    assert [finding.remedy for finding in findings] == [
        "write [router.limits]",
        "did you mean 'router'?",
        "did you mean 'port'?",
    ]
