"""The providers' own lists over real sockets: keys, faults, and Ollama's two places."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from pydantic import SecretStr

from smista.core import errors
from smista.core.history import Message, Role
from smista.core.model_ref import Catalog, ModelRef
from smista.core.prompt import Prompt
from smista.core.resolve import index_models, resolve
from smista.net import LazyClient, create_client
from smista.providers.fetch import Fetcher
from smista.providers.ollama import Ollama
from smista.providers.registry import Endpoints, Registry, open_registry
from smista.providers.sources import OllamaSource
from tests.providers.chat import text_of
from tests.providers.json_server import JsonServer, open_json_server

KEY = SecretStr("canary-key-of-nobody")
OPENAI = {"data": [{"id": "gpt-5.5"}, {"id": "text-embedding-3-small"}, {"id": "gpt-99"}]}
ANTHROPIC = {
    "data": [
        {"id": "claude-sonnet-4-5-20250929", "display_name": "Sonnet", "created_at": "2025-09-29"},
        {"id": "claude-sonnet-5", "display_name": "Sonnet 5", "created_at": "2026-06-30"},
    ]
}
GEMINI = {
    "models": [
        {"name": "models/gemini-2.5-pro", "supportedGenerationMethods": ["generateContent"]},
        {"name": "models/text-embedding-004", "supportedGenerationMethods": ["embedContent"]},
    ]
}
SAID = {"model": "m", "message": {"role": "assistant", "content": "hi"}, "done": True}
DONE = json.dumps({**SAID, "done_reason": "stop"}).encode() + b"\n"
TALKS = {"capabilities": ["completion", "tools"], "model_info": {"a.context_length": 8192}}


class FakeOllama:
    """What an Ollama tells of its models; *shown* can be changed between two questions."""

    def __init__(self, server: JsonServer, **shown: dict[str, Any]) -> None:
        self.server = server
        self.shown: dict[str, dict[str, Any]] = {n.replace("__", ":"): s for n, s in shown.items()}
        self.tags: dict[str, dict[str, Any]] = {}
        server.handlers |= {
            "/api/tags": lambda _: (200, {"models": list(map(self._tag, self.shown))}),
            "/api/show": lambda ask: self._show(ask.body["model"]),
            "/api/chat": lambda _: (200, DONE),
        }

    def _tag(self, name: str) -> dict[str, Any]:
        return {"name": name, "model": name, "digest": f"d-{name}", **self.tags.get(name, {})}

    def _show(self, name: str) -> tuple[int, Any]:
        known = self.shown.get(name) or self.shown.get(f"{name}:latest")
        return (404, {"error": f"model '{name}' not found"}) if known is None else (200, known)


@asynccontextmanager
async def open_servers() -> AsyncGenerator[tuple[JsonServer, JsonServer, Registry]]:
    """Yield the makers' host, the user's own Ollama, and a registry that knows both."""
    async with open_json_server() as makers, open_json_server() as own:
        makers.handlers |= {
            "/openai/models": lambda _: (200, OPENAI),
            "/anthropic/v1/models": lambda _: (200, ANTHROPIC),
            "/gemini/v1beta/models": lambda _: (200, GEMINI),
        }
        endpoints = Endpoints(
            openai=f"{makers.url}/openai",
            anthropic=f"{makers.url}/anthropic",
            gemini=f"{makers.url}/gemini",
            ollama_cloud=makers.url,
            own_ollama=own.url,
        )
        with trio.fail_after(10):
            async with open_registry([], endpoints=endpoints) as registry:
                yield makers, own, registry


def prompt(name: str, *, local: bool) -> Prompt:
    message = Message(uuid="1", role=Role.USER, text="secret of the house", run_id="r")
    return Prompt(model=name, system="", messages=(message,), local=local)


async def say(registry: Registry, asked: Prompt, key: SecretStr | None = None) -> str:
    provider = registry.provider("ollama")
    assert provider is not None
    async with provider.open_stream(asked, key=key) as stream:
        return text_of([event async for event in stream])


def refs(catalog: Catalog) -> list[str]:
    return [str(m.ref) for m in catalog.models]


async def test_each_list_is_asked_with_its_own_key_and_only_models_that_talk_are_taken():
    names = ("openai", "anthropic", "gemini")
    keys = {name: SecretStr(f"key-of-{name}") for name in names}
    async with open_servers() as (makers, own, registry):
        FakeOllama(own)
        catalog = await registry.catalog(keys)
    assert refs(catalog) == [
        "anthropic/claude-sonnet-5",
        "anthropic/claude-sonnet-4-5-20250929",
        "gemini/gemini-2.5-pro",
        "openai/gpt-5.5",
        "openai/gpt-99",
    ]
    for ask in makers.asked:
        provider = ask.path.split("/")[1]
        sent = [value for value in ask.headers.values() if "key-of-" in value]
        assert sent in ([f"key-of-{provider}"], [f"Bearer key-of-{provider}"])
        assert "key" not in ask.path


async def test_a_family_is_the_newest_of_it_and_prices_are_known():
    async with open_servers() as (_, own, registry):
        FakeOllama(own)
        catalog = await registry.catalog({"anthropic": KEY, "openai": KEY})
    model = resolve(ModelRef("anthropic", "claude-sonnet"), index_models(catalog.models))
    assert model is not None
    assert model.model == "claude-sonnet-5"
    assert str(model.output_cost_per_million_tokens) == "10"
    unknown = catalog.find(ModelRef("openai", "gpt-99"))
    assert unknown is not None
    assert (unknown.max_context_tokens, unknown.input_cost_per_million_tokens) == (128_000, None)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((401, {"error": {"message": "bad key canary-key-of-nobody"}}), "invalid_credentials"),
        ((403, {"error": {"message": "not here"}}), "authentication"),
        ((429, {"error": {"message": "slowly"}}), "rate_limit"),
        ((500, {"error": {"message": "oops"}}), "provider_unavailable"),
        ((301, b""), "unknown"),
        ((200, b"<html>"), "unknown"),
        ((200, b"[" * 500), "unknown"),
    ],
)
async def test_a_list_that_cannot_be_had_is_reported_with_a_reason_and_without_the_key(
    answer, reason
):
    async with open_servers() as (makers, own, registry):
        FakeOllama(own)
        makers.handlers["/openai/models"] = lambda _: answer
        catalog = await registry.catalog({"openai": KEY})
        assert makers.paths() == ["/openai/models"]
    found = {u.provider: u for u in catalog.unavailable}["openai"]
    assert found.reason == reason
    assert KEY.get_secret_value() not in str(found.message)


async def test_a_host_that_is_away_is_reported():
    endpoints = Endpoints(openai="http://127.0.0.1:1", own_ollama="http://127.0.0.1:1")
    async with open_registry([], endpoints=endpoints) as registry:
        catalog = await registry.catalog({"openai": KEY})
    reasons = {u.provider: u.reason for u in catalog.unavailable}
    assert reasons["openai"] == reasons["ollama"] == "provider_unavailable"


async def test_ollamas_list_shows_what_the_own_server_runs_and_the_rest_is_found_by_name():
    async with open_servers() as (makers, own, registry):
        here = FakeOllama(own, qwen__7b=TALKS, llama__latest=TALKS, emb={"capabilities": ["x"]})
        here.shown["big:cloud"] = {**TALKS, "remote_host": "https://ollama.com"}
        FakeOllama(makers, qwen__7b=TALKS, huge__1t=TALKS)
        catalog = await registry.catalog({"ollama": KEY})
        bare = await registry.catalog({})
    assert refs(catalog) == refs(bare) == ["ollama/qwen:7b", "ollama/llama:latest"]
    assert all(m.local and m.auth == "none" for m in catalog.models)
    assert catalog.models[0].max_context_tokens == 8192
    by_name = [(m.model, m.local, m.auth) for m in catalog.by_name]
    assert by_name == [
        ("big:cloud", False, "none"),
        ("llama", True, "none"),
        ("qwen:7b", False, "api_key"),
        ("huge:1t", False, "api_key"),
    ]
    assert [(m.model, m.local) for m in bare.by_name] == [("big:cloud", False), ("llama", True)]
    index = index_models((*catalog.models, *catalog.by_name))
    chosen = resolve(ModelRef("ollama", "qwen:7b"), index)
    assert chosen is not None
    assert chosen.local


@asynccontextmanager
async def open_source(own: JsonServer) -> AsyncGenerator[OllamaSource]:
    async with create_client(own.url, local=True) as client:
        ollama = Ollama(base_url=own.url)
        fetcher = Fetcher(
            provider="ollama",
            client=client,
            failed=ollama.failure,
            key_headers=ollama.key_headers,
        )
        yield OllamaSource(fetcher=fetcher, base_url=own.url, local=True)


async def test_a_model_is_looked_at_again_only_when_it_has_changed():
    async with open_json_server() as own, open_source(own) as source:
        ollama = FakeOllama(own, a=TALKS, b=TALKS)
        first = await source.list_models(None)
        own.asked.clear()
        ollama.tags["b"] = {"digest": "another"}
        assert (await source.list_models(None)).models == (first.models[0], first.models[1])
    assert [ask.body["model"] for ask in own.asked if ask.path == "/api/show"] == ["b"]


async def test_a_model_that_cannot_be_shown_is_left_out_and_none_at_all_is_a_failure():
    async with open_json_server() as own, open_source(own) as source:
        ollama = FakeOllama(own, a=TALKS, b=TALKS)
        show = own.handlers["/api/show"]
        broken = (500, {"error": "cannot read the model"})
        own.handlers["/api/show"] = lambda ask: broken if ask.body["model"] == "b" else show(ask)
        assert [m.model for m in (await source.list_models(None)).models] == ["a"]
        ollama.tags["a"] = {"digest": "another"}
        own.handlers["/api/show"] = lambda _: broken
        with pytest.raises(errors.ProviderUnavailable, match="cannot read"):
            await source.list_models(None)


async def test_a_prompt_for_a_local_model_goes_to_the_own_server_after_a_look():
    async with open_servers() as (makers, own, registry):
        FakeOllama(own, qwen__7b=TALKS)
        assert await say(registry, prompt("qwen:7b", local=True), KEY) == "hi"
        assert own.paths() == ["/api/show", "/api/chat"]
        assert makers.asked == []


@pytest.mark.parametrize(
    "now", [{"remote_host": "https://ollama.com:443"}, {"remote_model": "qwen3-coder:480b"}]
)
async def test_rule_11_a_model_tagged_anew_after_the_listing_gets_no_prompt(now):
    async with open_servers() as (makers, own, registry):
        ollama = FakeOllama(own, qwen__7b=TALKS)
        assert refs(await registry.catalog({})) == ["ollama/qwen:7b"]
        ollama.shown["qwen:7b"] = {**TALKS, **now}
        with pytest.raises(errors.ProviderFailure, match="nothing was sent") as caught:
            await say(registry, prompt("qwen:7b", local=True), KEY)
        assert caught.value.details["kind"] == "not_local"
        assert "/api/chat" not in own.paths()
        assert makers.asked == []
        assert not any("secret of the house" in str(ask.body) for ask in own.asked)


async def test_rule_11_a_model_that_is_gone_or_a_server_that_is_silent_gets_no_prompt():
    async with open_servers() as (_, own, registry):
        FakeOllama(own)
        with pytest.raises(errors.ModelNotFound):
            await say(registry, prompt("qwen:7b", local=True))
        assert "/api/chat" not in own.paths()


async def test_a_cloud_model_goes_to_the_cloud_with_the_key_and_not_without():
    async with open_servers() as (makers, own, registry):
        FakeOllama(own, qwen__7b=TALKS)
        FakeOllama(makers, huge__1t=TALKS)
        await registry.catalog({"ollama": KEY})
        own.asked.clear()
        assert await say(registry, prompt("huge:1t", local=False), KEY) == "hi"
        assert own.asked == []
        assert makers.asked[-1].path == "/api/chat"
        assert makers.asked[-1].headers["authorization"] == f"Bearer {KEY.get_secret_value()}"
        with pytest.raises(errors.InvalidProviderCredentials, match="Ollama Cloud"):
            await say(registry, prompt("huge:1t", local=False))


async def test_an_own_server_that_wants_a_key_gets_it_with_list_look_up_and_prompt():
    async with open_servers() as (makers, own, registry):
        FakeOllama(own, qwen__7b=TALKS)
        await registry.catalog({"ollama": KEY})
        assert await say(registry, prompt("qwen:7b", local=True), KEY) == "hi"
        assert {ask.path for ask in own.asked} == {"/api/tags", "/api/show", "/api/chat"}
        shown = {ask.headers.get("authorization") for ask in own.asked}
        assert shown == {f"Bearer {KEY.get_secret_value()}"}
        assert "/api/chat" not in makers.paths()


async def test_a_model_the_own_server_forwards_is_asked_there_without_being_called_local():
    async with open_servers() as (makers, own, registry):
        ollama = FakeOllama(own)
        ollama.shown["big:cloud"] = TALKS
        await registry.catalog({})
        assert await say(registry, prompt("big:cloud", local=False)) == "hi"
        assert own.paths()[-1] == "/api/chat"
        with pytest.raises(errors.ProviderFailure, match="nothing was sent"):
            await say(registry, prompt("big:cloud", local=True))
        assert makers.asked == []


async def test_a_local_model_is_never_looked_for_in_the_cloud():
    async with (
        open_json_server() as cloud,
        open_registry([], endpoints=Endpoints(ollama_cloud=cloud.url)) as registry,
    ):
        FakeOllama(cloud, qwen__7b=TALKS)
        with pytest.raises(errors.ProviderUnavailable, match="no local server"):
            await say(registry, prompt("qwen:7b", local=True), KEY)
        assert cloud.asked == []
        assert refs(await registry.catalog({"ollama": KEY})) == ["ollama/qwen:7b"]


class Resolver(trio.abc.HostnameResolver):
    """Notes every host that is looked up, and finds none."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    async def getaddrinfo(self, host, port, *hints):
        self.asked.add(host.decode())
        raise OSError("this host is not to be found")

    async def getnameinfo(self, sockaddr, flags):
        raise OSError("nor is this one")


