"""A store behind a socket, tried against a stand-in: the engine of the wheel behind `/rpc`.

It shows framing, statements, errors and reconnecting; not sign-in, TLS or a server's own checks.
"""

from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest
from pydantic import SecretStr

from smista.core.errors import StorageError, StorageUnavailable
from smista.core.ids import new_uuid7
from smista.core.records import RunState, Session, TurnRecord, User
from smista.storage.bridge import Login
from smista.storage.surreal import open_surreal
from tests.storage.serving import serving

AT = datetime(2026, 11, 30, tzinfo=UTC)
USER = User(id=new_uuid7(1, 1), api_key_hash="h", created_at=AT, updated_at=AT)
ANOTHERS = {
    "started_at": AT,
    "lease": {"router": "another", "number": 3, "until": datetime(2999, 1, 1, tzinfo=UTC)},
}


async def test_the_journal_works_over_a_socket() -> None:
    session = Session(id=new_uuid7(2, 1), user_id=USER.id, title="t", created_at=AT, updated_at=AT)
    with serving() as port:
        async with open_surreal(f"ws://127.0.0.1:{port}/rpc") as journal:
            await journal.add_user(USER)
            await journal.create_session(session)
            run = RunState(run_id="r", turn=1, updated_at=AT, active=ANOTHERS, lease=3)
            record = TurnRecord(session_id=session.id, user_id=USER.id, run=run, at=AT)
            await journal.record_turn(record)
            assert await journal.unlock(router="ours") == 0
            assert (await journal.load(session)).run == run
            with pytest.raises(StorageError) as caught:
                await journal.record_turn(
                    TurnRecord(session_id=new_uuid7(9, 9), user_id=USER.id, run=run, at=AT)
                )
            assert not caught.value.retryable
        async with open_surreal(f"ws://127.0.0.1:{port}/rpc") as journal:
            assert await journal.user(USER.id) == USER


async def test_a_lost_server_is_unavailable_until_it_is_back() -> None:
    async with AsyncExitStack() as stack:
        with serving() as port:
            url = f"ws://127.0.0.1:{port}/rpc"
            journal = await stack.enter_async_context(open_surreal(url))
            await journal.add_user(USER)
        with pytest.raises(StorageUnavailable):
            await journal.user(USER.id)
        with pytest.raises(StorageUnavailable):
            await journal.add_user(USER)
        stack.enter_context(serving(port))
        await journal.add_user(USER)
        assert await journal.user(USER.id) == USER


async def test_a_server_out_of_reach_is_told_without_secrets() -> None:
    with serving() as port:
        pass
    login = Login(username="root", password=SecretStr("hunter2"))
    with pytest.raises(StorageUnavailable) as caught:
        async with open_surreal(f"ws://127.0.0.1:{port}/rpc", login=login):
            raise AssertionError("there is no server")
    assert "hunter2" not in repr(caught.value) + repr(login)


async def test_an_unknown_kind_of_store_is_refused() -> None:
    with pytest.raises(StorageError, match="no store"):
        async with open_surreal("http://127.0.0.1/"):
            raise AssertionError("opened what is no store")
