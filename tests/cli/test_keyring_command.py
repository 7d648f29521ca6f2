"""Keys in the keyring of a system, as whole commands see it."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
import trio

from tests.cli.test_command_line import POLICY, Home
from tests.sdk.router import EXECUTE, SECRET, FakeRouter, Reply, completed, stream

LIBRARY = """
import json, os
class Keyring:
    def _read(self):
        return json.load(open(FILE)) if os.path.exists(FILE) else {{}}
    def _write(self, kept):
        json.dump(kept, open(FILE, "w"))
    def get_password(self, service, username):
        return self._read().get(f"{{service}} {{username}}")
    def set_password(self, service, username, password):
        self._write(self._read() | {{f"{{service}} {{username}}": password}})
    def delete_password(self, service, username):
        kept = self._read(); del kept[f"{{service}} {{username}}"]; self._write(kept)
FILE = {file!r}
Keyring.__module__ = {module!r}
def get_keyring():
    return Keyring()
"""


class Desktop(Home):
    """A home without SMISTA_HOME, on a system with a keyring."""

    def __init__(self, tmp_path, url, module="keyring.backends.SecretService"):
        super().__init__(tmp_path, url)
        self.smista = self.path / ".config" / "smista"
        (self.smista / "run").mkdir(parents=True, mode=0o700)
        (self.smista / "run" / "router.secret").write_text(SECRET)
        self.write(POLICY.format(url=url).replace('auth_source = "env"', ""))
        self.kept = tmp_path / "keyring.json"
        self.library = tmp_path / "library"
        (self.library / "keyring").mkdir(parents=True)
        code = LIBRARY.format(file=str(self.kept), module=module)
        (self.library / "keyring" / "__init__.py").write_text(code)

    @property
    def environ(self):
        root = Path(__file__).parents[2]
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path),
            "PYTHONPATH": f"{self.library}:{root}",
        }

    def keys(self):
        return json.loads(self.kept.read_text()) if self.kept.exists() else {}

    def files_with(self, text):
        files = [path for path in self.path.rglob("*") if path.is_file()]
        return [path for path in files if text.encode() in path.read_bytes()]


def words_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.fixture
async def router(nursery):
    return await FakeRouter().start(nursery)


@pytest.fixture
def desktop(tmp_path, router):
    return Desktop(tmp_path, router.url)


async def test_keys_are_kept_in_the_keyring_and_in_no_file(desktop, router):
    bootstrapped = Reply({"user_id": "u", "api_key": "sk-canary-router"}, 201)
    router.answer("POST", "/api/v1/auth/bootstrap", bootstrapped)
    login = await desktop.run("login")
    named = ("credentials", "--global", "set", "openai-compat:demo")
    stored = await desktop.run(*named, stdin=b"sk-canary-demo\n")
    assert (login.returncode, stored.returncode) == (0, 0)
    assert b"the system keyring" in login.stderr
    assert b"the system keyring" in stored.stdout
    assert desktop.keys() == {
        f"smista.ai {desktop.project}:router": "sk-canary-router",
        "smista.ai *:openai-compat:demo": "sk-canary-demo",
    }
    router.answer("POST", EXECUTE, stream(completed()))
    done = await desktop.run("--enforce-keyring", "hello")
    assert done.returncode == 0
    asked = router.to(EXECUTE)[0]
    assert asked.headers["x-smista-provider-demo-api-key"] == "sk-canary-demo"
    assert router.to("/api/v1/auth/sign-in")[0].headers["x-smista-api-key"] == "sk-canary-router"
    assert desktop.files_with("canary") == []
    assert (await desktop.run("apikey", "remove")).returncode == 0
    assert list(desktop.keys()) == ["smista.ai *:openai-compat:demo"]
    assert (await desktop.run("apikey", "check")).returncode == 1


async def test_with_auth_source_file_the_router_key_passes_the_keyring_by(desktop):
    desktop.write(POLICY.format(url=desktop.url).replace('"env"', '"file"'))
    assert (await desktop.run("apikey", "set", stdin=b"sk-canary\n")).returncode == 0
    assert desktop.keys() == {}
    assert desktop.files_with("sk-canary") == [desktop.project / ".smista" / "secrets"]
    assert (await desktop.run("apikey", "check")).returncode == 0


async def test_what_is_no_keyring_of_the_system_is_not_used(tmp_path, router):
    desktop = Desktop(tmp_path, router.url, module="keyrings.alt.file")
    stored = await desktop.run("credentials", "set", "openai", stdin=b"sk-canary\n")
    assert stored.returncode == 0
    assert desktop.keys() == {}
    assert desktop.files_with("sk-canary") == [desktop.project / ".smista" / "secrets"]
    enforced = await desktop.run("--enforce-keyring", "credentials", "check", "openai")
    assert enforced.returncode == 2
    assert b"keyrings.alt.file.Keyring is no keyring of the system" in enforced.stderr


async def test_a_key_is_typed_unseen(desktop):
    master, slave = pty.openpty()
    process = await trio.lowlevel.open_process(
        desktop.command("credentials", "set", "openai"),
        cwd=desktop.project,
        env=desktop.environ,
        stdin=slave,
        stdout=slave,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    os.close(slave)
    shown, typed = b"", False
    async with trio.lowlevel.FdStream(master) as terminal:
        try:
            async for piece in terminal:
                shown += piece
                if not typed and b"key of openai:" in shown:
                    typed = True
                    arguments = words_of(process.pid)
                    await terminal.send_all(b"sk-canary\n")
        except trio.BrokenResourceError:
            pass  # how a terminal says that its last user has left
        assert await process.wait() == 0
    assert b"canary" not in shown + arguments
    assert list(desktop.keys().values()) == ["sk-canary"]
