"""GET /api/v1/usage: what is asked, and how the sums are told."""

from datetime import UTC, datetime

import pytest

from smista.core.usage import UsageBy, UsageQuery
from smista.ports.journal import UsageSum
from tests.front.harness import running

SUMS = {
    UsageBy.MODEL: (("ollama", "qwen"), {"provider": "ollama", "model": "qwen"}),
    UsageBy.INTENT: (("edit",), {"task_type": "edit"}),
    UsageBy.DAY: (("2026-05-25",), {"day": "2026-05-25"}),
    UsageBy.PROJECT: ((None,), {}),
}
MEMBERS = {"model": "by_model", "intent": "by_task_type", "day": "by_day", "project": "by_project"}


@pytest.mark.parametrize("by", UsageBy)
async def test_the_groups_stand_under_the_name_of_what_was_asked(by: UsageBy):
    group, members = SUMS[by]
    async with running() as front:
        front.sessions.sums = (
            UsageSum(group=group, requests=2, input_tokens=3, output_tokens=4, cost="0.5"),
        )
        answer = (await front.client.get(f"/api/v1/usage?by={by.value}")).json()
    figures = {
        "input_tokens": 3,
        "output_tokens": 4,
        "total_tokens": 7,
        "estimated_cost": "0.5",
        "currency": "USD",
        "request_count": 2,
    }
    assert answer == {"total": figures, MEMBERS[by.value]: [{**members, **figures}]}


async def test_without_parameters_everything_is_asked_for_by_model():
    async with running() as front:
        answer = (await front.client.get("/api/v1/usage")).json()
        assert front.sessions.seen == [(UsageQuery(),)]
    assert answer == {"total": {"request_count": 0}, "by_model": []}


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-05-25", datetime(2026, 5, 25, tzinfo=UTC)),
        ("2026-05-25T12:00:00Z", datetime(2026, 5, 25, 12, tzinfo=UTC)),
        ("2026-05-25T12:00:00%2B02:00", datetime(2026, 5, 25, 10, tzinfo=UTC)),
        ("2026-05-25T12:00:00+02:00", datetime(2026, 5, 25, 10, tzinfo=UTC)),
    ],
)
async def test_a_bound_is_a_day_or_a_time(text: str, moment: datetime):
    async with running() as front:
        await front.client.get(f"/api/v1/usage?since={text}&until={text}&scope=/p")
        assert front.sessions.seen == [(UsageQuery(since=moment, until=moment, scope="/p"),)]


@pytest.mark.parametrize("query", ["by=week", "by=", "since=yesterday", "until=2026-13-01"])
async def test_what_cannot_be_read_is_refused_with_its_place(query: str):
    async with running() as front:
        answer = await front.client.get(f"/api/v1/usage?{query}")
    assert answer.status_code == 422
    (field,) = answer.json()["error"]["details"]["fields"]
    assert field["place"] == f"query.{query.partition('=')[0]}"
