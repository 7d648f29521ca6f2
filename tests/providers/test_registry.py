"""Which providers and models a router has, and which settings are refused."""

import httpx
import pytest
from pydantic import SecretStr

from smista.core.errors import InvalidProviderConfiguration
from smista.core.model_ref import Capabilities, ModelDescriptor, ModelRef
from smista.core.prompt import Prompt
from smista.net import create_client
from smista.providers.registry import CompatInstance, Endpoints, open_registry

LAB = "openai-compat:lab"
CLOUD = "openai-compat:cloud"


def model(name: str, provider: str = LAB, *, local: bool = True, auth: str = "none"):
    return ModelDescriptor(
        provider=provider,
        model=name,
        local=local,
        auth=auth,
        max_context_tokens=8192,
        capabilities=Capabilities(streaming=True),
    )


def lab(base_url: str = "http://127.0.0.1:9/v1", **more) -> CompatInstance:
    return CompatInstance(id=LAB, base_url=base_url, local=True, **more)


CLOUD_INSTANCE = CompatInstance(
    id=CLOUD,
    base_url="https://api.example.test/v1",
    display_name="Cloud",
    models=(model("big", CLOUD, local=False, auth="api_key"),),
)


async def test_built_in_providers_and_instances_are_described():
    async with open_registry([lab(), CLOUD_INSTANCE]) as registry:
        described = [(d.id, d.display_name, d.local) for d in registry.descriptors()]
    assert described == [
        ("anthropic", "Anthropic", False),
        ("gemini", "Gemini", False),
        ("ollama", "Ollama", False),
        ("openai", "OpenAI", False),
        (LAB, LAB, True),
        (CLOUD, "Cloud", False),
    ]


async def test_built_in_providers_are_there_and_instances_once_they_are_configured():
    async with open_registry([lab()]) as registry:
        for name in ("anthropic", "gemini", "ollama", "openai", LAB):
            provider = registry.provider(name)
            assert provider is not None
            assert provider.descriptor.id == name
        assert registry.provider(CLOUD) is None


async def test_ollama_is_local_once_the_users_own_server_is_enabled():
    endpoints = Endpoints(own_ollama="http://127.0.0.1:9")
    async with open_registry([], endpoints=endpoints) as registry:
        assert [d.local for d in registry.descriptors() if d.id == "ollama"] == [True]


async def test_what_the_body_raises_comes_out_as_it_is():
    with pytest.raises(KeyError, match="mine"):
        async with open_registry([]):
            raise KeyError("mine")


@pytest.mark.parametrize("url", ["", "127.0.0.1:11434", "http://user:canary@127.0.0.1"])
async def test_an_address_of_ollama_that_cannot_be_right_is_refused_and_not_quoted(url):
    with pytest.raises(InvalidProviderConfiguration, match="ollama") as caught:
        async with open_registry([], endpoints=Endpoints(own_ollama=url)):
            pass
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("credentials", [{}, {CLOUD: SecretStr("k")}])
@pytest.mark.parametrize("local_only", [True, False])
async def test_declared_models_are_listed_with_or_without_key(credentials, local_only):
    async with open_registry([lab(models=(model("small"),)), CLOUD_INSTANCE]) as registry:
        catalog = await registry.catalog(credentials, local_only=local_only)
    assert [str(m.ref) for m in catalog.models] == [f"{LAB}/small", f"{CLOUD}/big"]
    assert catalog.find(ModelRef(CLOUD, "big")) is not None


async def test_without_keys_nobody_is_asked_and_each_provider_says_what_is_missing():
    async with open_registry([]) as registry:
        catalog = await registry.catalog({})
    assert [(u.provider, u.reason) for u in catalog.unavailable] == [
        (name, "missing_credentials") for name in ("anthropic", "gemini", "ollama", "openai")
    ]
    assert "[router.ollama]" in str(catalog.unavailable[2].message)


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "127.0.0.1:8000",
        "ftp://host/v1",
        "file:///etc/passwd",
        "http://",
        "http://user:canary@host/v1",
        "http://host/v1?key=canary",
        "http://host/v1#canary",
        "http://[::1/v1",
    ],
)
async def test_a_base_url_that_cannot_be_right_is_refused_and_not_quoted(base_url):
    with pytest.raises(InvalidProviderConfiguration, match=LAB) as caught:
        async with open_registry([lab(base_url)]):
            pass
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("wrong", [model("m", CLOUD), model("m", local=False)])
async def test_a_model_that_disagrees_with_its_instance_is_refused(wrong):
    with pytest.raises(InvalidProviderConfiguration, match="disagrees"):
        async with open_registry([lab(models=(wrong,))]):
            pass


async def test_the_clients_are_closed_with_the_registry():
    async with open_registry([lab()]) as registry:
        provider = registry.provider(LAB)
    assert provider is not None
    prompt = Prompt(model="m", system="", messages=())
    with pytest.raises(RuntimeError, match="closed"):
        async with provider.open_stream(prompt, key=None):
            pass


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "https://example.test"])
async def test_a_client_follows_no_redirects_and_knows_the_environment_only_when_remote(url, local):
    async with create_client(url, local=local) as client:
        assert not client.follow_redirects
        assert client.trust_env is not local
        assert client.headers["accept-encoding"] == "identity"
        assert client.timeout == httpx.Timeout(connect=10, write=30, read=None, pool=None)
