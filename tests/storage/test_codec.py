from collections.abc import AsyncIterator

import pytest

from smista.storage import codec
from smista.storage.bridge import Bridge, RowExists, Target, classified
from smista.storage.schema import MIGRATIONS, migrate
from smista.storage.values import Ref

MEMORY = Target(url="mem://", namespace="test", database="test")


@pytest.fixture(params=["ours", "the SDK's"])
async def bridge(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Bridge]:
    if request.param != "ours":
        monkeypatch.setattr(codec, "agrees_with_sdk", lambda: False)
    bridge = Bridge(MEMORY)
    await bridge.open()
    yield bridge
    await bridge.close()


def test_our_codec_agrees_with_the_sdks() -> None:
    assert codec.agrees_with_sdk()


def test_a_codec_that_loses_something_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "decode", lambda data: {"params": ["", {}]})
    assert not codec.agrees_with_sdk()


def test_a_codec_that_breaks_is_noticed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(codec, "encode", lambda text, values: b"\xff")
    assert not codec.agrees_with_sdk()
    assert "self-test" in caplog.text


async def test_every_kind_of_value_survives_the_engine(bridge: Bridge) -> None:
    kept = {
        name: value for name, value in codec.SAMPLE.items() if name not in ("nothing", "nested")
    }
    found = await bridge.query("RETURN $all; RETURN $nothing", {"all": kept, "nothing": None})
    assert found == [kept, None]


async def test_the_cause_of_a_failed_transaction_is_told(bridge: Bridge) -> None:
    text = "BEGIN; LET $a = 1; INSERT INTO user $rows; LET $b = 2; COMMIT;"
    values = {"rows": [{"id": Ref("user", "a")}]}
    await bridge.query(text, values)
    with pytest.raises(RowExists):
        await bridge.query(text, values)


async def test_migrations_run_on_either_codec(bridge: Bridge) -> None:
    await migrate(bridge, (*MIGRATIONS, "DEFINE TABLE extra"))
    assert await bridge.query("SELECT * FROM extra", {}) == [[]]


def test_a_log_fault_is_told_from_a_refusal() -> None:
    assert classified("The query failed: Log error: No space left").retryable
    assert not classified("Parse error: Unexpected token").retryable
