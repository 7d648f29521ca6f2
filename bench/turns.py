"""A turn's overhead: what the router adds to a direct call of the model, and how many it serves."""

import trio

from bench.callers import TURNS_A_SESSION, checked, turn_rate
from bench.figures import Figure
from bench.house import STATUS, House, direct, open_house
from bench.line import Answer, Line, open_line
from bench.processes import cpu_ms

ROUNDS = 160
CALLERS = 10
BATCHES = 5
TURNS_A_BATCH = 30


async def measure() -> list[Figure]:
    """Return latencies of one caller, beside direct calls in turns, and the rate of ten."""
    async with open_house() as house:
        await turn_rate(house, callers=2, each=10)
        async with open_line(house.port) as line, open_line(house.told.port) as model:
            one = await _one_caller(house, line, model)
        return [*one, *await _ten_callers(house)]


async def _one_caller(house: House, line: Line, model: Line) -> list[Figure]:
    statuses, calls, turns = [], [], []
    sent_directly, sent = [], []
    house.told.forget()
    for number in range(ROUNDS):
        if number % TURNS_A_SESSION == 0:
            request = house.execute(await house.new_session(line))
        statuses.append(await line.ask(STATUS))
        calls.append(await model.ask(direct()))
        sent_directly.append(await house.told.next_seen())
        turns.append(checked(await line.ask(request)))
        sent.append(await house.told.next_seen())
    there = [(at - call.asked) / 1e6 for at, call in zip(sent_directly, calls, strict=True)]
    through = [(at - turn.asked) / 1e6 for at, turn in zip(sent, turns, strict=True)]
    calls_ms, turns_ms = _milliseconds(calls), _milliseconds(turns)
    added = [turn - call for turn, call in zip(turns_ms, calls_ms, strict=True)]
    return [
        Figure(name="GET /status, bare front", samples=_milliseconds(statuses)),
        Figure(name="direct call of the model", samples=calls_ms),
        Figure(name="turn", samples=turns_ms, baseline=calls_ms),
        Figure(name="turn: added latency", samples=added, at_most=6),
        Figure(name="turn: request to model asked", samples=through, baseline=there, at_most=3),
        Figure(name="turn: last delta to turn_end", samples=_endings(turns), at_most=5),
    ]


def _milliseconds(answers: list[Answer]) -> list[float]:
    return [answer.milliseconds for answer in answers]


def _endings(turns: list[Answer]) -> list[float]:
    return [(turn.times[-1] - turn.last_with(b'"text_delta"')) / 1e6 for turn in turns]


async def _ten_callers(house: House) -> list[Figure]:
    rates, costs, bare = [], [], []
    for _ in range(BATCHES):
        bare.append(await _status_rate(house))
        before = cpu_ms(house.pid)
        rates.append(await turn_rate(house, callers=CALLERS, each=TURNS_A_BATCH))
        costs.append((cpu_ms(house.pid) - before) / (CALLERS * TURNS_A_BATCH))
    return [
        Figure(name="GET /status, 10 callers", samples=bare, unit="answers/s"),
        Figure(name="turns, 10 callers", samples=rates, unit="turns/s", at_least=200),
        Figure(name="turns, 10 callers: router's CPU", samples=costs, unit="ms/turn"),
    ]


async def _status_rate(house: House) -> float:
    async def call() -> None:
        async with open_line(house.port) as line:
            for _ in range(TURNS_A_BATCH):
                await line.ask(STATUS)

    begun = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(CALLERS):
            nursery.start_soon(call)
    return CALLERS * TURNS_A_BATCH / (trio.current_time() - begun)
