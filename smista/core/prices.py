"""What a model call costs, in exact decimals; None where the price is not known."""

from decimal import Context, Decimal
from typing import Final

from smista.core.decision import CostRange
from smista.core.model_ref import ModelDescriptor
from smista.core.stream import Usage
from smista.core.tokens import ASSUMED_REPLY

# Wide enough that no product of a price and a token count is ever rounded.
_EXACT: Final = Context(prec=60)


def call_cost(usage: Usage, model: ModelDescriptor) -> Decimal | None:
    """Return the USD of one call as the provider bills it.

    None: the model is remote and its price or a token count is unknown. Reasoning tokens are
    billed as the output they are part of.
    """
    prices = _prices(model)
    if prices is None:
        return None
    if not any(prices):
        return Decimal(0)
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    fresh = max(usage.input_tokens - cached - written, 0)
    price_in, price_out = prices
    parts = (
        _price(fresh, price_in),
        _price(cached, _or_else(model.cache_read_cost_per_million_tokens, price_in)),
        _price(written, _or_else(model.cache_write_cost_per_million_tokens, price_in)),
        _price(usage.output_tokens, price_out),
    )
    return _sum(parts)


def estimate(input_tokens: int, model: ModelDescriptor) -> CostRange:
    """Return the range from the input alone to the input and an assumed reply."""
    prices = _prices(model)
    if prices is None:
        return CostRange(known=False)
    price_in, price_out = prices
    low = _price(input_tokens, price_in)
    return CostRange(min=low, max=_sum((low, _price(ASSUMED_REPLY, price_out))))


def _prices(model: ModelDescriptor) -> tuple[Decimal, Decimal] | None:
    price_in = model.input_cost_per_million_tokens
    price_out = model.output_cost_per_million_tokens
    if model.local:
        return _or_else(price_in, Decimal(0)), _or_else(price_out, Decimal(0))
    if price_in is None or price_out is None:
        return None
    return price_in, price_out


def _or_else(price: Decimal | None, other: Decimal) -> Decimal:
    return other if price is None else price


def _price(tokens: int, per_million: Decimal) -> Decimal:
    return _EXACT.multiply(Decimal(tokens), per_million).scaleb(-6, _EXACT)


def _sum(amounts: tuple[Decimal, ...]) -> Decimal:
    total = Decimal(0)
    for amount in amounts:
        total = _EXACT.add(total, amount)
    return total
