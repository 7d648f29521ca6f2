"""The system's keyring: what counts as one, and what happens when it does not serve."""

import threading

import pytest
from keyring.backends.chainer import ChainerBackend
from keyring.backends.fail import Keyring as Fail
from keyring.backends.null import Keyring as Null
from keyring.backends.SecretService import Keyring as SecretService
from pydantic import SecretStr

from smista.local.credentials import Credentials, Scope
from smista.local.paths import find_places
from smista.local.system_keyring import SERVICE, KeyringUnusable, NoVault, SystemKeyring

KEY, OTHER = SecretStr("sk-canary-1"), SecretStr("sk-canary-2")


class Kept(SecretService):
    """A keyring of the system by its module, kept in a dictionary."""

    def __init__(self, kept=None):
        self.kept = {} if kept is None else kept

    def get_password(self, service, username):
        return self.kept.get((service, username))

    def set_password(self, service, username, password):
        self.kept[service, username] = password

    def delete_password(self, service, username):
        del self.kept[service, username]


Kept.__module__ = SecretService.__module__


class Locked(Kept):
    """It waits for somebody to type a password, who is not there."""

    def __init__(self):
        super().__init__()
        self.never = threading.Event()
        self.asked = 0

    def get_password(self, service, username):
        self.asked += 1
        self.never.wait()

    def set_password(self, service, username, password):
        self.asked += 1
        self.never.wait()


Locked.__module__ = SecretService.__module__


class Broken(Kept):
    def set_password(self, service, username, password):
        raise RuntimeError(f"{password} was refused")


Broken.__module__ = SecretService.__module__


class PlaintextKeyring(Kept):
    """A plug-in that keeps secrets in the clear."""


class Chain(ChainerBackend):
    backends = ()

    def __init__(self, *backends):
        self.backends = list(backends)


@pytest.fixture
def locked():
    keyring = Locked()
    yield keyring
    keyring.never.set()


def vault(backend, patience=5.0):
    return SystemKeyring(lambda: backend, patience=patience)


@pytest.fixture
def made(tmp_path):
    def make(vault, *, project="p", files=True):
        root = tmp_path / project
        root.mkdir(exist_ok=True)
        places = find_places({"SMISTA_HOME": str(tmp_path / "home")}, tmp_path)
        return Credentials(project=root, places=places, vault=vault, files=files)

    return make


def test_a_key_is_kept_under_the_accounts_of_its_scope(made, tmp_path):
    keyring = Kept()
    keys = made(vault(keyring))
    assert keys.store("openai", KEY, scope=Scope.GLOBAL) is None
    assert keys.store("router", OTHER, scope=Scope.PROJECT) is None
    assert keyring.kept == {
        (SERVICE, "*:openai"): "sk-canary-1",
        (SERVICE, f"{tmp_path}/p:router"): "sk-canary-2",
    }
    assert not keys.path(Scope.GLOBAL).exists()
    assert not keys.path(Scope.PROJECT).exists()


def test_the_projects_key_comes_before_the_users_and_is_of_this_project_alone(made):
    keyring = Kept()
    keys = made(vault(keyring))
    keys.store("openai", OTHER, scope=Scope.GLOBAL)
    assert keys.find("openai") == OTHER
    keys.store("openai", KEY, scope=Scope.PROJECT)
    assert keys.find("openai") == KEY
    assert made(vault(keyring), project="q").find("openai") == OTHER
    assert keys.remove("openai", scope=Scope.PROJECT)
    assert not keys.remove("openai", scope=Scope.PROJECT)
    assert keys.find("openai") == OTHER


@pytest.mark.parametrize(
    "backend",
    [Null(), Fail(), PlaintextKeyring(), Chain(), Chain(PlaintextKeyring(), Null()), None],
    ids=["null", "fail", "plaintext", "empty chain", "chain of those", "nothing"],
)
def test_only_a_keyring_of_the_system_counts(made, backend):
    with pytest.raises(KeyringUnusable) as raised:
        vault(backend).usable()
    assert raised.value.absent
    keys = made(vault(backend))
    assert keys.store("openai", KEY, scope=Scope.GLOBAL) == keys.path(Scope.GLOBAL)
    assert keys.find("openai") == KEY


def test_in_a_chain_the_systems_keyring_is_taken(made):
    keyring = Kept()
    made(vault(Chain(PlaintextKeyring(), keyring))).store("openai", KEY, scope=Scope.GLOBAL)
    assert keyring.kept == {(SERVICE, "*:openai"): "sk-canary-1"}


def test_a_locked_keyring_is_waited_for_once_and_the_file_serves(made, locked):
    keys = made(vault(locked, patience=0.05))
    assert keys.find("openai") is None
    assert keys.store("openai", KEY, scope=Scope.GLOBAL) == keys.path(Scope.GLOBAL)
    assert keys.find("openai") == KEY
    assert locked.asked == 1
    assert "locked" in str(keys.fault)
    assert not keys.fault.absent


def test_what_a_broken_keyring_says_is_not_repeated(made):
    keys = made(vault(Broken()))
    keys.store("openai", KEY, scope=Scope.GLOBAL)
    assert "RuntimeError" in str(keys.fault)
    assert "canary" not in str(keys.fault)
    assert keys.fault.__cause__ is None


def test_the_newer_key_counts_when_the_keyring_serves_again(made, locked):
    keyring = Kept()
    made(vault(keyring)).store("openai", KEY, scope=Scope.GLOBAL)
    made(vault(locked, patience=0.05)).store("openai", OTHER, scope=Scope.GLOBAL)
    keys = made(vault(keyring))
    assert keys.find("openai") == OTHER
    keys.store("openai", KEY, scope=Scope.GLOBAL)
    assert keys.find("openai") == KEY
    assert "canary" not in keys.path(Scope.GLOBAL).read_text()


def test_removing_reaches_the_file_and_the_keyring(made):
    keyring = Kept()
    made(None).store("openai", OTHER, scope=Scope.PROJECT)
    keyring.set_password(SERVICE, f"{made(None).path(Scope.PROJECT).parents[1]}:openai", "sk")
    keys = made(vault(keyring))
    assert keys.remove("openai", scope=Scope.PROJECT)
    assert keys.find("openai") is None
    assert keyring.kept == {}


def test_where_the_keyring_is_enforced_no_file_is_read_or_written(made):
    made(None).store("openai", KEY, scope=Scope.GLOBAL)
    keys = made(NoVault("off"), files=False)
    with pytest.raises(KeyringUnusable, match="off"):
        keys.find("openai")
    with pytest.raises(KeyringUnusable, match="off"):
        keys.store("other", KEY, scope=Scope.GLOBAL)
    assert "other" not in keys.path(Scope.GLOBAL).read_text()
    keyring = Kept()
    assert made(vault(keyring), files=False).find("openai") is None
