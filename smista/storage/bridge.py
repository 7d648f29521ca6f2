"""The SurrealDB SDK behind Trio: one asyncio thread that owns the handle, and the way to it.

Knows no tables and no rows. Only this module and codec.py touch the SDK, and only once a store is
opened: importing the SDK takes longer than the rest of the start. The blocking client is not used,
for it holds the interpreter lock for whole calls, fsync included.
"""

import asyncio
import importlib
import logging
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar, cast

import outcome
import trio
from pydantic import SecretStr

from smista.core.errors import LeaseLost, StorageError, StorageUnavailable
from smista.storage import codec

_log = logging.getLogger("smista.storage")

_HTTP_CLIENTS: Final = ("aiohttp", "requests")
_REMOTE_TIMEOUT: Final = 30.0
_NOT_THE_CAUSE: Final = ("not executed due to a failed transaction", "Cannot COMMIT")
_ALREADY: Final = ("already exists", "already contains")
LEASE_LOST: Final = "another router took the lease"
"""What a transaction throws whose lease is not the session's any more."""
_LOG_FAULTS: Final = ("Log error", "IO error", "I/O error")

T = TypeVar("T")


class RowExists(StorageError):
    """An insert met a row with its id, or its unique key."""


class LogFailed(StorageUnavailable):
    """The engine could not write its log; its handle is of no use any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user of a remote server."""

    username: str
    password: SecretStr


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which engine, and which database in it. *url*: mem://, surrealkv://path or ws://host."""

    url: str
    namespace: str
    database: str
    login: Login | None = None

    @property
    def remote(self) -> bool:
        return self.url.startswith(("ws://", "wss://"))


class Handle(Protocol):
    """An open connection, used in the asyncio thread only."""

    async def run(self, text: str, values: Mapping[str, Any]) -> Any:
        """Return the answer as the engine gives it; raises StorageError."""
        ...

    async def close(self) -> None: ...


class Bridge:
    """Owns the thread and, in it, the handle.

    Calls are not abortable: cutting one short would leave open if it committed. Embedded calls end
    by themselves, remote ones have a timeout.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._handle: Handle | None = None
        self._calls: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="surrealdb", daemon=True
        )

    async def open(self) -> None:
        """Raises StorageUnavailable; the thread is gone then."""
        self._thread.start()
        try:
            await self._in_thread(self._connect)
        except BaseException:
            await self._end_thread()
            raise

    async def reopen(self) -> None:
        """Drop the handle once nobody uses it, and connect anew; raises StorageUnavailable."""
        await self._in_thread(self._disconnect)
        await self._in_thread(self._connect)

    async def close(self) -> None:
        """Return once the engine has let go of its files."""
        with trio.CancelScope(shield=True):
            await self._in_thread(self._disconnect)
            await self._end_thread()

    async def query(self, text: str, values: Mapping[str, Any]) -> list[Any]:
        """Return one result for each statement; raises StorageError if any failed."""
        await trio.lowlevel.checkpoint_if_cancelled()
        answer = await self._in_thread(partial(self._run, text, values))
        return _results(answer)

    async def _connect(self) -> None:
        opening = _open_remote if self._target.remote else _open_embedded
        try:
            self._handle = await opening(self._target)
        except (RuntimeError, ValueError, OSError, TimeoutError) as error:
            raise StorageUnavailable(f"the store cannot be opened: {error}") from error

    async def _disconnect(self) -> None:
        handle, self._handle = self._handle, None
        # Two handles on one path do not see each other: the old one must be gone first.
        if self._calls:
            await asyncio.wait(self._calls)
        if handle is not None:
            await handle.close()

    async def _run(self, text: str, values: Mapping[str, Any]) -> Any:
        if self._handle is None:
            raise StorageUnavailable("the store is being reopened; try again shortly")
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._calls.add(task)
        try:
            return await self._handle.run(text, values)
        finally:
            self._calls.discard(task)

    async def _in_thread(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        token, task = trio.lowlevel.current_trio_token(), trio.lowlevel.current_task()

        def begin() -> None:
            work = self._loop.create_task(call())
            work.add_done_callback(partial(_resume, token, task))

        self._loop.call_soon_threadsafe(begin)
        return cast("T", await trio.lowlevel.wait_task_rescheduled(_not_abortable))

    async def _end_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._thread.join)
        self._loop.close()


def _not_abortable(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.FAILED


def _resume(
    token: trio.lowlevel.TrioToken, task: trio.lowlevel.Task, work: asyncio.Task[Any]
) -> None:
    result = outcome.capture(work.result)
    # Nobody is left to be told once Trio has ended.
    with suppress(trio.RunFinishedError):
        token.run_sync_soon(trio.lowlevel.reschedule, task, result)


class _Embedded:
    """The engine in this process. Dropping the object is what closes it."""

    def __init__(self, connection: Any) -> None:
        self._connection: Any = connection
        self._compiled = hasattr(connection, "_db") and codec.agrees_with_sdk()
        if not self._compiled:
            _log.warning("using the SDK's own codec: storage costs about twice as much")

    async def run(self, text: str, values: Mapping[str, Any]) -> Any:
        try:
            if self._compiled:
                request = codec.encode(text, values)
                return codec.decode(await self._connection._db.execute(request))
            return codec.from_sdk(await self._connection.query_raw(text, codec.to_sdk(values)))
        except Exception as error:
            # Parse errors are RuntimeErrors, bad values ValueErrors, the rest is the SDK's.
            raise classified(str(error)) from error

    async def close(self) -> None:
        self._connection = None


def _import_sdk() -> Any:
    """Return the SDK, loaded without the clients of its HTTP connections, which are never made.

    They would add 150 ms to a start and 15 MiB to a router that never calls them.
    """
    absent = [name for name in _HTTP_CLIENTS if name not in sys.modules]
    sys.modules.update({name: ModuleType(name) for name in absent})
    try:
        return importlib.import_module("surrealdb")
    except AttributeError:
        _log.info("this version of the SDK needs its HTTP clients")
    finally:
        for name in absent:
            sys.modules.pop(name, None)
    return importlib.import_module("surrealdb")


async def _open_embedded(target: Target) -> Handle:
    connection: Any = _import_sdk().AsyncSurreal(target.url)
    await connection.use(target.namespace, target.database)
    return _Embedded(connection)


class _Remote:
    """A server. The SDK never reconnects and raises foreign errors, so this does and maps them."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._connection: Any = None

    async def run(self, text: str, values: Mapping[str, Any]) -> Any:
        try:
            async with asyncio.timeout(_REMOTE_TIMEOUT):
                connection = await self.connected()
                return codec.from_sdk(await connection.query_raw(text, codec.to_sdk(values)))
        except asyncio.CancelledError as error:
            # The SDK cancels the calls in flight when the line drops; nobody else cancels them.
            self._connection = None
            raise StorageUnavailable("the connection to the store was lost") from error
        except Exception as error:
            if str(error).startswith("There was a problem with the database"):
                raise classified(str(error)) from error
            self._connection = None
            raise _out_of_reach(error) from error

    async def connected(self) -> Any:
        if self._connection is None:
            self._connection = await _remote_connection(self._target)
        return self._connection

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # A line that is already down cannot be closed, and need not be.
            with suppress(OSError, RuntimeError, KeyError):
                await connection.close()


