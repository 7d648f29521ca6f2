"""Nothing readable of an encrypted session is on the disk, at any moment, whatever happens."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smista.core.events import Status, TextDeltaEvent, TurnEnd
from smista.core.messages import (
    ApprovalDecision,
    ApprovalDecisions,
    ApprovalDecisionsData,
    Break,
    Decrypted,
    DecryptedData,
    Inject,
    InjectData,
    InjectMessage,
    SealedData,
    SealedRows,
    ToolResultEntry,
    ToolResults,
    ToolResultsData,
)
from smista.core.request import ExecuteRequest
from smista.core.secret import Envelope
from smista.sdk.client import Client, open_client
from smista.sdk.errors import SdkError
from smista.sdk.opening import open_trace, usage_of
from smista.sdk.run import drive
from smista.sdk.sealing import Sealer, new_key
from smista.storage.bridge import Target
from smista.storage.schema import TABLES
from smista.storage.store import open_directory_store
from tests.e2e.house import House, Router, demo_model

MARKS = [f"sown{n:02}mark" for n in range(50)]
_SLOWLY = ", ".join(f'{{ text = "{mark} " }}, {{ pause_ms = 2 }}' for mark in MARKS[:20])

_EDIT = f'{{ path = "{MARKS[22]}.txt", old = "{MARKS[23]}", new = "{MARKS[24]}" }}'

SCRIPT = f"""
[[rules]]
name = "refused"
when = {{ results = true, failed = true }}
say = [{{ text = "Then not, {MARKS[20]}." }}]

[[rules]]
name = "edit"
when = {{ user = 'mend', results = false }}
say = [
    {{ text = "I will, {MARKS[21]}. " }},
    {{ tool = "edit_file", arguments = {_EDIT} }},
]

[[rules]]
name = "command"
when = {{ user = 'forbidden', results = false }}
say = [{{ tool = "shell", arguments = {{ command = "echo {MARKS[25]}" }} }}]

[[rules]]
name = "done"
when = {{ results = true }}
say = [{{ text = "Done, {MARKS[26]}." }}]

[[rules]]
name = "never end"
when = {{ user = 'never end' }}
say = [{{ text = "it begins {MARKS[27]} " }}, {{ hold = true }}]

[[rules]]
name = "plan"
when = {{ user = 'plan' }}
say = [{{ text = "The plan is {MARKS[28]}." }}]

[[rules]]
name = "talk"
say = [{_SLOWLY}]
"""


def request(text: str, command: str | None = None) -> ExecuteRequest:
    """A prompt with marks in everything it carries."""
    files = [
        {
            "path": f"{MARKS[30]}.py",
            "content": MARKS[31],
            "content_hash": MARKS[32],
            "required": True,
        }
    ]
    return ExecuteRequest.model_validate(
        {
            "input": {"text": f"{text} {MARKS[33]}", "command": command},
            "workspace": {
                "root": f"/home/{MARKS[34]}",
                "git_branch": MARKS[35],
                "git_diff": f"diff --git a/{MARKS[36]} b/{MARKS[36]}\n--- a/{MARKS[36]}\n"
                f"+++ b/{MARKS[36]}\n@@ -1 +1 @@\n-a\n+{MARKS[37]}\n",
                "referenced_paths": [f"{MARKS[30]}.py"],
                "active_file": f"{MARKS[38]}.py",
            },
            "policy": {
                "version": 1,
                "source": "merged",
                "classification": {"rules": [{"intent": "edit", "keywords": [MARKS[39]]}]},
                "routing": {"default": {"model": "openai-compat:demo/demo"}},
                "tools": {"permissions": {"file_write": "ask", "shell": "deny"}},
                "privacy": {"restricted_paths": [f"{MARKS[40]}/**"], "local": {"mode": "ask"}},
            },
            "local_preferences": {"auto_apply": False, "local_only": False, "no_network": False},
            "attachments": {
                "files": files,
                "instructions": [{"source": f"{MARKS[41]}.md", "content": MARKS[42]}],
                "invoked_skills": [
                    {"name": MARKS[43], "content": MARKS[44], "path": f"/s/{MARKS[45]}.md"}
                ],
                "available_skills": [{"name": "s", "content": f"# s\n\n{MARKS[46]}"}],
            },
        }
    )


class Watch:
    """Looks for marks in everything the router has written, as often as it is asked to."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self.looks = 0

    def look(self) -> None:
        self.looks += 1
        for path in self._router.house.home.rglob("*"):
            if path.is_file():
                self._check(path.name, path.read_bytes())
        self._check("output", self._router.output.encode())

    @staticmethod
    def _check(name: str, found: bytes) -> None:
        shown = [mark for mark in MARKS if mark.encode() in found]
        assert not shown, f"{name} shows {shown}"

    async def look_into_tables(self) -> None:
        """Look at the rows themselves; no router may be running."""
        place = self._router.house.home / "db"
        target = Target(url=f"surrealkv://{place / 'data'}", namespace="smista", database="local")
        async with open_directory_store(place, target, durable=True) as store:
            found = await store.read("".join(f"SELECT * FROM {table};" for table in TABLES))
        assert any(found)
        self._check("tables", repr(found).encode())


