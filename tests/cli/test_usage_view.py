"""Usage with bars, in any width and alphabet; and the times that a person may name."""

from datetime import UTC, datetime, timedelta

import pytest

from cli.commands.usage import moment
from cli.failures import BadUsage
from cli.usage_view import usage_text

NOW = datetime(2026, 5, 25, 12, tzinfo=UTC)


def group(calls=1, cost=None, tokens=None, **names):
    costs = {} if cost is None else {"estimated_cost": cost, "currency": "USD"}
    counts = {} if tokens is None else {"input_tokens": tokens, "output_tokens": 1}
    return {**names, **costs, **counts, "request_count": calls}


def models(*groups):
    return {"total": group(9, "0.75", 1200), "by_model": list(groups)}


BIG = group(3, "0.5", 1000, provider="p", model="big")
SMALL = group(6, "0.25", 200, provider="p", model="s")


def test_the_dearest_comes_first_and_bars_show_the_shares():
    assert usage_text(models(SMALL, BIG), width=59).split("\n") == [
        "9 calls · 1,200 in + 1 out tokens · 0.75 USD",
        "",
        "p/big",
        "  ██████████████████████████████",
        "  0.5 USD  3 calls  1,000 in + 1 out tokens",
        "p/s",
        "  ███████████████",
        "  0.25 USD  6 calls  200 in + 1 out tokens",
    ]


def test_a_wide_terminal_has_one_line_for_each_group():
    lines = usage_text(models(BIG, SMALL), width=100).split("\n")[2:]
    assert lines == [
        f"p/big  {'█' * 30}  0.5 USD  3 calls  1,000 in + 1 out tokens",
        f"p/s    {'█' * 15}{' ' * 15}  0.25 USD  6 calls  200 in + 1 out tokens",
    ]


@pytest.mark.parametrize("width", [1, 10, 20, 40, 59, 60, 80, 200])
def test_no_bar_or_label_is_wider_than_the_terminal(width):
    long = group(1, "1", 5, provider="p", model="m" * 100)
    lines = usage_text(models(long, SMALL), width=width).split("\n")
    bars = [line for line in lines if "█" in line]
    assert bars
    assert all(len(line) <= max(width, 8) for line in bars)


def test_without_prices_bars_show_tokens_and_without_tokens_calls():
    tokens = [group(1, "0", 30, task_type="chat"), group(9, "0", 9, task_type="edit")]
    lines = usage_text({"by_task_type": tokens}, width=100).split("\n")[2:]
    assert lines[0].startswith("chat  █")
    calls = [group(1, task_type="chat"), group(4, task_type="edit")]
    lines = usage_text({"by_task_type": calls}, width=100).split("\n")[2:]
    assert lines == [f"edit  {'█' * 30}  4 calls", f"chat  {'█' * 7}▌{' ' * 22}  1 call"]


def test_days_stay_in_their_order_and_sessions_may_be_without_a_project():
    days = [group(1, "1", day="2026-05-01"), group(1, "2", day="2026-05-02")]
    text = usage_text({"by_day": days, "by_project": [group(1, "3")]}, width=100)
    assert text.index("05-01") < text.index("05-02")
    assert "(no project)" in text


def test_without_block_characters_other_signs_stand_for_them():
    text = usage_text(models(BIG, SMALL), width=100, blocks=False)
    assert text.isascii() or "·" in text
    assert f"p/s    {'#' * 15} " in text


def test_nothing_used_is_told_as_nothing():
    assert usage_text({"total": {"request_count": 0}, "by_model": []}) == "0 calls"


def test_large_sums_are_rounded_and_small_ones_are_not():
    text = usage_text({"total": group(1, "1234.5678")})
    assert text == "1 call · 1234.57 USD"
    assert "0.000012 USD" in usage_text({"total": group(1, "0.00001200")})


def test_foreign_names_are_harmless():
    assert "\x1b" not in usage_text(models(group(1, "1", provider="p", model="\x1b[2J")))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (None, None),
        ("7d", NOW - timedelta(days=7)),
        ("12h", NOW - timedelta(hours=12)),
        ("2w", NOW - timedelta(weeks=2)),
        ("2026-05-01", datetime(2026, 5, 1, tzinfo=UTC)),
        ("2026-05-01T10:00:00+00:00", datetime(2026, 5, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_time_is_so_long_ago_or_a_day_or_a_time(text, meant):
    assert moment(text, NOW) == meant


@pytest.mark.parametrize("text", ["soon", "7y", "d", "2026-13-01", "-3d"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(BadUsage):
        moment(text, NOW)
