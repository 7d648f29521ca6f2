"""Where log records go. Nothing is logged unless it is asked for."""

import logging
from pathlib import Path
from typing import Final

from cli.failures import BadUsage
from cli.visible import visible

_LEVELS: Final = {
    "off": logging.CRITICAL + 10,
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": logging.DEBUG,
}


class _Harmless(logging.Formatter):
    """Writes records that may quote text of others."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def configure(level: str, file: Path | None) -> None:
    """Send the records of smista from *level* on to *file*, or to stderr."""
    threshold = _LEVELS.get(level.lower())
    if threshold is None:
        raise BadUsage(f"unknown log filter {level!r}; use one of {', '.join(_LEVELS)}")
    logger = logging.getLogger("smista")
    logger.setLevel(threshold)
    if threshold > logging.CRITICAL:
        return
    handler = logging.FileHandler(file) if file else logging.StreamHandler()
    handler.setFormatter(_Harmless("%(asctime)s %(levelname)s %(name)s %(message)s"))
    for old in logger.handlers[:]:
        logger.removeHandler(old)
        old.close()
    logger.addHandler(handler)
    logger.propagate = False