class Talk:
    """One encrypted session, driven by hand: each ending is looked at before it is answered."""

    def __init__(self, client: Client, sealer: Sealer, session_id: str, watch: Watch) -> None:
        self.client = client
        self.sealer = sealer
        self.session_id = session_id
        self.watch = watch

    async def execute(self, text: str, command: str | None = None) -> TurnEnd:
        async with self.client.stream_execute(self.session_id, request(text, command)) as stream:
            return await self.through(await self._last(stream))

    async def tell(self, message: Any) -> TurnEnd:
        async with self.client.stream_continue(self.session_id, message) as stream:
            return await self._last(stream)

    async def _last(self, stream: Any) -> TurnEnd:
        heard, event = 0, None
        async for event in stream:
            heard += isinstance(event, TextDeltaEvent)
            if heard % 2 == 1:
                self.watch.look()
        self.watch.look()
        assert isinstance(event, TurnEnd)
        return event

    async def seal(self, ending: TurnEnd, **more: str) -> dict[str, Envelope]:
        return await self.sealer.seal({**ending.data.get("to_encrypt", {}), **more})

    async def through(self, ending: TurnEnd) -> TurnEnd:
        """Open what is asked for, and agree to everything, until the run is over or runs tools."""
        while True:
            match ending.status:
                case Status.AWAITING_DECRYPT:
                    plaintext = await self.sealer.open(ending.data["to_decrypt"])
                    data = DecryptedData(plaintext=plaintext, encrypted=await self.seal(ending))
                    ending = await self.tell(Decrypted(data=data))
                case Status.AWAITING_APPROVAL:
                    ending = await self.tell(await self.approved(ending))
                case Status.AWAITING_TOOL:
                    ending = await self.tell(await self.results(ending))
                case _:
                    return ending

    async def approved(self, ending: TurnEnd) -> ApprovalDecisions:
        decision = ApprovalDecision(
            approval_id=ending.data["approval"]["approval_id"],
            decision="approved",
            reason=MARKS[47],
        )
        data = ApprovalDecisionsData(decisions=(decision,), encrypted=await self.seal(ending))
        return ApprovalDecisions(data=data)

    async def results(self, ending: TurnEnd) -> ToolResults:
        asked = [each["call_id"] for each in ending.data["tool_requests"]]
        texts = {f"tool_call:{call_id}": MARKS[48] for call_id in asked}
        entries = tuple(
            ToolResultEntry(
                call_id=call_id, content=MARKS[48], decision="approved", paths=(MARKS[49],)
            )
            for call_id in asked
        )
        data = ToolResultsData(results=entries, encrypted=await self.seal(ending, **texts))
        return ToolResults(data=data)

    async def finish(self, ending: TurnEnd) -> None:
        if "sealed" in ending.allowed_continuations:
            done = await self.tell(SealedRows(data=SealedData(encrypted=await self.seal(ending))))
            assert done.status is Status.IDLE


async def never_ending(talk: Talk) -> None:
    """Begin a run that goes on for ever; return once it has said something."""
    async with talk.client.stream_execute(talk.session_id, request("never end")) as stream:
        async for event in stream:
            if isinstance(event, TextDeltaEvent):
                return
            if isinstance(event, TurnEnd) and event.status is Status.AWAITING_APPROVAL:
                break
        else:
            raise AssertionError("the run ended")
    async with talk.client.stream_continue(talk.session_id, await talk.approved(event)) as stream:
        async for event in stream:
            if isinstance(event, TextDeltaEvent):
                return


