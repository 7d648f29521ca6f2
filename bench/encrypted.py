"""What encryption adds to a turn over a long history; its extra round trip is told apart.

The client's own sealing and opening is not part of it: it happens on another machine.
"""

import json
from typing import Any

from bench.callers import WrongAnswer
from bench.figures import Figure
from bench.house import House, open_house
from bench.line import Answer, Line, open_line
from smista.sdk.sealing import Sealer, new_key

HISTORY = 100
ROUNDS = 20
_PER_TURN = 2
_FRAME = b"data: "


async def measure() -> list[Figure]:
    """Return a turn over at least HISTORY messages, encrypted beside plain, and its sealing."""
    async with open_house() as house, open_line(house.port) as line:
        key = new_key()
        plain = await house.new_session(line)
        session = await house.new_session(line, key.key_id)
        client = _Client(house, line, session, Sealer(key, session))
        for _ in range(HISTORY // _PER_TURN):
            _ending(await line.ask(house.execute(plain)))
            await client.seal(await line.ask(house.execute(session)))
        in_clear, encrypted, sealing = [], [], []
        for _ in range(ROUNDS):
            in_clear.append((await line.ask(house.execute(plain))).milliseconds)
            answer = await line.ask(house.execute(session))
            encrypted.append(answer.milliseconds)
            sealing.append(await client.seal(answer))
    name = f"turn over {HISTORY} messages"
    ratios = [there / here for there, here in zip(encrypted, in_clear, strict=True)]
    return [
        Figure(name=name, samples=in_clear),
        Figure(name=f"{name}, encrypted", samples=encrypted, baseline=in_clear),
        Figure(name=f"{name}, encrypted / plain", samples=ratios, unit="x", at_most=1.5),
        Figure(name=f"{name}: storing what was sealed", samples=sealing),
    ]


class _Client:
    def __init__(self, house: House, line: Line, session_id: str, sealer: Sealer) -> None:
        self._house = house
        self._line = line
        self._session_id = session_id
        self._sealer = sealer

    async def seal(self, answer: Answer) -> float:
        """Seal what the turn left; return the milliseconds that storing it took."""
        texts = _ending(answer)["data"]["to_encrypt"]
        envelopes = {
            name: self._sealer.seal_one(name, text).model_dump() for name, text in texts.items()
        }
        stored = await self._line.ask(self._house.sealed(self._session_id, envelopes))
        if stored.json().get("status") != "idle":
            raise WrongAnswer(stored.raw.decode("utf-8", "replace")[-500:])
        return stored.milliseconds


def _ending(answer: Answer) -> dict[str, Any]:
    """Return the turn end of a completed turn. Raises WrongAnswer for any other."""
    # An event leaves in one piece, so no mark of the transfer stands within it.
    frame = answer.raw.rpartition(_FRAME)[2].partition(b"\n")[0]
    if b'"status":"completed"' not in frame:
        raise WrongAnswer(answer.raw.decode("utf-8", "replace")[-500:])
    ending: dict[str, Any] = json.loads(frame)
    return ending
