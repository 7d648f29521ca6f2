"""One model, one router and, for all who do it no harm, one place at a terminal."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.house import House, Router, demo_model, running
from tests.terminal.script import POLICY, ROUTER, SCRIPT
from tests.terminal.seat import Seat, seat


class Home(House):
    """The house with the router and the policy of these tests."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.router_file.write_text(ROUTER.format(port=self.port, model=self.model))
        self.write_policy(POLICY)


class Places:
    """Lends one place to test after test; one without rest makes way for a new one."""

    def __init__(self, home: House) -> None:
        self._home = home
        self._stack = ExitStack()
        self._seat: Seat | None = None

    def lend(self) -> Seat:
        if self._seat is None or not self._seat.begins_anew():
            self.close()
            self._seat = self._stack.enter_context(seat(self._home))
        return self._seat

    def close(self) -> None:
        self._seat = None
        self._stack.close()


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with demo_model(tmp_path_factory.mktemp("model"), SCRIPT) as model:
        yield model


@pytest.fixture(scope="session")
def router(tmp_path_factory: pytest.TempPathFactory, model: str) -> Iterator[Router]:
    with running(Home(folder=tmp_path_factory.mktemp("home"), model=model)) as router:
        assert router.house.run("login").returncode == 0
        yield router


@pytest.fixture(scope="session")
def places(router: Router) -> Iterator[Places]:
    places = Places(router.house)
    try:
        yield places
    finally:
        places.close()


@pytest.fixture
def home(router: Router) -> House:
    """The shared home, its project as it was in the beginning."""
    router.house.hello.write_text("Helo, world!\n")
    return router.house


@pytest.fixture
def at(home: House, places: Places) -> Seat:
    """A place at a terminal in that home, in no session."""
    return places.lend()


@pytest.fixture
def own_home(tmp_path: Path, model: str) -> House:
    """A home of the test's own, without a router."""
    return Home(folder=tmp_path, model=model)
