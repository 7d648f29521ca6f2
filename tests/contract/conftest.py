"""Every test that asks for a journal runs on both of them."""

from collections.abc import AsyncIterator

import pytest

from smista.ports.journal import Journal
from tests.contract.stores import STORES, Kept


@pytest.fixture(params=STORES)
async def kept(request: pytest.FixtureRequest) -> AsyncIterator[Kept]:
    async with STORES[request.param]() as store:
        yield store


@pytest.fixture
def journal(kept: Kept) -> Journal:
    return kept.journal
