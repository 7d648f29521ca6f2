"""How fast each wire is decoded, and what providers cost: memory, connections, cancels."""

import gc
import resource
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio
from pydantic import SecretStr

from bench.figures import Figure
from smista.core.history import Message, Role
from smista.core.prompt import Prompt
from smista.demo import chat_completions, generate_content, messages, ollama_chat, responses
from smista.demo.asked import Asked
from smista.demo.formats import Format
from smista.demo.script import Script, Text, Tokens, parse_script
from smista.demo.server import Seen, serve_demo_model
from smista.ports.provider import Provider
from smista.providers.anthropic import Anthropic
from smista.providers.compatible import Compatible
from smista.providers.gemini import Gemini
from smista.providers.masking import create_mask
from smista.providers.ollama import Ollama
from smista.providers.openai import OpenAI
from smista.providers.registry import Endpoints, open_registry
from smista.providers.wire import Caps, Dialect

DELTAS: Final = 4000
ROUNDS: Final = 5
CALLS: Final = 1000
BREAKS: Final = 200
STREAM_BYTES: Final = 100 * 1024 * 1024
_PIECE: Final = 16 * 1024
_CAPS: Final = Caps(answer_bytes=4 * STREAM_BYTES)
_PROMPT: Final = Prompt(
    model="demo",
    system="",
    messages=(Message(uuid="1", role=Role.USER, text="go", run_id="r"),),
)
_WIRES: Final[tuple[tuple[str, Callable[[], Dialect], Format], ...]] = (
    ("Anthropic", lambda: Anthropic(caps=_CAPS), messages),
    ("Gemini", lambda: Gemini(caps=_CAPS), generate_content),
    ("Ollama", lambda: Ollama(caps=_CAPS), ollama_chat),
    ("OpenAI", lambda: OpenAI(caps=_CAPS), responses),
    (
        "compatible",
        lambda: Compatible(provider="c", base_url="http://c", models={}, caps=_CAPS),
        chat_completions,
    ),
)
_SCRIPT: Final = """
[[rules]]
name = "hold"
when = { user = 'hold' }
say = [{ text = "I begin" }, { hold = true }]

[[rules]]
name = "go"
say = [{ text = "one two three four five six" }]
"""


async def measure() -> list[Figure]:
    """Return the figures of the wires, then those of whole calls over a real socket."""
    figures = [_decoding(name, create(), wire) for name, create, wire in _WIRES]
    figures.append(_memory())
    script = parse_script(_SCRIPT)
    async with _open_demo(script) as (port, seen), _open_openai(port) as provider:
        figures.append(await _cancelling(provider, seen))
    async with (
        _open_demo(script) as (port, _),
        _open_counter(port) as (front, connections),
        _open_openai(front) as provider,
    ):
        figures.append(await _reuse(provider, connections))
    return figures


def _stream(wire: Format, deltas: int) -> bytes:
    asked = Asked(model="demo", user="go", texts=("go",), digest="0" * 16)
    tokens = Tokens(input=1, output=1)
    writer = wire.create_writer(asked, tokens)
    said = writer.step(Text(text="word " * deltas, words=1))
    return b"".join((writer.begin(), *said, writer.end(tokens)))


def _decoding(name: str, dialect: Dialect, wire: Format) -> Figure:
    raw = _stream(wire, DELTAS)
    pieces = [raw[at : at + _PIECE] for at in range(0, len(raw), _PIECE)]
    samples: list[float] = []
    for _ in range(ROUNDS):
        decoder = dialect.decoder(dialect.request(_PROMPT), create_mask(None))
        begun = time.process_time()
        count = sum(len(decoder.feed(piece)) for piece in pieces) + len(decoder.close())
        samples.append(count / (time.process_time() - begun))
        if count < DELTAS or not decoder.done:
            raise RuntimeError(f"{name} made {count} events of {DELTAS} deltas")
    return Figure(name=f"decoding, {name}", samples=samples, unit="events/s", at_least=20_000)


