"""What the bench's table says follows from the samples."""

import pytest

from bench.figures import Figure, in_turns, table


def test_p95_is_a_sample_that_95_of_100_do_not_exceed() -> None:
    assert Figure(name="x", samples=range(1, 101)).p95 == 95
    assert Figure(name="x", samples=range(1, 101)).p99 == 99
    assert Figure(name="x", samples=[7.0]).p95 == 7.0
    assert Figure(name="x", samples=[3.0, 1.0, 2.0]).p95 == 3.0


@pytest.mark.parametrize(
    ("aims", "missed"),
    [
        ({}, False),
        ({"at_most": 2.0}, False),
        ({"at_most": 1.9}, True),
        ({"at_least": 2.0}, False),
        ({"at_least": 2.1}, True),
        ({"p99_at_most": 9.0}, False),
        ({"p99_at_most": 8.9}, True),
    ],
)
def test_an_aim_is_missed_when_what_it_is_for_is_on_its_wrong_side(
    aims: dict[str, float], missed: bool
) -> None:
    assert Figure(name="x", samples=[1.0, 2.0, 9.0], **aims).missed is missed


def test_the_table_shows_the_ratio_to_the_baseline_and_the_missed_aim() -> None:
    shown = table(
        [
            Figure(name="turn", samples=[6.0, 8.0], baseline=[2.0], at_most=5),
            Figure(name="rate", samples=[1234.0], unit="turns/s", at_least=200),
        ]
    )
    assert shown.splitlines() == [
        "figure  n    median       p95       p99  unit     x baseline  aim",
        "turn    2      7.00      8.00      8.00  ms             3.50  <= 5 MISSED",
        "rate    1  1,234.00  1,234.00  1,234.00  turns/s              >= 200 met",
    ]


async def test_contenders_run_in_turns() -> None:
    ran: list[str] = []

    async def first() -> None:
        ran.append("first")

    async def second() -> None:
        ran.append("second")

    samples = await in_turns(2, {"first": first, "second": second})
    assert ran == ["first", "second"] * 2
    assert [len(taken) for taken in samples.values()] == [2, 2]
