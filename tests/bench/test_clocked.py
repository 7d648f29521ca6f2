"""The clocked model reads what smista sends, answers as the demo model does, and keeps times."""

import trio
import trio.testing

from bench.callers import checked
from bench.clocked import NUMBERED, answer_pieces, newest_number, read_body
from bench.crowd import misplaced
from bench.house import Clocked, Told, execute_body
from bench.line import Answer
from bench.script import COUNTED, DELTAS
from smista.core.history import Message, Role
from smista.core.prompt import Prompt
from smista.core.stream import StreamEnd, TextDelta
from smista.providers.compatible import Compatible
from smista.providers.masking import create_mask

DIALECT = Compatible(provider="c", base_url="http://c", models={})


def prompt(*texts: str) -> Prompt:
    said = [Message(uuid=str(n), role=Role.USER, text=t, run_id="r") for n, t in enumerate(texts)]
    return Prompt(model="demo", system="", messages=tuple(said))


def test_the_newest_prompt_names_the_turn() -> None:
    body = DIALECT.request(prompt(NUMBERED % 7, "x " * 2_000, NUMBERED % 12)).body
    assert newest_number(body) == 12
    assert newest_number(DIALECT.request(prompt("go on")).body) == -1


async def test_a_body_is_read_however_it_is_cut() -> None:
    raw = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
    for cut in range(1, len(raw)):
        sender, receiver = trio.testing.memory_stream_one_way_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.send_all, raw[:cut])
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(sender.send_all, raw[cut:])
            assert await read_body(receiver) == b"abc"
        await sender.aclose()
        assert await read_body(receiver) is None


def test_its_answer_is_a_whole_one() -> None:
    decoder = DIALECT.decoder(DIALECT.request(prompt("go on")), create_mask(None))
    body = b"".join(answer_pieces()).partition(b"\r\n\r\n")[2]
    events = []
    while body != b"0\r\n\r\n":
        size, _, rest = body.partition(b"\r\n")
        events += decoder.feed(rest[: int(size, 16)])
        body = rest[int(size, 16) + 2 :]
    assert decoder.done
    assert sum(isinstance(event, TextDelta) for event in events) == DELTAS
    assert isinstance(events[-1], StreamEnd)


async def test_what_it_tells_is_filed_by_the_number_of_the_turn() -> None:
    told = Told()
    told.hear("turn 3 10 20 30")
    await told.wait_turns([3])
    assert told.turns == {3: Clocked(asked=10, first=20, last=30)}


def test_a_lost_a_doubled_and_a_moved_delta_are_all_seen() -> None:
    whole = list(range(COUNTED))
    assert misplaced(whole) == 0
    assert misplaced(whole[:-1]) == 1
    assert misplaced([*whole, whole[-1]]) == 1
    assert misplaced([1, 0, *whole[2:]]) == 2


def test_the_first_piece_with_a_mark_is_the_one_that_is_dated() -> None:
    answer = Answer(1, pieces=[b"head", b"delta", b'delta "status":"completed"'], times=[2, 3, 4])
    assert checked(answer).first_with(b"delta") == 3
    assert execute_body(NUMBERED % 3)["input"]["text"] == "number 3"