def _memory() -> Figure:
    """Return by how much the process grew while it decoded a long stream."""
    dialect = OpenAI(caps=_CAPS)
    decoder = dialect.decoder(dialect.request(_PROMPT), create_mask(None))
    for piece in _endless(STREAM_BYTES // 20):
        decoder.feed(piece)
    gc.collect()
    before = _resident()
    for piece in _endless(STREAM_BYTES):
        decoder.feed(piece)
    grown = _resident() - before
    if decoder.fault is not None:
        raise RuntimeError(f"the long stream is faulty: {decoder.fault}")
    return Figure(name="growth over a stream of 100 MB", samples=[grown], unit="MB", at_most=2)


def _endless(size: int) -> Iterator[bytes]:
    event = _stream(responses, 1).split(b"\n\n")[4] + b"\n\n"
    piece = event * (_PIECE // len(event))
    for _ in range(size // len(piece)):
        yield piece


def _resident() -> float:
    """Return the process's memory in MB, as it is now."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 1024 / 1024


@asynccontextmanager
async def _open_demo(script: Script) -> AsyncGenerator[tuple[int, list[Seen]]]:
    """Yield the port of a demo model, and the list of what comes in there."""
    seen: list[Seen] = []
    async with trio.open_nursery() as nursery:
        port = await nursery.start(partial(serve_demo_model, script=script, seen=seen.append))
        yield port, seen
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _open_openai(port: int) -> AsyncGenerator[Provider]:
    """Yield OpenAI's provider, which asks whoever listens on *port*."""
    url = f"http://127.0.0.1:{port}/v1"
    async with open_registry([], endpoints=Endpoints(openai=url)) as registry:
        provider = registry.provider("openai")
        if provider is None:
            raise RuntimeError("the registry has lost OpenAI")
        yield provider


@asynccontextmanager
async def _open_counter(port: int) -> AsyncGenerator[tuple[int, Callable[[], int]]]:
    """Yield a port that leads to *port*, and how many connections were accepted there."""
    accepted = 0

    async def relay(stream: trio.SocketStream) -> None:
        nonlocal accepted
        accepted += 1
        async with (
            stream,
            await trio.open_tcp_stream("127.0.0.1", port) as model,
            trio.open_nursery() as ways,
        ):
            ways.start_soon(_copy, stream, model, ways.cancel_scope)
            ways.start_soon(_copy, model, stream, ways.cancel_scope)

    async with trio.open_nursery() as nursery:
        relays = partial(trio.serve_tcp, relay, 0, host="127.0.0.1")
        listeners: list[trio.SocketListener] = await nursery.start(relays)
        yield listeners[0].socket.getsockname()[1], lambda: accepted
        nursery.cancel_scope.cancel()


async def _copy(
    source: trio.SocketStream, sink: trio.SocketStream, scope: trio.CancelScope
) -> None:
    try:
        async for part in source:
            await sink.send_all(part)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    scope.cancel()


async def _reuse(provider: Provider, connections: Callable[[], int]) -> Figure:
    for _ in range(CALLS):
        async with provider.open_stream(_PROMPT, key=SecretStr("k")) as stream:
            async for _event in stream:
                pass
    name = f"connections for {CALLS:,} calls"
    return Figure(name=name, samples=[connections()], unit="", at_most=2)


async def _cancelling(provider: Provider, seen: list[Seen]) -> Figure:
    """Return milliseconds from leaving a held answer until its model knows."""
    held = Prompt(
        model="demo",
        system="",
        messages=(Message(uuid="1", role=Role.USER, text="hold", run_id="r"),),
    )
    waits: list[float] = []
    for _ in range(BREAKS):
        async with provider.open_stream(held, key=None) as stream:
            await anext(aiter(stream))
            begun = time.perf_counter()
        await seen[-1].left.wait()
        waits.append((time.perf_counter() - begun) * 1000)
    return Figure(name="leaving an answer to model knows", samples=waits, p99_at_most=5)
