"""The last known facts about models: written by the router, read without it."""

import stat
from datetime import UTC, datetime

import pytest

from smista.core.model_ref import Catalog, ModelDescriptor, Unavailable
from smista.local.catalog_file import read_catalog, write_catalog

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def model(provider, name="m"):
    return ModelDescriptor(
        provider=provider, model=name, max_context_tokens=9, input_cost_per_million_tokens="0.10"
    )


def test_facts_come_back_as_they_were(tmp_path):
    path = tmp_path / "home" / "catalog.json"
    catalog = Catalog((model("openai"), model("ollama")))
    write_catalog(path, catalog, now=NOW)
    cached = read_catalog(path)
    assert (cached.models, cached.written_at) == (catalog.models, NOW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_provider_that_is_away_keeps_its_last_facts_and_no_message(tmp_path):
    path = tmp_path / "catalog.json"
    write_catalog(path, Catalog((model("openai"), model("ollama"))), now=NOW)
    away = Unavailable(provider="openai", reason="timeout", message="key sk-canary refused")
    write_catalog(path, Catalog((model("ollama", "new"),), (away,)), now=NOW)
    cached = read_catalog(path)
    assert [str(each.ref) for each in cached.models] == ["ollama/new", "openai/m"]
    assert cached.unavailable[0].reason == "timeout"
    assert "canary" not in path.read_text()


def test_models_that_are_found_by_name_only_are_kept_apart_and_outlive_a_start_without_a_key(
    tmp_path,
):
    path = tmp_path / "catalog.json"
    hidden = model("ollama", "big:cloud")
    write_catalog(path, Catalog((model("ollama"),), by_name=(hidden,)), now=NOW)
    write_catalog(path, Catalog((model("ollama"),)), now=NOW)
    cached = read_catalog(path)
    assert cached.models == (model("ollama"),)
    assert cached.all_models == (model("ollama"), hidden)
    write_catalog(path, Catalog((), by_name=(model("ollama", "newer:cloud"),)), now=NOW)
    assert [each.model for each in read_catalog(path).all_models] == ["newer:cloud"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"written_at": 1, "models": [{}]}'])
def test_what_cannot_be_read_counts_as_not_there(tmp_path, content):
    path = tmp_path / "catalog.json"
    assert read_catalog(path) is None
    path.write_text(content)
    assert read_catalog(path) is None
