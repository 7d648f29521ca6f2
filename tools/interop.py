"""Lets our adapters talk to model servers that others wrote, on this machine.

LiteLLM's proxy answers with words that its settings hold, and hands on what the demo model says;
llama.cpp's server runs a small random model (`tiny_llama.py`), and speaks the wires of OpenAI's
Responses and of Anthropic too. Both are installed into a temporary folder and gone afterwards.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio
from pydantic import SecretStr

from smista.core.errors import (
    ContextLengthExceeded,
    InvalidProviderCredentials,
    ModelNotFound,
    ProviderError,
    ProviderRateLimited,
    ProviderUnavailable,
)
from smista.core.history import Call, Message, Role
from smista.core.model_ref import Capabilities, ModelDescriptor
from smista.core.prompt import Prompt, Tool
from smista.core.stream import Finish, StreamEnd, StreamEvent, TextDelta, ToolCallEnded, Usage
from smista.core.tools import BY_NAME, TOOLS
from smista.demo.script import parse_script
from smista.demo.server import serve_demo_model
from smista.providers.registry import CompatInstance, Endpoints, Registry, open_registry

# Exact versions: what is installed here runs with the rights of whoever calls this.
PARTIES: Final = {
    "LiteLLM": ("litellm[proxy]==1.108.7",),
    "llama.cpp": ("xllamacpp==2026.10.11549", "gguf==0.19.0"),
}
KEY: Final = "sk-of-the-right-one"
RIGHT: Final = SecretStr(KEY)
PATIENCE: Final = 120.0
"""Seconds for a server to start, and for one question."""

SPOKEN: Final = "perché 語 🦊 and so on"
CALLS: Final = [
    {
        "id": f"call_{name}",
        "type": "function",
        "function": {"name": "read_file", "arguments": json.dumps({"path": name})},
    }
    for name in ("a.txt", "b.txt")
]
DEMO: Final = """
[[rules]]
name = "the results came"
when = { results = true }
say = [{ text = "I read: {result}" }]

[[rules]]
name = "two calls"
say = [
    { reasoning = "Hm. " },
    { text = "Let me look. " },
    { tool = "read_file", arguments = { path = "a.txt" } },
    { tool = "list_files", arguments = {} },
]
"""
TEXT: Final = "openai-compat:text"
TOOLED: Final = "openai-compat:tooled"


class InteropFailed(Exception):
    """A server and an adapter did not understand each other; the text says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One answer as our events."""

    events: tuple[StreamEvent, ...]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def calls(self) -> list[ToolCallEnded]:
        return [event for event in self.events if isinstance(event, ToolCallEnded)]

    @property
    def usage(self) -> Usage:
        return [event for event in self.events if isinstance(event, Usage)][-1]

    @property
    def finish(self) -> Finish:
        (end,) = (event for event in self.events if isinstance(event, StreamEnd))
        return end.finish


def main() -> int:
    failed = 0
    try:
        with tempfile.TemporaryDirectory(prefix="smista-interop-") as folder:
            trio.run(talk_to_all, Path(folder))
    except* InteropFailed as failures:
        failed = 1
        traceback.print_exception(failures)
    return failed


async def talk_to_all(folder: Path) -> None:
    for name, packages in PARTIES.items():
        print(f"installing {' and '.join(packages)}", flush=True)
        await install(folder / name, packages)
    await talk_to_litellm(folder)
    await talk_to_llama(folder)


async def install(folder: Path, packages: tuple[str, ...]) -> None:
    """Make an environment in *folder* that holds *packages*."""
    await trio.run_process([sys.executable, "-m", "venv", str(folder)])
    pip = (python_of(folder), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    await trio.run_process([*pip, *packages])


def python_of(folder: Path) -> str:
    return str(folder / "bin" / "python")


async def talk_to_litellm(folder: Path) -> None:
    async with trio.open_nursery() as nursery:
        script = parse_script(DEMO)
        demo = await nursery.start(partial(serve_demo_model, script=script))
        settings = folder / "litellm.json"
        settings.write_text(json.dumps(litellm_settings(demo), ensure_ascii=False), "utf-8")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [str(folder / "LiteLLM" / "bin" / "litellm"), "--config", str(settings)]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        async with open_server(command, ready="Uvicorn running on"):
            await check_litellm(f"http://127.0.0.1:{port}/v1")
        nursery.cancel_scope.cancel()


def litellm_settings(demo: int) -> dict[str, Any]:
    """Return the proxy's settings: models that answer from here, and one behind the proxy."""
    answers: dict[str, dict[str, Any]] = {
        "words": {"mock_response": SPOKEN},
        "calls": {"mock_response": "", "mock_tool_calls": CALLS},
        "busy": {"mock_response": "litellm.RateLimitError"},
        "full": {"mock_response": "litellm.ContextWindowExceededError"},
        "broken": {"mock_response": "litellm.InternalServerError"},
        "relayed": {"api_base": f"http://127.0.0.1:{demo}/v1"},
    }
    models = [
        {"model_name": name, "litellm_params": {"model": "openai/demo", "api_key": "none", **more}}
        for name, more in answers.items()
    ]
    return {
        "model_list": models,
        "general_settings": {"master_key": KEY},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        "litellm_settings": {"telemetry": False},
    }


