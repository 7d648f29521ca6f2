"""Provider and demo model together: a whole run, and each way the script can make it fail."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from pydantic import SecretStr

from smista.core import errors
from smista.core.history import Call, Message, Role
from smista.core.model_ref import Capabilities, ModelDescriptor
from smista.core.prompt import Prompt, Tool
from smista.core.stream import Finish, ReasoningDelta, StreamEvent, TextDelta, Usage
from smista.demo.script import Script, load_script, parse_script
from smista.demo.server import Seen, serve_demo_model
from smista.ports.provider import Provider
from smista.providers.registry import CompatInstance, open_registry
from tests.providers.chat import calls_of, end_of, text_of, usage_of

NAME = "openai-compat:demo"
EDIT = Tool(name="edit_file", description="Edit.", permission="file_write", parameters={})
USER = Message(uuid="1", role=Role.USER, text="fix the typo in @hello.txt", run_id="r")
FILE = Message(uuid="0", role=Role.USER, text="hello.txt:\nHelo, world!", run_id="r")


@asynccontextmanager
async def open_demo(
    script: Script | None = None, *, seen: list[Seen] | None = None, streaming: bool = True
) -> AsyncGenerator[Provider]:
    model = ModelDescriptor(
        provider=NAME,
        model="demo",
        local=True,
        max_context_tokens=8192,
        capabilities=Capabilities(streaming=streaming, tools=True, system_prompt=True),
    )
    note = None if seen is None else seen.append
    async with trio.open_nursery() as nursery:
        serve = partial(serve_demo_model, script=script or load_script(), seen=note)
        url = f"http://127.0.0.1:{await nursery.start(serve)}/v1"
        instance = CompatInstance(id=NAME, base_url=url, local=True, models=(model,))
        async with open_registry([instance]) as registry:
            provider = registry.provider(NAME)
            assert provider is not None
            yield provider
        nursery.cancel_scope.cancel()


def prompt(*more: Message) -> Prompt:
    return Prompt(model="demo", system="Be good.", messages=(FILE, USER, *more), tools=(EDIT,))


async def ask(
    provider: Provider, asked: Prompt, *, key: SecretStr | None = None
) -> list[StreamEvent]:
    with trio.fail_after(5):
        async with provider.open_stream(asked, key=key) as stream:
            return [event async for event in stream]


async def fault_of(provider: Provider, *, key: SecretStr | None = None) -> errors.ProviderError:
    try:
        await ask(provider, prompt(), key=key)
    except errors.ProviderError as error:
        return error
    raise AssertionError("nothing failed")


def one_rule(say: str, head: str = "") -> Script:
    return parse_script(f"{head}\n[[rules]]\nname = 'x'\nsay = [{say}]")


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_run_with_a_tool_call_goes_through(streaming):
    async with open_demo(streaming=streaming) as provider:
        first = await ask(provider, prompt())
        assert any(isinstance(event, ReasoningDelta) for event in first)
        assert end_of(first).finish is Finish.TOOL_CALLS
        ((call_id, name, arguments),) = calls_of(first)
        assert name == "edit_file"
        call = Call(call_id="c", provider_call_id=call_id, name=name, arguments=arguments)
        said = Message(
            uuid="2",
            role=Role.ASSISTANT,
            text=text_of(first),
            run_id="r",
            calls=(call,),
            provider=NAME,
        )
        done = Message(uuid="3", role=Role.TOOL, text="edited", run_id="r", call_id="c")
        second = await ask(provider, prompt(said, done))
        assert text_of(second).startswith('I replaced "Helo" with "Hello" in hello.txt')
        assert end_of(second).model == "demo"
        refused = Message(
            uuid="3", role=Role.TOOL, text="not now", run_id="r", call_id="c", is_error=True
        )
        third = await ask(provider, prompt(said, refused))
        assert "nothing was changed" in text_of(third)
        assert "not now" in text_of(third)


async def test_the_scripted_usage_arrives():
    script = one_rule("{text='a'},{usage={input=9,output=5,cached=4,reasoning=2}}")
    async with open_demo(script) as provider:
        events = await ask(provider, prompt())
    assert usage_of(events) == Usage(
        input_tokens=9, output_tokens=5, cached_tokens=4, reasoning_tokens=2
    )


@pytest.mark.parametrize(
    ("say", "kind_of_error", "wait"),
    [
        ("{error={status=429, retry_after='2'}}", errors.ProviderRateLimited, 2.0),
        ("{error={status=503, body='<html>'}}", errors.ProviderUnavailable, None),
        ("{error={status=400, message='prompt is too long'}}", errors.ContextLengthExceeded, None),
        ("{text='a'},{error={message='gone'}}", errors.ProviderUnavailable, None),
        ("{text='a'},{cut=true}", errors.BadStream, None),
    ],
)
async def test_each_scripted_failure_is_the_error_it_stands_for(say, kind_of_error, wait):
    async with open_demo(one_rule(say)) as provider:
        fault = await fault_of(provider)
    assert type(fault) is kind_of_error
    assert fault.retry_after == wait


async def test_a_script_may_want_a_key():
    async with open_demo(one_rule("{text='a'}", head="api_key = 'right'")) as provider:
        assert text_of(await ask(provider, prompt(), key=SecretStr("right"))) == "a"
        for wrong in (None, SecretStr("wrong-key")):
            fault = await fault_of(provider, key=wrong)
            assert isinstance(fault, errors.InvalidProviderCredentials)
            assert "wrong-key" not in fault.message


async def test_leaving_a_held_answer_is_seen_by_the_model():
    seen: list[Seen] = []
    async with open_demo(one_rule("{text='a'},{hold=true}"), seen=seen) as provider:
        async with provider.open_stream(prompt(), key=None) as stream:
            assert await anext(stream) == TextDelta(text="a")
        with trio.fail_after(5):
            await seen[0].left.wait()