async def test_no_mark_is_ever_found_on_the_disk_nor_in_what_the_router_says(
    tmp_path: Path, open_router: Callable[[House], Router]
) -> None:
    with demo_model(tmp_path, SCRIPT) as model:
        house = House(folder=tmp_path, model=model)
        router = open_router(house)
        watch = Watch(router)
        async with open_client(house.client_config) as client:
            await client.bootstrap()
            key = new_key()
            session = await client.create_session("2026-11-30", key_id=key.key_id)
            talk = Talk(client, Sealer(key, session.id), session.id, watch)
            for text, command in (
                *[("talk", None)] * 8,
                ("mend", None),
                ("forbidden", None),
                ("plan", "plan"),
            ):
                await talk.finish(await talk.execute(text, command))

            await never_ending(talk)
            words = InjectMessage(text=f"talk {MARKS[29]}")
            injected = await talk.tell(Inject(data=InjectData(messages=(words,))))
            await talk.finish(await talk.through(injected))

            await never_ending(talk)
            stopped = await talk.tell(Break())
            assert stopped.status is Status.AWAITING_ENCRYPT

            router.kill()  # what was said is lost here, and its listener still knows it
            watch.look()
            await watch.look_into_tables()
            router.start()
            await talk.finish(stopped)

            ending = await talk.execute("talk")
            assert ending.status is Status.COMPLETED
            router.kill()
            watch.look()
            router.start()
            with pytest.raises(SdkError):  # an answer without its envelopes
                await talk.tell(SealedRows(data=SealedData(encrypted={})))
            await talk.finish(ending)

            entries = await open_trace(talk.sealer, await client.trace(session.id, limit=5000))
            figures, told = usage_of(entries), await client.usage(session.id)
            assert "input_tokens" not in told["total"]
            assert [each["request_count"] for each in told["by_model"]] == [
                each["request_count"] for each in figures["by_model"]
            ]
            assert figures["total"]["total_tokens"] > 0
            detail = await client.session(session.id)
            assert all("encrypted" in message.content for message in detail.messages)
        assert router.leave() == 0
        watch.look()
        await watch.look_into_tables()
        assert watch.looks > 100


class Hands:
    """The machine of a driven run: its tools say marks, and it agrees to everything."""

    async def show(self, event: Any) -> None:
        return

    def say(self, line: str) -> None:
        return

    async def run_tools(self, requests: tuple[Any, ...]) -> tuple[ToolResultEntry, ...]:
        return tuple(
            ToolResultEntry(
                call_id=each.call_id, content=MARKS[48], decision="approved", paths=(MARKS[49],)
            )
            for each in requests
        )

    async def decide(self, approval: Any) -> ApprovalDecision:
        return ApprovalDecision(approval_id=approval.approval_id, decision="approved")


async def test_driven_runs_are_sealed_and_go_on_from_where_a_router_died(
    tmp_path: Path, open_router: Callable[[House], Router]
) -> None:
    with demo_model(tmp_path, SCRIPT) as model:
        house = House(folder=tmp_path, model=model)
        router = open_router(house)
        watch = Watch(router)
        async with open_client(house.client_config) as client:
            await client.bootstrap()
            key = new_key()
            session = await client.create_session("2026-11-30", key_id=key.key_id)
            sealer = Sealer(key, session.id)
            for text, said in (("talk", MARKS[19]), ("mend", MARKS[26]), ("forbidden", MARKS[20])):
                done = await drive(client, session.id, request(text), Hands(), seal=sealer)
                assert done.status is Status.COMPLETED
                assert said in done.data["message"]["content"]
                watch.look()
                router.kill()
                router.start()
            detail = await client.session(session.id)
            assert "run" not in detail.metadata
            assert [message.role for message in detail.messages] == [
                *("user", "assistant"),
                *("user", "assistant", "tool", "assistant"),
                *("user", "assistant", "tool", "assistant"),
            ]
        assert router.leave() == 0
        await watch.look_into_tables()