async def check_litellm(url: str) -> None:
    able = {"calls": Capabilities(tools=True, system_prompt=True)}
    names = ("words", "busy", "full", "broken", "relayed", "calls", "missing")
    async with open_registry([instance(TEXT, url, names, able)]) as registry:
        ask = partial(hear, registry, TEXT)
        said = await ask("words")
        require(said.text == SPOKEN and said.finish is Finish.STOP, "the words", said)
        require(bool(said.usage.output_tokens), "their count", said)
        report("LiteLLM", "text and usage", f"{said.text!r}, {counted(said)}")
        said = await ask("calls")
        told = [json.loads(call.arguments)["path"] for call in said.calls]
        require(told == ["a.txt", "b.txt"] and said.finish is Finish.TOOL_CALLS, "calls", said)
        report("LiteLLM", "two calls in a whole answer", str(told))
        said = await check_round(registry, TEXT, "relayed")
        report("LiteLLM", "two calls as a stream, and their results", repr(said.text))
        await refused(ask, "LiteLLM", "busy", ProviderRateLimited)
        await refused(ask, "LiteLLM", "full", ContextLengthExceeded)
        await refused(ask, "LiteLLM", "broken", ProviderUnavailable)
        await refused(ask, "LiteLLM", "missing", ModelNotFound)
        # Without a database it has no word for a wrong key; that one is asked of llama.cpp.


async def talk_to_llama(folder: Path) -> None:
    program = Path(__file__).with_name("tiny_llama.py")
    start = [python_of(folder / "llama.cpp"), "-P", str(program)]
    words, tools = ([*start, str(folder / f"{w}.gguf"), KEY, w] for w in ("text", "tools"))
    async with (
        open_server(words, ready="http://") as text_url,
        open_server(tools, ready="http://") as tools_url,
    ):
        await check_text(text_url)
        await check_tools(tools_url)


async def check_text(url: str) -> None:
    lab = instance(TEXT, f"{url}/v1", ("tiny",))
    async with open_registry([lab], endpoints=all_at(url)) as registry:
        for provider in (TEXT, "openai", "anthropic"):
            said = await hear(registry, provider, "tiny", limit=40, tools=())
            # Its Responses end with "completed" however they end; the others tell a cut one.
            wanted = Finish.STOP if provider == "openai" else Finish.LENGTH
            require(said.finish is wanted and said.text != "", "a cut answer", said)
            require(said.usage.output_tokens == 40, "its count", said)
            report("llama.cpp", f"text and usage, as {provider}", counted(said))
            ask = partial(hear, registry, provider)
            longer = partial(ask, prompt="word " * 5000)
            await refused(longer, f"llama.cpp as {provider}", "tiny", ContextLengthExceeded)
            wrong = partial(ask, key=SecretStr("sk-wrong"))
            await refused(wrong, f"llama.cpp as {provider}", "tiny", InvalidProviderCredentials)


async def check_tools(url: str) -> None:
    lab = instance(TOOLED, f"{url}/v1", ("tiny",))
    async with open_registry([lab], endpoints=all_at(url)) as registry:
        for provider in (TOOLED, "openai", "anthropic"):
            said = await check_round(registry, provider, "tiny")
            report("llama.cpp", f"a call, its result, the next, as {provider}", told(said))


