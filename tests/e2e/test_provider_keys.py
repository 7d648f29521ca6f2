"""One router, all five wires, a key for each: afterwards the keys are searched for everywhere."""

import json
import logging
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

import actors.daemon
from actors.daemon import serve
from smista.demo.script import parse_script
from smista.demo.server import Seen, serve_demo_model
from smista.local.router_config import RouterConfig
from smista.providers.registry import Endpoints
from tests.e2e.house import PATIENCE, free_port

PROVIDERS = ("anthropic", "gemini", "ollama", "openai", "openai-compat:lab")
KEYS = {name: f"canary-{name[-6:]}-{at}c1f9b7d2e5a8" for at, name in enumerate(PROVIDERS)}
# Of OpenAI only what bears the name of a chat model is listed.
MODELS = {name: "gpt-9" if name == "openai" else f"model-{name[-6:]}" for name in PROVIDERS}
MARK = "mark-of-a-prompt-90b1"
HEADERS = {"x-api-key": "", "x-goog-api-key": "", "authorization": "Bearer "}


def script() -> str:
    """Return a script whose errors quote the key of the provider that is asked."""
    rules = [
        f"""
[[rules]]
name = "refuse {name}"
when = {{ user = 'refuse', model = "{MODELS[name]}" }}
say = [{{ error = {{ status = 401, message = "the key {key} is not known" }} }}]

[[rules]]
name = "break down with {name}"
when = {{ user = 'break', model = "{MODELS[name]}" }}
say = [{{ text = "half a " }}, {{ error = {{ status = 500, message = "with {key} it ended" }} }}]
"""
        for name, key in KEYS.items()
    ]
    models = json.dumps(sorted(MODELS.values()))
    return f"""models = {models}
{"".join(rules)}
[[rules]]
name = "the result came"
when = {{ results = true }}
say = [{{ reasoning = "Hm. " }}, {{ text = "I read it." }}]

[[rules]]
name = "look"
say = [{{ tool = "read_file", arguments = {{ path = "a.txt" }} }}]
"""


def config(folder: Path, url: str) -> RouterConfig:
    model = {"name": MODELS["openai-compat:lab"], "auth": "api_key", "max_context_tokens": 32_768}
    lab = {"base_url": f"{url}/v1", "local": False, "models": [model]}
    return RouterConfig.model_validate(
        {
            "port": free_port(),
            "storage": {"path": str(folder / "db")},
            "providers": {"openai-compat:lab": lab},
        }
    )


def asked(provider: str, text: str) -> dict[str, Any]:
    default = {"model": f"{provider}/{MODELS[provider]}"}
    return {
        "input": {"text": f"{text} {MARK}"},
        "workspace": {"root": "/p", "referenced_paths": []},
        "policy": {
            "version": 1,
            "source": "merged",
            "classification": {},
            "routing": {"default": default},
            "tools": {"permissions": {"file_read": "allow"}},
            "privacy": {"remote": {"mode": "allow"}},
        },
        "local_preferences": {"auto_apply": False, "local_only": False, "no_network": False},
        "attachments": {"files": [], "instructions": []},
    }


class Caller:
    """Talks to the router as clients do; *heard* is all that came back."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self.heard: list[str] = []
        self._keys = {
            f"X-Smista-Provider-{name.removeprefix('openai-compat:')}-Api-Key": key
            for name, key in KEYS.items()
        }

    async def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        answer = await self._http.request(method, path, **more)
        self.heard.append(f"{answer.headers}\n{answer.text}")
        return answer

    async def turn(self, session: str, way: str, body: Mapping[str, Any], *, stream: bool) -> str:
        headers = {**self._keys, "Accept": "text/event-stream" if stream else "application/json"}
        answer = await self.send("POST", f"/sessions/{session}/{way}", json=body, headers=headers)
        return answer.text

    async def run_all(self) -> None:
        for provider in PROVIDERS:
            made = await self.send("POST", "/sessions", json={"title": provider})
            session = made.json()["session"]["id"]
            said = await self.turn(session, "execute", asked(provider, "look"), stream=False)
            assert "tool_requests" in said, said
            requests = json.loads(said)["data"]["tool_requests"]
            results = [{"call_id": r["call_id"], "content": "alpha"} for r in requests]
            answer = {"type": "tool_results", "data": {"results": results}}
            assert "I read it." in await self.turn(session, "continue", answer, stream=False)
            for text, told in (
                ("refuse", "the key [masked]"),
                ("break", "with [masked] it"),
            ):
                for stream in (False, True):
                    body = asked(provider, text)
                    assert told in await self.turn(session, "execute", body, stream=stream)
            for kind in ("", "/traces", "/usage"):
                assert (await self.send("GET", f"/sessions/{session}{kind}")).status_code == 200
        await self.send("GET", "/llm/models", headers=self._keys)


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def call_router(url: str) -> list[str]:
    async with httpx.AsyncClient(
        base_url=f"{url}/api/v1", trust_env=False, timeout=PATIENCE
    ) as http:
        key = (await http.post("/auth/bootstrap")).json()["api_key"]
        signed = await http.post("/auth/sign-in", headers={"X-Smista-Api-Key": key})
        http.headers["Authorization"] = f"Bearer {signed.json()['token']}"
        caller = Caller(http)
        await caller.run_all()
        return caller.heard


@pytest.fixture
def everything(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Catch what any library logs, at its most talkative."""
    with caplog.at_level(logging.DEBUG):
        yield caplog


async def test_the_keys_of_a_whole_run_over_all_wires_are_found_nowhere(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    everything: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    seen: list[Seen] = []
    async with trio.open_nursery() as nursery:
        model = partial(serve_demo_model, script=parse_script(script()), seen=seen.append)
        url = f"http://127.0.0.1:{await nursery.start(model)}"
        places = Endpoints(anthropic=url, gemini=url, openai=f"{url}/v1", ollama_cloud=url)
        monkeypatch.setattr(actors.daemon, "endpoints", lambda _config: places)
        ready, found = trio.Event(), list[str]()

        def answers(at: str) -> None:
            found.append(at)
            ready.set()

        catalog = tmp_path / "catalog.json"
        start = partial(serve, config(tmp_path, url), ready=answers, catalog_file=catalog)
        nursery.start_soon(start)
        with trio.fail_after(2 * PATIENCE):
            await ready.wait()
            heard = await call_router(found[0])
        nursery.cancel_scope.cancel()
    shown = {
        (request.asked.model, request.headers[name].removeprefix(prefix))
        for request in seen
        for name, prefix in HEADERS.items()
        if name in request.headers
    }
    assert shown == {(MODELS[name], KEYS[name]) for name in PROVIDERS}
    printed = capfd.readouterr()
    files = files_in(tmp_path)
    sinks = {
        "answers": "\n".join(heard).encode(),
        "logs": everything.text.encode(),
        "output": (printed.out + printed.err).encode(),
        **files,
    }
    assert any(MARK.encode() in content for content in files.values())  # the search finds things
    assert len(sinks["logs"]) > 1000
    for key in KEYS.values():
        assert [name for name, content in sinks.items() if key.encode() in content] == []
