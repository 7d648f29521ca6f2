"""`router.toml`: defaults, all findings at once, and what they say."""

from decimal import Decimal

import pytest

from smista.local.findings import InvalidConfig, Severity
from smista.local.paths import find_places
from smista.local.router_config import RouterConfig
from smista.local.router_file import load_router_config, parse_router
from smista.local.toml_source import Source


@pytest.fixture
def places(tmp_path):
    return find_places({"SMISTA_HOME": str(tmp_path)}, tmp_path)


def found(table):
    _, findings = parse_router(Source("router.toml", data={"router": table}))
    return {finding.place: finding for finding in findings}


def test_without_a_file_the_defaults_serve(places, tmp_path):
    config, warnings = load_router_config(places)
    assert (config.host, config.port, warnings) == ("127.0.0.1", 7331, ())
    assert config.storage.path == str(tmp_path / "db")
    assert config.limits.orphan_grace_ms == 10_000
    assert config.limits.max_concurrent_requests == 8
    assert config.rate_limit.burst_size == 200
    assert config.opentelemetry.protocol == "grpc"
    assert config.retention.trace_retention_days == 90
    assert not config.ollama.enabled


def test_a_file_that_was_named_must_exist(places, tmp_path):
    with pytest.raises(InvalidConfig, match="no such file"):
        load_router_config(places, tmp_path / "gone.toml")


def test_the_storage_path_counts_from_the_files_folder(places, tmp_path):
    file = tmp_path / "sub" / "r.toml"
    file.parent.mkdir()
    file.write_text('[router.storage]\npath = "data/db"\n')
    config, _ = load_router_config(places, file)
    assert config.storage.path == str(tmp_path / "sub" / "data" / "db")


def test_a_named_instance_declares_its_models(places, tmp_path):
    places.router_file.write_text(
        """
        [router.providers."openai-compat:demo"]
        base_url = "http://127.0.0.1:9/v1"
        local = true
        [[router.providers."openai-compat:demo".models]]
        name = "llava"
        max_context_tokens = 100
        input_cost_per_million_tokens = "0.25"
        [router.providers."openai-compat:demo".models.capabilities]
        images = true
        [[router.prices]]
        provider = "openai"
        model = "gpt-*"
        input_cost_per_million_tokens = "1"
        output_cost_per_million_tokens = "2"
        """
    )
    config, _ = load_router_config(places)
    model = config.providers["openai-compat:demo"].models[0]
    assert model.input_cost_per_million_tokens == Decimal("0.25")
    assert model.capabilities.images
    assert model.capabilities.tools
    assert not model.capabilities.reasoning
    assert config.prices[0].model == "gpt-*"


def test_every_fault_is_found_in_one_pass():
    places_found = found(
        {
            "port": 0,
            "host": "two words",
            "surprise": 1,
            "storage": {"mode": "remote"},
            "auth": {"token_ttl_seconds": "long"},
            "limits": {"request_timeout_ms": 0, "max_context_bytes": 0, "typo": 1},
            "rate_limit": {"burst_size": 0},
            "cors": {"enabled": True, "allowed_origins": ["*"]},
            "opentelemetry": {"sample_ratio": 2.0},
            "logging": {"level": "loud"},
            "providers": {
                "openai-compat:ollama": {"base_url": "http://x/v1"},
                "openai-compat:a": {"models": [{"name": "m"}]},
            },
            "ollama": {"enabled": True, "base_url": "nowhere"},
            "prices": [{"provider": "nobody", "model": "m"}],
        }
    )
    assert set(places_found) == {
        "router.port",
        "router.host",
        "router.surprise",
        "router.storage.url",
        "router.auth.local_bootstrap_enabled",
        "router.auth.token_ttl_seconds",
        "router.limits.request_timeout_ms",
        "router.limits.max_context_bytes",
        "router.limits.typo",
        "router.rate_limit.burst_size",
        "router.cors.allowed_origins",
        "router.opentelemetry.sample_ratio",
        "router.logging.level",
        'router.providers."openai-compat:ollama"',
        'router.providers."openai-compat:a".base_url',
        'router.providers."openai-compat:a".models[0].max_context_tokens',
        "router.ollama.base_url",
        "router.prices[0].input_cost_per_million_tokens",
        "router.prices[0].output_cost_per_million_tokens",
    }


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_public_bind_is_an_error_unless_it_is_meant(host):
    assert found({"host": host})["router.host"].severity is Severity.ERROR
    meant = found({"host": host, "allow_public": True})
    assert meant["router.host"].severity is Severity.WARNING


@pytest.mark.parametrize(
    ("host", "good"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("router.example", True),
        ("", False),
        ("localhost:7331", False),
        ("http://localhost", False),
        ("1.2.3", False),
        ("-_-/", False),
    ],
)
def test_hosts_are_bare_names_or_addresses(host, good):
    assert ("router.host" in found({"host": host})) is not good


def test_warnings_do_not_prevent_a_start(places):
    places.router_file.write_text(
        "[router.limits]\nrequest_timeout_ms = 3600001\n"
        '[router.providers.openai]\nbase_url = "http://x"\n'
    )
    _, warnings = load_router_config(places)
    assert [str(warning.place) for warning in warnings] == [
        "router.limits.request_timeout_ms",
        "router.providers.openai.base_url",
    ]


def test_a_clear_text_store_elsewhere_is_an_error():
    auth = {"local_bootstrap_enabled": False}
    for url, good in (("ws://127.0.0.1:8000", True), ("wss://db", True), ("ws://db:8000", False)):
        places_found = found({"storage": {"mode": "remote", "url": url}, "auth": auth})
        assert ("router.storage.url" in places_found) is not good


def test_the_password_is_neither_quoted_nor_written_back():
    storage = {"password": "pw-canary", "engine": "pw-canary"}
    config, findings = parse_router(Source("f", data={"router": {"storage": storage}}))
    assert findings
    assert "canary" not in "".join(map(str, findings))
    good = RouterConfig.model_validate({"storage": {"password": "pw-canary"}})
    assert "canary" not in repr(good)
    assert "canary" not in good.model_dump_json()
    assert config.storage.password is not None


def test_a_price_that_is_a_binary_float_is_refused():
    price = {"provider": "openai", "model": "m", "input_cost_per_million_tokens": 0.1}
    places_found = found({"prices": [{**price, "output_cost_per_million_tokens": "1"}]})
    assert "quoted" in places_found["router.prices[0].input_cost_per_million_tokens"].message


def test_text_that_is_not_toml_is_said_with_its_place(places):
    places.router_file.write_text("[router\n")
    with pytest.raises(InvalidConfig, match=":1:8: not TOML"):
        load_router_config(places)
