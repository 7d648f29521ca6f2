"""What every test starts from."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Give back the logger that a command set up, so that the next test still hears it."""
    logger = logging.getLogger("smista")
    level, propagate, handlers = logger.level, logger.propagate, logger.handlers[:]
    yield
    for handler in logger.handlers[:]:
        if handler not in handlers:
            logger.removeHandler(handler)
            handler.close()
    logger.setLevel(level)
    logger.propagate = propagate
