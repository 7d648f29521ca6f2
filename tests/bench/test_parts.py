"""The bench measures what it says: whole turns, of the sizes named, with processes of its own."""

import os
import sys
from datetime import UTC, datetime

import pytest
import trio
import trio.testing

from bench import __main__ as bench
from bench.callers import WrongAnswer, checked
from bench.decision import situation, typical
from bench.figures import Figure
from bench.house import Told, execute_body, settings_file
from bench.line import Answer
from bench.processes import NotUp, cpu_ms, open_process, rss_mib
from bench.script import DELTAS, FLOOD, bench_script
from bench.storage import plain_turn
from smista.core.decision import Decision
from smista.core.pipeline import decide
from smista.core.records import Session
from smista.core.request import ExecuteRequest
from smista.demo.answer import answer
from smista.demo.asked import Asked
from smista.demo.script import Text, split
from smista.local.paths import Places
from smista.local.router_file import load_router_config
from smista.storage.memory import MemoryJournal

AT = datetime(2026, 1, 1, tzinfo=UTC)


def said(text: str) -> tuple[object, ...]:
    asked = Asked(model="demo", user=text, texts=(text,), digest="d")
    return answer(bench_script(), asked, call=1)


@pytest.mark.parametrize(("word", "deltas"), [("go on", DELTAS), ("flood", FLOOD)])
def test_the_model_says_as_many_deltas_as_are_counted(word: str, deltas: int) -> None:
    (step,) = said(word)
    assert isinstance(step, Text)
    assert len(split(step)) == deltas


def test_a_turn_that_did_not_complete_is_no_sample() -> None:
    good = Answer(0, pieces=[b"HTTP/1.1 200 ", b'{"type":"turn_end","status":"completed"}'])
    assert checked(good) is good
    with pytest.raises(WrongAnswer, match="idle"):
        checked(Answer(0, pieces=[b"HTTP/1.1 200 ", b'{"type":"turn_end","status":"idle"}']))


@pytest.mark.parametrize("factor", [1, 3])
def test_a_typical_situation_is_decided_and_has_its_size(factor: int) -> None:
    snapshot = typical(factor)
    assert isinstance(decide(snapshot), Decision)
    assert len(snapshot.request.policy.routing.rules) == 10 * factor
    files, facts = snapshot.request.attachments.files, snapshot.memory
    assert len(snapshot.history) + len(files) + len(facts) == 20 * factor


def test_no_rule_of_a_situation_ends_the_search_early() -> None:
    decision = decide(situation(rules=5, messages=2, files=2, facts=0, models=2))
    assert isinstance(decision, Decision)
    assert decision.routing.matched_rule is None


def test_the_body_that_is_sent_is_a_request() -> None:
    request = ExecuteRequest.model_validate(execute_body("go on"))
    assert len(request.policy.routing.rules) == 10


async def test_turns_that_are_recorded_can_be_loaded() -> None:
    journal = MemoryJournal()
    owner = "01997c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f"
    session = Session(
        id="01997c3e-7a2b-7c4d-8e5f-1a2b3c4d5e70",
        user_id=owner,
        title="b",
        created_at=AT,
        updated_at=AT,
    )
    await journal.create_session(session)
    for turn in range(3):
        await journal.record_turn(plain_turn(session, turn))
    state = await journal.load(session)
    assert len(state.messages) == 6
    assert state.run.events == len(await journal.trace(session.id))


def test_the_router_of_the_bench_has_no_rate_limit_and_a_store_on_disk(tmp_path) -> None:
    places = Places(config=tmp_path, personal=tmp_path, runtime=tmp_path)
    config, warnings = load_router_config(places, settings_file(tmp_path, 7001, 7002))
    assert not config.rate_limit.enabled
    assert config.limits.max_concurrent_requests == 2000
    assert config.storage.path == str(tmp_path / "db")
    assert warnings == ()


async def test_what_the_model_tells_is_waited_for_in_order(nursery: trio.Nursery) -> None:
    told, heard = Told(), []

    async def listen() -> None:
        heard.extend([await told.next_seen(), await told.next_left(), await told.next_seen()])

    nursery.start_soon(listen)
    await trio.testing.wait_all_tasks_blocked()
    for line in ("port 80", "seen 1", "seen 3", "left 2"):
        told.hear(line)
    await trio.testing.wait_all_tasks_blocked()
    assert told.port == 80
    assert heard == [1, 2, 3]


SPEAKS = "import signal; print('hm', flush=True); print('up', flush=True); signal.pause()"


async def test_a_process_is_gone_when_its_block_is_left() -> None:
    lines: list[str] = []
    command = [sys.executable, "-c", SPEAKS]
    async with open_process(
        command, channel="stdout", heard=lines.append, up_at="up", env={}
    ) as process:
        assert lines == ["hm", "up"]
        assert rss_mib(process.pid) > 1
        assert cpu_ms(process.pid) >= 0
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


async def test_a_process_that_ends_before_it_is_up_is_an_error() -> None:
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    with pytest.RaisesGroup(NotUp, flatten_subgroups=True):
        async with open_process(command, channel="stdout", heard=print, up_at="up", env={}):
            pass


def test_an_unknown_section_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["turn"]) == 2
    assert "no section turn" in capsys.readouterr().err


async def test_a_bench_without_time_keeps_what_it_has(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock
) -> None:
    async def quick() -> list[Figure]:
        return [Figure(name="quick", samples=[1.0])]

    async def endless() -> list[Figure]:
        await trio.sleep_forever()
        return []

    monkeypatch.setattr(bench, "SECTIONS", {"quick": quick, "endless": endless})
    measured = await bench.run(["quick", "endless"], enough=5)
    assert [figure.name for figure in measured.figures] == ["quick"]
    assert measured.left_out == ["endless"]
