"""What is kept about models because their providers do not list it: windows, abilities, prices.

The rows are in `facts.toml`; a user's own prices come before them.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from importlib.resources import files
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from smista.core.model_ref import Capabilities, ModelDescriptor, Money

# gpt-5.5-2026-04-23, claude-haiku-4-5-20251001: the day a snapshot was taken
_SNAPSHOT: Final = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})\Z")
_KEPT: Final = frozenset({"anthropic", "gemini", "openai"})
_UNKNOWN_WINDOW: Final = 128_000


class Prices(BaseModel):
    """USD per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Money
    output: Money
    cache_read: Money | None = None
    cache_write: Money | None = None

    def on(self, model: ModelDescriptor) -> ModelDescriptor:
        """Return *model* at these prices."""
        return model.model_copy(
            update={
                "input_cost_per_million_tokens": self.input,
                "output_cost_per_million_tokens": self.output,
                "cache_read_cost_per_million_tokens": self.cache_read,
                "cache_write_cost_per_million_tokens": self.cache_write,
            }
        )


class Fact(BaseModel):
    """One row of the file; the file's head says what each member means."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Literal["anthropic", "gemini", "openai"]
    model: str
    read: date
    source: str = Field(pattern=r"^https://")
    window: int | None = None
    output: int | None = None
    efforts: tuple[str, ...] = ()
    images: bool = False
    prices: Prices | None = None
    priced_to: int | None = None
    until: date | None = None

    def prices_on(self, day: date) -> Prices | None:
        return self.prices if self.until is None or day <= self.until else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPrice:
    """A price of the user's: *model* is an exact id, or a prefix ending in `*`."""

    provider: str
    model: str
    prices: Prices

    def fits(self, model: ModelDescriptor) -> bool:
        if model.provider != self.provider:
            return False
        prefix = self.model.removesuffix("*")
        return model.model.startswith(prefix) if prefix != self.model else model.model == prefix


class Facts:
    """The kept facts, and the user's own prices, of which the most exact one counts.

    *read* gives the rows; it is called when they are first needed.
    """

    def __init__(self, read: Callable[[], Iterable[Fact]], own: Sequence[OwnPrice] = ()) -> None:
        self._read = read
        self._own = own

    @cached_property
    def _rows(self) -> dict[str, dict[str, Fact]]:
        rows: dict[str, dict[str, Fact]] = {}
        for row in self._read():
            rows.setdefault(row.provider, {})[row.model] = row
        return rows

    def row(self, provider: str, model: str) -> Fact | None:
        """Return the row of *model*, a snapshot's is that of its model."""
        if provider not in _KEPT:
            return None
        rows = self._rows.get(provider, {})
        return rows.get(model) or rows.get(_SNAPSHOT.sub("", model))

    def efforts(self, model: str) -> tuple[str, ...]:
        """Return the levels of reasoning that OpenAI's *model* takes."""
        row = self.row("openai", model)
        return row.efforts if row is not None else ()

    def openai(self, model: str) -> ModelDescriptor:
        """Return what is known of an OpenAI model that is listed by name only."""
        row = self.row("openai", model)
        return ModelDescriptor(
            provider="openai",
            model=model,
            capabilities=Capabilities(
                streaming=True,
                tools=True,
                json_output=True,
                system_prompt=True,
                memory=True,
                images=row is not None and row.images,
                reasoning=row is not None and bool(row.efforts),
            ),
            max_context_tokens=(row and row.window) or _UNKNOWN_WINDOW,
            max_output_tokens=row.output if row is not None else None,
        )

    def priced(self, model: ModelDescriptor, day: date) -> ModelDescriptor:
        """Return *model* at its price on *day*, and no larger than that price holds."""
        own = [price for price in self._own if price.fits(model)]
        if own:
            # An exact id before any prefix, a longer prefix before a shorter one.
            best = max(own, key=lambda price: (not price.model.endswith("*"), len(price.model)))
            return best.prices.on(model)
        row = self.row(model.provider, model.model)
        prices = row.prices_on(day) if row is not None else None
        if row is None or prices is None:
            return model
        return _bounded(prices.on(model), row.priced_to)


def _bounded(model: ModelDescriptor, longest: int | None) -> ModelDescriptor:
    """Return *model* with a window in which no prompt is longer than *longest*."""
    if longest is None:
        return model
    window = min(model.max_context_tokens, longest + (model.max_output_tokens or 0))
    return model.model_copy(update={"max_context_tokens": window})


def load_facts(own: Sequence[OwnPrice] = ()) -> Facts:
    """Return the facts that come with this version."""
    return Facts(_kept, own)


def _kept() -> list[Fact]:
    text = files("smista.providers").joinpath("facts.toml").read_text("utf-8")
    rows: list[dict[str, Any]] = tomllib.loads(text)["models"]
    return list(map(Fact.model_validate, rows))