async def check_round(registry: Registry, provider: str, model: str) -> Heard:
    """Ask for calls, give them results, and return what is said then."""
    first = await hear(registry, provider, model)
    require(first.calls != [] and first.finish is Finish.TOOL_CALLS, "calls", first)
    for call in first.calls:
        require(call.name in BY_NAME and is_object(call.arguments), "a call of ours", first)
    calls = tuple(
        Call(call_id=f"c{at}", provider_call_id=call.id, name=call.name, arguments=call.arguments)
        for at, call in enumerate(first.calls)
    )
    results = (message(Role.TOOL, f"result {call.call_id}", call_id=call.call_id) for call in calls)
    asked = message(Role.ASSISTANT, first.text, calls=calls, provider=provider, model=model)
    return await hear(registry, provider, model, history=(asked, *results))


async def hear(
    registry: Registry,
    provider_id: str,
    model: str,
    *,
    key: SecretStr = RIGHT,
    prompt: str = "what is in here?",
    limit: int = 1000,
    history: tuple[Message, ...] = (),
    tools: tuple[Tool, ...] = TOOLS,
) -> Heard:
    """Return all that *model* answers. Raises ProviderError."""
    provider = registry.provider(provider_id)
    if provider is None:
        raise InteropFailed(f"the registry has no {provider_id}")
    asked = Prompt(
        model=model,
        system="Be brief.",
        messages=(message(Role.USER, prompt), *history),
        tools=tools,
        max_output_tokens=limit,
    )
    with trio.fail_after(PATIENCE):
        async with provider.open_stream(asked, key=key) as stream:
            return Heard(events=tuple([event async for event in stream]))


async def refused(
    ask: Callable[[str], Awaitable[Heard]], party: str, model: str, wanted: type[ProviderError]
) -> None:
    try:
        said = await ask(model)
    except ProviderError as error:
        if type(error) is not wanted:
            raise InteropFailed(f"{party}: {wanted.__name__} was due, not {error!r}") from error
        if KEY in str(error):
            raise InteropFailed(f"{party}: the error quotes the key") from error
        report(party, wanted.__name__, error.message)
    else:
        raise InteropFailed(f"{party}: {wanted.__name__} was due, but it said {said.text!r}")


def instance(
    name: str, url: str, models: tuple[str, ...], able: dict[str, Capabilities] | None = None
) -> CompatInstance:
    usual = Capabilities(streaming=True, tools=True, system_prompt=True, reasoning=True)
    declared = tuple(
        ModelDescriptor(
            provider=name,
            model=model,
            local=True,
            max_context_tokens=8192,
            capabilities=(able or {}).get(model, usual),
        )
        for model in models
    )
    return CompatInstance(id=name, base_url=url, local=True, models=declared)


def all_at(url: str) -> Endpoints:
    return Endpoints(anthropic=url, openai=f"{url}/v1")


def message(role: Role, text: str, **more: Any) -> Message:
    return Message(uuid="u", role=role, text=text, run_id="r", **more)


def is_object(written: str) -> bool:
    return isinstance(json.loads(written or "{}"), dict)


def counted(said: Heard) -> str:
    return f"{said.usage.input_tokens} tokens in, {said.usage.output_tokens} out"


def told(said: Heard) -> str:
    return ", ".join(f"{call.name} {call.arguments}" for call in said.calls) or repr(said.text)


def require(holds: bool, what: str, said: Heard) -> None:
    if not holds:
        raise InteropFailed(f"{what}: {said.events}")


def report(party: str, what: str, seen: str) -> None:
    print(f"ok  {party}: {what}: {' '.join(seen.split())[:160]}", flush=True)


@asynccontextmanager
async def open_server(command: list[str], *, ready: str) -> AsyncGenerator[str]:
    """Run *command* and yield the line in which it says *ready*; stop it on the way out."""
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONUNBUFFERED": "1"}
    process = await trio.lowlevel.open_process(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
    )
    output = process.stdout
    assert output is not None
    try:
        with trio.fail_after(PATIENCE):
            line = await find_line(output, ready)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drain, output)
            yield line
            nursery.cancel_scope.cancel()
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def find_line(output: trio.abc.ReceiveStream, wanted: str) -> str:
    said = b""
    async for piece in output:
        said += piece
        for line in said.split(b"\n")[:-1]:
            if wanted.encode() in line:
                text = line.decode("utf-8", "replace")
                return text[text.index(wanted) :].strip()
    raise InteropFailed(f"the server left: {said.decode('utf-8', 'replace')[-2000:]}")


async def drain(output: trio.abc.ReceiveStream) -> None:
    async for _piece in output:
        pass


if __name__ == "__main__":
    sys.exit(main())
