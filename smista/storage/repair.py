"""Mends what an unclean stop leaves: the engine may replay a part of its last transaction.

A unit's run state is written last and counts what the session holds. Rows beyond that count belong
to a unit that never came to exist, and go, and so does the input of a run that is over; indexes
are built anew, for they may disagree. Rows of the other tables need no sweep: the turn, served
again, writes the same ids over them.
"""

from collections.abc import Mapping
from typing import Any, Final

from smista.core.phase import Idle, phase_to_json
from smista.storage.bridge import Bridge
from smista.storage.rows import INPUT, json_text
from smista.storage.schema import INDEXES
from smista.storage.values import LAST, Key, Ref

_IDLE: Final = json_text(phase_to_json(Idle()))
_AT_ONCE: Final = 100
_PROBE: Final = Ref("schema_meta", "probe")
_COUNTED: Final = (
    ("session_message", "messages"),
    ("session_message_content", "messages"),
    ("trace_event", "events"),
    ("trace_event_content", "events"),
    ("session_context_reference", "references"),
)


async def repair(bridge: Bridge) -> None:
    """Leave only whole units behind; expects the tables to be defined."""
    sessions, states = await bridge.query(
        "SELECT VALUE id FROM session; SELECT * FROM session_run_state", {}
    )
    counted = {state["id"].key: state for state in states}
    for start in range(0, len(sessions), _AT_ONCE):
        some = sessions[start : start + _AT_ONCE]
        await _sweep(bridge, {ref.key: counted.get(ref.key, {}) for ref in some})
    for table, column in INDEXES:
        await bridge.query(f"REBUILD INDEX IF EXISTS {table}_{column} ON {table}", {})


async def _sweep(bridge: Bridge, states: Mapping[Key, Mapping[str, Any]]) -> None:
    lines, values = ["BEGIN"], dict[str, Any](last=LAST)
    for number, (key, state) in enumerate(states.items()):
        values[f"s{number}"] = key
        for table, counter in _COUNTED:
            values[f"{counter}{number}"] = state.get(counter, 0)
            span = f"[$s{number}, ${counter}{number}]..[$s{number}, $last]"
            lines.append(f"DELETE {table}:{span} RETURN NONE")
    over = [key for key, state in states.items() if state.get("phase") == _IDLE]
    values["over"] = [Ref(table, key) for table in INPUT for key in over]
    lines.append("DELETE $over RETURN NONE")
    await bridge.query(";".join((*lines, "COMMIT;")), values)


async def probe(bridge: Bridge) -> None:
    """Prove with one write that the log takes writes; raises StorageUnavailable."""
    text = "UPSERT $probe CONTENT { written: time::now() } RETURN NONE"
    await bridge.query(text, {"probe": _PROBE})