@pytest.fixture
async def resolver(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    found = Resolver()
    before = trio.socket.set_custom_hostname_resolver(found)
    yield found
    trio.socket.set_custom_hostname_resolver(before)


async def test_rule_12_under_locality_no_remote_host_is_even_looked_up(resolver):
    keys = dict.fromkeys(("openai", "anthropic", "gemini", "ollama"), KEY)
    async with open_json_server() as own:
        FakeOllama(own, qwen__7b=TALKS)
        async with open_registry([], endpoints=Endpoints(own_ollama=own.url)) as registry:
            catalog = await registry.catalog(keys, local_only=True)
            assert refs(catalog) == ["ollama/qwen:7b"]
            assert await say(registry, prompt("qwen:7b", local=True), KEY) == "hi"
            assert resolver.asked == set()
            assert not registry.settled(keys)
            await registry.catalog(keys)
    assert resolver.asked == {
        "api.openai.com",
        "api.anthropic.com",
        "generativelanguage.googleapis.com",
        "ollama.com",
    }


async def test_an_own_server_that_is_not_near_is_asked_nothing(monkeypatch):
    # The address is loopback, which counts as near; here it does not.
    monkeypatch.setattr("smista.providers.peers.is_near", lambda host: False)
    async with open_servers() as (_, own, registry):
        FakeOllama(own, qwen__7b=TALKS)
        catalog = await registry.catalog({})
        assert own.asked == []
    found = {u.provider: u for u in catalog.unavailable}["ollama"]
    assert found.reason == "invalid_configuration"
    assert "127.0.0.1" in str(found.message)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_rule_11_no_redirect_is_followed_whatever_is_asked(status):
    async with open_json_server() as trap, open_servers() as (makers, own, registry):
        away = (status, b"", {"location": f"{trap.url}/models"})
        FakeOllama(own, qwen__7b=TALKS)
        makers.handlers["/openai/models"] = makers.handlers["/openai/responses"] = lambda _: away
        catalog = await registry.catalog({"openai": KEY})
        assert "openai" in [u.provider for u in catalog.unavailable]
        provider = registry.provider("openai")
        assert provider is not None
        asked = prompt("gpt-5.5", local=False)
        with pytest.raises(errors.ProviderFailure, match="follows none"):
            async with provider.open_stream(asked, key=KEY):
                pass
        for path in ("/api/chat", "/api/show", "/api/tags"):
            kept, own.handlers[path] = own.handlers[path], lambda _: away
            if path == "/api/tags":
                async with open_source(own) as source:
                    with pytest.raises(errors.ProviderFailure, match="follows none"):
                        await source.list_models(None)
            else:
                with pytest.raises(errors.ProviderFailure, match="follows none"):
                    await say(registry, prompt("qwen:7b", local=True), KEY)
            own.handlers[path] = kept
        assert trap.connections == 0


async def test_the_own_server_is_reached_past_the_proxies_of_the_environment(monkeypatch):
    async with open_json_server() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("no_proxy", "")
        async with open_json_server() as own:
            FakeOllama(own, qwen__7b=TALKS)
            async with open_registry([], endpoints=Endpoints(own_ollama=own.url)) as registry:
                assert refs(await registry.catalog({})) == ["ollama/qwen:7b"]
                assert await say(registry, prompt("qwen:7b", local=True), KEY) == "hi"
        assert proxy.connections == 0


async def test_a_list_that_is_compressed_or_has_no_end_is_refused():
    async with open_servers() as (makers, own, registry):
        FakeOllama(own)
        packed = (200, b"{}", {"content-encoding": "gzip"})
        makers.handlers["/openai/models"] = lambda _: packed
        makers.handlers["/anthropic/v1/models"] = lambda _: (200, b" " * (17 * 1024 * 1024))
        catalog = await registry.catalog({"openai": KEY, "anthropic": KEY})
    said = {u.provider: str(u.message) for u in catalog.unavailable}
    assert "compressed" in said["openai"]
    assert "larger than we accept" in said["anthropic"]


async def test_a_client_is_made_when_it_is_first_used_and_closed_with_its_owner():
    async with open_json_server() as server:
        server.handlers["/here"] = lambda _: (200, {"a": 1})
        client = LazyClient(server.url, local=True)
        fetcher = Fetcher(
            provider="ollama",
            client=client,
            failed=Ollama().failure,
            key_headers=Ollama().key_headers,
        )
        assert await fetcher.get(f"{server.url}/here", key=None) == {"a": 1}
        await client.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            await fetcher.get(f"{server.url}/here", key=None)
        unused = LazyClient(server.url, local=True)
        await unused.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            unused.build_request("GET", server.url, content=b"", headers={}, extensions=None)
