"""What the demo model says to the bench. The first word of a prompt chooses the answer."""

from typing import Any, Final

from smista.demo.script import Script

DELTAS: Final = 20
FLOOD: Final = 3_000
TRICKLE: Final = 1_200
COUNTED: Final = 150
STREAMED: Final = 4_000

_SENTENCE: Final = "each of these deltas carries about as many letters as a model sends at once. "


def bench_script() -> Script:
    """Return the script: a plain answer, and one that floods, trickles, counts, streams or holds.

    To trickle and to count is to say ten deltas a second, to stream two hundred.
    """
    stream: list[dict[str, Any]] = [{"text": "drop "}, {"pause_ms": 5}] * STREAMED
    trickle: list[dict[str, Any]] = [{"text": "drop "}, {"pause_ms": 100}] * TRICKLE
    count: list[dict[str, Any]] = []
    for number in range(COUNTED):
        count += [{"text": f"{number} "}, {"pause_ms": 100}]
    rules = [
        _rule("hold", [{"text": "I begin"}, {"hold": True}]),
        _rule("trickle", trickle),
        _rule("count", count),
        _rule("stream", stream),
        _rule("flood", [{"text": "word " * FLOOD, "words": 1}]),
        {"name": "plain", "say": [{"text": _SENTENCE * 4, "deltas": DELTAS}]},
    ]
    return Script.model_validate({"rules": rules})


def _rule(word: str, say: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": word, "when": {"user": rf"\A{word}\b"}, "say": say}