async def _remote_connection(target: Target) -> Any:
    connection: Any = _import_sdk().AsyncSurreal(target.url)
    await connection.connect()
    if target.login is not None:
        password = target.login.password.get_secret_value()
        await connection.signin({"username": target.login.username, "password": password})
    await connection.use(target.namespace, target.database)
    return connection


def _out_of_reach(error: Exception) -> StorageUnavailable:
    return StorageUnavailable(f"the store is out of reach: {type(error).__name__}")


async def _open_remote(target: Target) -> Handle:
    remote = _Remote(target)
    try:
        async with asyncio.timeout(_REMOTE_TIMEOUT):
            await remote.connected()
    except Exception as error:
        # The text of a refused sign-in may quote what was sent.
        raise _out_of_reach(error) from None
    return remote


def _results(answer: Any) -> list[Any]:
    """Return the result of each statement; raises what made the first of them fail."""
    if "result" not in answer:
        raise classified(str(answer.get("error", answer)))
    statements: Sequence[dict[str, Any]] = answer["result"]
    failures = [str(each["result"]) for each in statements if each["status"] != "OK"]
    if failures:
        raise classified(_cause(failures))
    return [each["result"] for each in statements]


def _cause(failures: Sequence[str]) -> str:
    """Return what went wrong: in a failed transaction most statements only say "not executed"."""
    faults = (text for text in failures if any(mark in text for mark in _LOG_FAULTS))
    causes = (text for text in failures if not any(mark in text for mark in _NOT_THE_CAUSE))
    return next(faults, next(causes, failures[0]))


def classified(text: str) -> StorageError:
    """Return the error that the engine means by *text*: it has no codes."""
    if any(mark in text for mark in _LOG_FAULTS):
        return LogFailed("the store cannot write its log; is the disk full?")
    if "can be retried" in text:
        return StorageUnavailable("another writer came between; try again")
    if LEASE_LOST in text:
        return LeaseLost("another router has taken this session over; send the message again")
    if any(mark in text for mark in _ALREADY):
        return RowExists("a row with this id or key exists already")
    return StorageError(f"the store refused a statement: {text[:200]}")
