"""One model server, and one router for all tests that do it no harm."""

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


@pytest.fixture(scope="session")
def router(tmp_path_factory: pytest.TempPathFactory, model: str) -> Iterator[Router]:
    """A router in an odd place, started with an open umask, and a user logged in to it."""
    house = House(folder=tmp_path_factory.mktemp("sharéd home"), model=model)
    with running(house, umask=0) as router:
        assert house.run("login", umask=0).returncode == 0
        yield router


@pytest.fixture
def shared(router: Router) -> House:
    """The home of that router."""
    return router.house


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
