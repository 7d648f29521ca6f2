"""FC-53: cached tokens, as the relatives of Chat Completions count them."""

from decimal import Decimal

import pytest

from smista.core.model_ref import ModelDescriptor
from smista.core.prices import call_cost
from smista.core.stream import Usage
from smista.providers.chat_usage import ChatUsage

PRICED = ModelDescriptor(
    provider="openai-compat:a",
    model="m",
    max_context_tokens=100_000,
    input_cost_per_million_tokens="2.00",
    cache_read_cost_per_million_tokens="0.20",
    cache_write_cost_per_million_tokens="2.50",
    output_cost_per_million_tokens="8.00",
)
CASES = [
    (
        {
            "prompt_tokens": 10_000,
            "completion_tokens": 500,
            "prompt_tokens_details": {"cached_tokens": 8_000},
            "completion_tokens_details": {"reasoning_tokens": 300},
        },
        Usage(input_tokens=10_000, cached_tokens=8_000, output_tokens=500, reasoning_tokens=300),
        "0.0096",
    ),
    (
        {
            "prompt_tokens": 26_100,
            "completion_tokens": 400,
            "prompt_tokens_details": {"cached_tokens": 20_000},
            "cache_creation_input_tokens": 6_000,
        },
        Usage(
            input_tokens=26_100, cached_tokens=20_000, cache_write_tokens=6_000, output_tokens=400
        ),
        "0.0224",
    ),
    (
        {
            "prompt_cache_hit_tokens": 9_000,
            "prompt_cache_miss_tokens": 1_000,
            "completion_tokens": 100,
        },
        Usage(input_tokens=10_000, cached_tokens=9_000, output_tokens=100),
        "0.0046",
    ),
]


def read(*reports: object) -> Usage | None:
    usage = ChatUsage()
    for report in reports:
        usage.read(report, final=True)
    return usage.total()


@pytest.mark.parametrize(("report", "usage", "cost"), CASES)
def test_fc_53_each_shape_is_brought_into_one_form(report, usage, cost):
    assert read(report) == usage
    assert call_cost(usage, PRICED) == Decimal(cost)


def test_fc_53_more_cached_than_sent_leaves_nothing_negative():
    usage = read({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 12}})
    assert usage == Usage(input_tokens=12, cached_tokens=12)


def test_absent_and_null_figures_keep_what_was_said():
    assert read(
        {"prompt_tokens": 30, "completion_tokens": 4},
        {"prompt_tokens": None, "completion_tokens": 11},
    ) == Usage(input_tokens=30, output_tokens=11)


@pytest.mark.parametrize("report", [None, {}, [], "x", {"prompt_tokens": None}])
def test_no_report_is_no_usage(report):
    assert read(report) is None


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "7", float("nan"), float("inf"), 1e300, [1]])
def test_a_figure_that_counts_nothing_is_ignored(wrong):
    assert read({"prompt_tokens": wrong, "completion_tokens": 3.0}) == Usage(output_tokens=3)
