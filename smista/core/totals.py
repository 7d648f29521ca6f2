"""What several model calls used together: tokens, and USD where every price is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from smista.core.model_ref import plain
from smista.core.stream import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over *calls* model calls. A count None: no call reported it.

    *cost* is the sum of the known costs; *cost_known* is False once one was unknown.
    """

    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: Decimal = Decimal(0)
    cost_known: bool = True

    def plus(self, usage: Usage, cost: Decimal | None) -> "Totals":
        """Return the sums with one more call."""
        return Totals(
            calls=self.calls + 1,
            input_tokens=_sum(self.input_tokens, usage.input_tokens),
            output_tokens=_sum(self.output_tokens, usage.output_tokens),
            cached_tokens=_sum(self.cached_tokens, usage.cached_tokens),
            reasoning_tokens=_sum(self.reasoning_tokens, usage.reasoning_tokens),
            cost=self.cost + (cost or Decimal(0)),
            cost_known=self.cost_known and cost is not None,
        )

    def view(self) -> dict[str, Any]:
        """Return the members of *Usage members*; what is not known is left out."""
        counts = {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }
        view: dict[str, Any] = {name: n for name, n in counts.items() if n is not None}
        if self.input_tokens is not None and self.output_tokens is not None:
            view["total_tokens"] = self.input_tokens + self.output_tokens
        if self.cost_known and self.calls:
            cost = plain(self.cost)
            view |= {"estimated_cost": cost, "actual_cost": cost, "currency": "USD"}
        return view


def totals_to_json(totals: Totals) -> dict[str, Any]:
    """Return the stored form."""
    return {
        "calls": totals.calls,
        "input_tokens": totals.input_tokens,
        "output_tokens": totals.output_tokens,
        "cached_tokens": totals.cached_tokens,
        "reasoning_tokens": totals.reasoning_tokens,
        "cost": plain(totals.cost),
        "cost_known": totals.cost_known,
    }


def totals_from_json(stored: Mapping[str, Any]) -> Totals:
    """Return the totals that *stored* describes."""
    members: dict[str, Any] = {**stored, "cost": Decimal(stored["cost"])}
    return Totals(**members)


def _sum(left: int | None, right: int | None) -> int | None:
    return right if left is None else left + (right or 0)
