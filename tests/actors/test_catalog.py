"""Whoever keeps the facts about models hears of new ones, and of nothing else."""

from actors.catalog import NotedProviders
from smista.core.model_ref import Catalog, ModelDescriptor


class Listing:
    """Providers whose catalog is what the test says."""

    def __init__(self):
        self.now = Catalog()
        self.asked = []

    def descriptors(self):
        return ("descriptors",)

    def provider(self, provider_id):
        return provider_id

    def settled(self, credentials):
        return "settled"

    async def catalog(self, credentials, *, local_only=False, deadline=10.0):
        self.asked.append((credentials, local_only, deadline))
        return self.now


def listed(*names):
    return Catalog(
        tuple(ModelDescriptor(provider="ollama", model=n, max_context_tokens=1) for n in names)
    )


async def test_a_catalog_is_noted_when_it_differs_from_the_last_one():
    listing, noted = Listing(), []
    providers = NotedProviders(listing, noted.append)
    for names in ((), ("a",), ("a",), ("a", "b"), ("a",)):
        listing.now = listed(*names)
        assert await providers.catalog({}) == listing.now
    assert noted == [listed("a"), listed("a", "b"), listed("a")]


async def test_everything_else_is_the_providers_own_answer():
    listing = Listing()
    providers = NotedProviders(listing, lambda _: None)
    assert providers.descriptors() == ("descriptors",)
    assert providers.provider("x") == "x"
    assert providers.settled({}) == "settled"
    await providers.catalog({"x": "k"}, local_only=True, deadline=1.0)
    assert listing.asked == [({"x": "k"}, True, 1.0)]
