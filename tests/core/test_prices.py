"""Costs: exact, as providers bill, and unknown rather than guessed."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.decision import CostRange
from smista.core.prices import call_cost, estimate
from smista.core.stream import Usage
from tests.core.builders import model

PRICED = model(
    "anthropic/m",
    input_cost_per_million_tokens="3",
    output_cost_per_million_tokens="15",
    cache_read_cost_per_million_tokens="0.30",
    cache_write_cost_per_million_tokens="3.75",
)


def test_fresh_cached_written_and_spoken_tokens_have_their_own_prices():
    usage = Usage(input_tokens=1_000, output_tokens=100, cached_tokens=600, cache_write_tokens=300)
    assert call_cost(usage, PRICED) == Decimal("0.003105")


def test_without_cache_prices_cached_tokens_cost_what_input_costs():
    plain = model("openai/m", input_cost_per_million_tokens="2", output_cost_per_million_tokens="8")
    usage = Usage(input_tokens=1_000, output_tokens=1, cached_tokens=400)
    assert call_cost(usage, plain) == Decimal("0.002008")


def test_reasoning_is_part_of_the_output():
    usage = Usage(input_tokens=0, output_tokens=1_000, reasoning_tokens=900)
    assert call_cost(usage, PRICED) == Decimal("0.015")


@pytest.mark.parametrize("known", [{}, {"input_cost_per_million_tokens": "1"}])
def test_a_remote_model_without_prices_has_no_known_cost(known: dict[str, str]):
    remote = model("openai/m", **known)
    assert call_cost(Usage(input_tokens=1, output_tokens=1), remote) is None
    assert estimate(100, remote) == CostRange(known=False)


def test_a_local_model_without_prices_costs_nothing():
    local = model("ollama/m")
    assert call_cost(Usage(), local) == 0
    assert estimate(100, local) == CostRange(min=Decimal(0), max=Decimal(0))


@pytest.mark.parametrize("usage", [Usage(), Usage(input_tokens=1), Usage(output_tokens=1)])
def test_counts_nobody_reported_are_not_guessed(usage: Usage):
    assert call_cost(usage, PRICED) is None


def test_the_estimate_runs_from_the_input_to_an_assumed_reply():
    assert estimate(1_000, PRICED) == CostRange(min=Decimal("0.003"), max=Decimal("0.06444"))


@given(st.integers(0, 10**12), st.decimals("0", "10000", places=12))
def test_no_digit_is_ever_lost(tokens: int, price: Decimal):
    priced = model(
        "openai/m", input_cost_per_million_tokens=price, output_cost_per_million_tokens="0"
    )
    cost = call_cost(Usage(input_tokens=tokens, output_tokens=0), priced)
    assert cost is not None
    digits = int(price.scaleb(12))
    assert int(cost.scaleb(18)) == tokens * digits
