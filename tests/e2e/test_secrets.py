"""Keys and tokens are nowhere but where their owner put them, and nothing is open to others."""

import json
import stat
from functools import partial
from pathlib import Path

import httpx
import trio

from smista.demo.script import parse_script
from smista.demo.server import Seen, serve_demo_model
from tests.e2e.house import PATIENCE, SCRIPT, House, Router, request, smista

RIGHT = "canary-right-3b1f9c2a7d40e865"
WRONG = "canary-wrong-9a0c4d7e12f5b638"
UNUSED = "canary-unused-5e8d2f60b7a419c3"
MARK = "mark-in-a-prompt-71c0e9"
KEYED = "openai-compat:keyed/demo"


def places_of(needle: str, router: Router) -> list[str]:
    """Return where *needle* can be read: in the router's files, output, arguments, environment."""
    wanted = needle.encode()
    files = [path for path in router.house.home.rglob("*") if path.is_file()]
    process = Path(f"/proc/{router.process.pid}")
    if process.exists():
        files += [process / "cmdline", process / "environ"]
    found = [str(path) for path in files if wanted in path.read_bytes()]
    return [*found, *(["output"] if needle in router.output else [])]


async def ask_keyed(house: House, key: str, *words: str) -> tuple[int, str]:
    """Run a prompt on the model that wants a key; return exit code and all output."""
    done = await trio.run_process(
        smista("--yes", "--model", KEYED, *words),
        cwd=house.project,
        env={**house.environment, "KEYED_KEY": key},
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).decode()


async def keyed_model(house: House, nursery: trio.Nursery, seen: list[Seen]) -> None:
    script = parse_script(f'api_key = "{RIGHT}"\n{SCRIPT}')
    serve = partial(serve_demo_model, script=script, port=house.keyed_port, seen=seen.append)
    await nursery.start(serve)


async def test_provider_keys_reach_their_provider_and_stay_nowhere(router: Router) -> None:
    house, seen = router.house, list[Seen]()
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await keyed_model(house, nursery, seen)
            code, said = await ask_keyed(house, RIGHT, "fix the typo in @hello.txt")
            assert code == 0, said
            assert {each.headers["authorization"] for each in seen} == {f"Bearer {RIGHT}"}
            code, refused = await ask_keyed(house, WRONG, "hello")
            assert code == 1
            assert "error: invalid_provider_credentials: openai-compat:keyed" in refused
            nursery.cancel_scope.cancel()
    assert RIGHT not in said
    assert WRONG not in refused
    assert places_of(RIGHT, router) == []
    assert places_of(WRONG, router) == []


async def test_without_a_key_the_model_is_not_asked_and_the_command_says_so(
    router: Router,
) -> None:
    house, seen = router.house, list[Seen]()
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await keyed_model(house, nursery, seen)
            code, said = await ask_keyed(house, "", "hello")
            nursery.cancel_scope.cancel()
    assert code == 1
    assert "missing_provider_credentials" in said
    assert seen == []


async def test_the_routers_own_keys_and_tokens_are_kept_as_digests_alone(router: Router) -> None:
    url = f"{router.house.url}/api/v1"
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE) as http:
        key = (await http.post("/auth/bootstrap")).json()["api_key"]
        signed = await http.post("/auth/sign-in", headers={"X-Smista-Api-Key": key})
        token = signed.json()["token"]
        http.headers["Authorization"] = f"Bearer {token}"
        made = (await http.post("/sessions", json={"title": "t"})).json()["session"]
        body = json.loads(request(MARK).model_dump_json(exclude_none=True))
        headers = {"X-Smista-Provider-demo-Api-Key": UNUSED}
        path = f"/sessions/{made['id']}/execute"
        turn = (await http.post(path, json=body, headers=headers)).json()
        assert turn["status"] == "completed"
        await http.post("/auth/sign-out")
        for secret in (key, token):
            answer = await http.get("/auth/me", headers={"Authorization": f"Bearer {secret}"})
            assert answer.status_code == 401
            assert secret not in answer.text
    assert places_of(MARK, router) != []  # what is kept in clear is found by this search
    assert places_of(UNUSED, router) == []
    for secret in (key, key.rpartition("-")[2], token, token.rpartition("-")[2]):
        assert places_of(secret, router) == []
    kept = (router.house.project / ".smista" / "secrets").read_text().split('"')[1]
    assert places_of(kept, router) == []


def test_nothing_is_open_to_others_whatever_the_umask(router: Router) -> None:
    house = router.house
    assert house.run("hello", umask=0).returncode == 0
    found = [path for path in house.home.rglob("*") if path != house.router_file]
    assert {path.name for path in found} >= {"db", "run", "router.pid", "router.pid.lock"}
    loose = {
        str(path): oct(mode)
        for path in (*found, house.project / ".smista" / "secrets")
        if (mode := stat.S_IMODE(path.lstat().st_mode)) != (0o700 if path.is_dir() else 0o600)
    }
    assert loose == {}
