"""One model server for all of these tests; a router for each file that needs no other state."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.house import House, Router, demo_model, running


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with demo_model(tmp_path_factory.mktemp("model")) as url:
        yield url


@pytest.fixture
def house(tmp_path: Path, model: str) -> House:
    """A home of the test's own, without a router."""
    return House(folder=tmp_path, model=model)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, model: str) -> Iterator[House]:
    """A home with a router that runs and a user that is logged in; do not harm them."""
    house = House(folder=tmp_path_factory.mktemp("shared"), model=model)
    with running(house):
        assert house.run("login").returncode == 0
        yield house


@pytest.fixture
def open_router() -> Iterator[Callable[[House], Router]]:
    """Start routers that are killed when the test is over."""
    routers: list[Router] = []

    def start(house: House) -> Router:
        routers.append(Router(house))
        return routers[-1]

    yield start
    for router in routers:
        router.kill()
