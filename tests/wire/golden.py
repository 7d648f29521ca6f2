"""Golden bytes of a dialect: what goes out for a prompt, and what a recorded answer says.

Each name stands for NAME.request.json, the body that is sent, NAME.response.sse (or .jsonl), the
bytes that come back, and NAME.events.json, the events they mean.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from smista.core.errors import ProviderError
from smista.core.history import Call, Message, Role
from smista.core.prompt import Prompt, Tool
from smista.core.stream import StreamEvent
from smista.providers.masking import create_mask
from smista.providers.wire import Dialect, WireRequest

READ = Tool(
    name="read_file",
    description="Read a file.",
    permission="file_read",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where"},
            "line_count": {"type": "integer", "minimum": 1},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)
Read = tuple[list[StreamEvent], ProviderError | None]


def message(role: Role, text: str, **more: Any) -> Message:
    return Message(uuid="u", role=role, text=text, run_id="r", **more)


def call(call_id: str, theirs: str, arguments: str, name: str = "read_file") -> Call:
    return Call(call_id=call_id, provider_call_id=theirs, name=name, arguments=arguments)


def crossing(first: str, second: str) -> tuple[Message, ...]:
    """Return a history of two providers' calls, with a failed and an unanswered one."""
    return (
        message(Role.USER, "compare a.txt and b.txt"),
        message(
            Role.ASSISTANT,
            "Let me look.",
            calls=(call("c1", "own_1", '{"path":"a.txt"}'), call("c2", "own_2", "")),
            provider=first,
        ),
        message(Role.TOOL, "alpha", call_id="c1"),
        message(Role.TOOL, "path is missing", call_id="c2", is_error=True),
        message(
            Role.ASSISTANT,
            "",
            calls=(call("c3", "functions|odd id:0", '{"path":"b.t'), call("c4", "own_1", "{}")),
            provider=second,
        ),
        message(Role.TOOL, "beta 🦊", call_id="c3"),
        message(Role.ASSISTANT, " ", provider=second),
        message(Role.USER, "go on"),
        message(Role.USER, "and be brief"),
    )


@dataclass(frozen=True, kw_only=True)
class Golden:
    """The recorded bytes in one folder, for one dialect.

    *url* may name the {model}; *whole* tells from which length on an answer counts as whole.
    """

    folder: Path
    dialect: Dialect
    prompts: Mapping[str, Prompt]
    url: str
    whole: Callable[[bytes], int]
    kind: str = "sse"

    @property
    def names(self) -> list[str]:
        return sorted(self.prompts)

    def response(self, name: str) -> bytes:
        return (self.folder / f"{name}.response.{self.kind}").read_bytes()

    def events(self, name: str) -> Any:
        return self._json(f"{name}.events.json")

    def body(self, name: str) -> Any:
        return self._json(f"{name}.request.json")

    def request(self, name: str) -> WireRequest:
        return self.dialect.request(self.prompts[name])

    def sent(self, name: str) -> Any:
        return json.loads(self.request(name).body)

    def read(self, name: str, pieces: Iterable[bytes]) -> Read:
        decoder = self.dialect.decoder(self.request(name), create_mask(None))
        events = [found for piece in pieces for found in decoder.feed(piece)]
        events += decoder.close()
        assert decoder.done != (decoder.fault is not None)
        return events, decoder.fault

    def told(self, name: str, *pieces: bytes) -> tuple[Any, ProviderError | None]:
        """Return the events as JSON, and the fault."""
        events, fault = self.read(name, pieces or (self.response(name),))
        return [{"event": type(event).__name__, **asdict(event)} for event in events], fault

    def _json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text("utf-8"))


def cut(raw: bytes, cuts: Iterable[int]) -> list[bytes]:
    return [raw[a:b] for a, b in pairwise([0, *sorted(cuts), len(raw)])]
