"""Claude's and Gemini's dialects on a real socket, against the demo model: runs and failures."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from pydantic import SecretStr

from smista.core import errors
from smista.core.history import Call, Message, Role
from smista.core.intents import Effort
from smista.core.model_ref import ProviderDescriptor
from smista.core.prompt import Prompt, Tool
from smista.core.stream import Finish, ReasoningDelta, StreamEvent, Usage
from smista.demo.script import Script, load_script, parse_script
from smista.demo.server import Seen, serve_demo_model
from smista.net import create_client
from smista.providers.anthropic import Anthropic
from smista.providers.gemini import Gemini
from smista.providers.transport import Patience, WireProvider
from tests.providers.chat import calls_of, end_of, text_of, usage_of
from tests.providers.streams import ANTHROPIC, GEMINI

KINDS = [ANTHROPIC, GEMINI]
EDIT = Tool(name="edit_file", description="Edit.", permission="file_write", parameters={})
FILE = Message(uuid="0", role=Role.USER, text="hello.txt:\nHelo, world!", run_id="r")
USER = Message(uuid="1", role=Role.USER, text="fix the typo in @hello.txt", run_id="r")


@asynccontextmanager
async def open_demo(
    kind: str,
    script: Script | None = None,
    *,
    seen: list[Seen] | None = None,
    patience: Patience | None = None,
) -> AsyncGenerator[WireProvider]:
    note = None if seen is None else seen.append
    async with trio.open_nursery() as nursery:
        serve = partial(serve_demo_model, script=script or load_script(), seen=note)
        url = f"http://127.0.0.1:{await nursery.start(serve)}"
        async with create_client(url, local=True) as client:
            yield WireProvider(
                descriptor=ProviderDescriptor(id=kind, display_name=kind),
                dialect=Anthropic(base_url=url) if kind == ANTHROPIC else Gemini(base_url=url),
                client=client,
                limiter=trio.CapacityLimiter(4),
                patience=patience or Patience(),
            )
        nursery.cancel_scope.cancel()


def prompt(*more: Message) -> Prompt:
    return Prompt(
        model="demo",
        system="Be good.",
        messages=(FILE, USER, *more),
        tools=(EDIT,),
        effort=Effort.HIGH,
    )


async def ask(
    provider: WireProvider, asked: Prompt, *, key: SecretStr | None = None
) -> list[StreamEvent]:
    with trio.fail_after(5):
        async with provider.open_stream(asked, key=key) as stream:
            return [event async for event in stream]


async def fault_of(
    provider: WireProvider, *, key: SecretStr | None = None
) -> tuple[errors.ProviderError, list[StreamEvent]]:
    said: list[StreamEvent] = []
    try:
        async with provider.open_stream(prompt(), key=key) as stream:
            async for event in stream:
                said.append(event)  # noqa: PERF401 -- what came before the fault is wanted
    except errors.ProviderError as error:
        return error, said
    raise AssertionError("nothing failed")


def one_rule(say: str, head: str = "") -> Script:
    return parse_script(f"{head}\n[[rules]]\nname = 'x'\nsay = [{say}]")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_with_a_tool_call_goes_through(kind):
    seen: list[Seen] = []
    async with open_demo(kind, seen=seen) as provider:
        first = await ask(provider, prompt(), key=SecretStr("let-me-in"))
        assert any(isinstance(event, ReasoningDelta) for event in first)
        assert end_of(first).finish is Finish.TOOL_CALLS
        assert end_of(first).model == "demo"
        ((call_id, name, arguments),) = calls_of(first)
        wanted = {"path": "hello.txt", "old": "Helo", "new": "Hello"}
        assert (name, json.loads(arguments)) == ("edit_file", wanted)
        call = Call(call_id="c", provider_call_id=call_id, name=name, arguments=arguments)
        said = Message(
            uuid="2",
            role=Role.ASSISTANT,
            text=text_of(first),
            run_id="r",
            calls=(call,),
            provider=kind,
        )
        result = Message(uuid="3", role=Role.TOOL, text="ok", run_id="r", call_id="c")
        second = await ask(provider, prompt(said, result))
    assert text_of(second).startswith('I replaced "Helo" with "Hello"')
    assert end_of(second).finish is Finish.STOP
    header = "x-api-key" if kind == ANTHROPIC else "x-goog-api-key"
    assert seen[0].headers[header] == "let-me-in"
    assert "authorization" not in seen[0].headers
    assert header not in seen[1].headers


@pytest.mark.parametrize("kind", KINDS)
async def test_a_refused_call_is_told_to_the_model_as_failed(kind):
    call = Call(call_id="c", provider_call_id="x", name="edit_file", arguments="{}")
    said = Message(uuid="2", role=Role.ASSISTANT, text="", run_id="r", calls=(call,))
    result = Message(
        uuid="3", role=Role.TOOL, text="no such file", run_id="r", call_id="c", is_error=True
    )
    seen: list[Seen] = []
    async with open_demo(kind, seen=seen) as provider:
        await ask(provider, prompt(said, result))
    assert [(r.tool, r.failed) for r in seen[0].asked.results] == [("edit_file", True)]


@pytest.mark.parametrize("kind", KINDS)
async def test_usage_arrives_as_it_was_declared(kind):
    figures = "input = 100, output = 30, cached = 80, reasoning = 12"
    async with open_demo(kind, one_rule(f"{{ text = 'x' }}, {{ usage = {{ {figures} }} }}")) as it:
        usage = usage_of(await ask(it, prompt()))
    written = 0 if kind == ANTHROPIC else None
    assert usage == Usage(
        input_tokens=100,
        output_tokens=30,
        cached_tokens=80,
        cache_write_tokens=written,
        reasoning_tokens=12,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        (400, errors.ProviderRejected),
        (401, errors.InvalidProviderCredentials),
        (403, errors.ProviderAuthentication),
        (429, errors.ProviderRateLimited),
        (500, errors.ProviderUnavailable),
        (503, errors.ProviderUnavailable),
        (529, errors.ProviderUnavailable),
    ],
)
async def test_a_status_is_an_error_of_its_kind(kind, status, wanted):
    script = one_rule(f"{{ error = {{ status = {status}, message = 'no', retry_after = '7' }} }}")
    async with open_demo(kind, script) as provider:
        fault, said = await fault_of(provider)
    assert type(fault) is wanted
    assert said == []
    assert "no" in fault.message
    assert fault.retry_after == (7 if fault.retryable else None)


async def test_the_wait_named_in_a_body_holds_if_no_header_names_one():
    body = json.dumps(
        {
            "error": {
                "code": 429,
                "status": "RESOURCE_EXHAUSTED",
                "message": "quota",
                "details": [{"retryDelay": "3s"}],
            }
        }
    )
    for more, wanted in (("", 3), (", retry_after = '9'", 9)):
        script = one_rule(f"{{ error = {{ status = 429, body = '{body}'{more} }} }}")
        async with open_demo(GEMINI, script) as provider:
            fault, _ = await fault_of(provider)
        assert fault.retry_after == wanted


@pytest.mark.parametrize("kind", KINDS)
async def test_an_overload_after_some_text_keeps_the_text_and_says_so(kind):
    script = one_rule("{ text = 'half a word' }, { error = { status = 503, message = 'busy' } }")
    async with open_demo(kind, script) as provider:
        fault, said = await fault_of(provider)
    assert isinstance(fault, errors.ProviderUnavailable)
    assert text_of(said) == "half a word"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_connection_cut_in_the_middle_is_a_truncated_stream(kind):
    async with open_demo(kind, one_rule("{ text = 'half' }, { cut = true }")) as provider:
        fault, said = await fault_of(provider)
    assert isinstance(fault, errors.BadStream)
    assert fault.details["kind"] == "truncated_stream"
    assert text_of(said) == "half"


@pytest.mark.parametrize("kind", KINDS)
async def test_silence_ends_and_closes_the_socket(kind):
    seen: list[Seen] = []
    short = Patience(first=2, silence=0.05, total=5)
    script = one_rule("{ text = 'half' }, { hold = true }")
    async with open_demo(kind, script, seen=seen, patience=short) as provider:
        fault, _ = await fault_of(provider)
        with trio.fail_after(2):
            await seen[0].left.wait()
    assert isinstance(fault, errors.ProviderTimeout)
    assert fault.details["kind"] == "stalled"


@pytest.mark.parametrize("kind", KINDS)
async def test_leaving_in_the_middle_closes_the_socket(kind):
    seen: list[Seen] = []
    script = one_rule("{ text = 'half' }, { hold = true }")
    async with open_demo(kind, script, seen=seen) as provider:
        async with provider.open_stream(prompt(), key=None) as stream:
            await anext(stream)
        with trio.fail_after(2):
            await seen[0].left.wait()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_wrong_key_is_named_and_never_quoted(kind):
    key = SecretStr("sk-canary-0123456789")
    script = one_rule("{ text = 'x' }", "api_key = 'right'")
    async with open_demo(kind, script) as provider:
        fault, _ = await fault_of(provider, key=key)
        assert isinstance(fault, errors.InvalidProviderCredentials)
        assert "canary" not in f"{fault} {fault.details}"
        assert text_of(await ask(provider, prompt(), key=SecretStr("right"))) == "x"
