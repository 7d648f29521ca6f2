"""The keyring of the operating system, asked with patience that ends.

Only system keyrings count: what a plug-in keeps in a plain file is not one. The library is
imported by the first question, and each question has a thread of its own that may be left behind:
a keyring that waits for a password to be typed answers never.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, Protocol, TypeVar, cast

T = TypeVar("T")

SERVICE: Final = "smista.ai"
PATIENCE: Final = 15.0
"""Seconds for one answer: a person may have to type the password of their keyring."""
_SYSTEMS: Final = frozenset(
    f"keyring.backends.{name}"
    for name in ("SecretService", "libsecret", "kwallet", "macOS", "Windows")
)


class KeyringUnusable(Exception):
    """The keyring cannot be asked. *absent*: there is none; else it is there and does not serve."""

    def __init__(self, reason: str, *, absent: bool = False) -> None:
        super().__init__(reason)
        self.absent = absent


class Vault(Protocol):
    """Where secrets are kept by account. Every method may raise KeyringUnusable."""

    def usable(self) -> None:
        """Raise KeyringUnusable if nothing can be kept here."""
        ...

    def get(self, account: str) -> str | None: ...

    def set(self, account: str, secret: str) -> None: ...

    def delete(self, account: str) -> bool:
        """Forget *account*; return whether it was there."""
        ...


class Backend(Protocol):
    """What the keyring library calls a keyring."""

    def get_password(self, service: str, username: str) -> str | None: ...

    def set_password(self, service: str, username: str, password: str) -> None: ...

    def delete_password(self, service: str, username: str) -> None: ...


class NoVault:
    """The keyring of a user who is to have none."""

    def __init__(self, reason: str) -> None:
        self._fault = KeyringUnusable(reason, absent=True)

    def usable(self) -> None:
        raise self._fault

    def get(self, account: str) -> str | None:
        raise self._fault

    def set(self, account: str, secret: str) -> None:
        raise self._fault

    def delete(self, account: str) -> bool:
        raise self._fault


class SystemKeyring:
    """The keyring that the library finds; once unusable, it is not asked again."""

    def __init__(
        self, find: Callable[[], object] | None = None, *, patience: float = PATIENCE
    ) -> None:
        self._find = find or _found_by_the_library
        self._patience = patience
        self._backend: Backend | None = None
        self._fault: KeyringUnusable | None = None

    def usable(self) -> None:
        self._open()

    def get(self, account: str) -> str | None:
        backend = self._open()
        return self._ask(lambda: backend.get_password(SERVICE, account))

    def set(self, account: str, secret: str) -> None:
        backend = self._open()
        self._ask(lambda: backend.set_password(SERVICE, account, secret))

    def delete(self, account: str) -> bool:
        if self.get(account) is None:
            return False
        backend = self._open()
        self._ask(lambda: backend.delete_password(SERVICE, account))
        return True

    def _open(self) -> Backend:
        if self._backend is None:
            found = self._ask(self._find)
            system = next(_systems(found), None)
            if system is None:
                raise self._unusable(_absence(found), absent=True)
            self._backend = system
        return self._backend

    def _ask(self, question: Callable[[], T]) -> T:
        if self._fault is not None:
            raise self._fault
        answers: SimpleQueue[tuple[T, None] | tuple[None, Exception]] = SimpleQueue()
        Thread(target=_answer, args=(question, answers), daemon=True).start()
        try:
            value, error = answers.get(timeout=self._patience)
        except Empty:
            raise self._unusable(
                f"the system keyring did not answer in {self._patience:g} s; it may be locked"
            ) from None
        if error is not None:
            # `from None`: what a plug-in writes into its errors may quote the secret.
            raise self._unusable(f"the system keyring failed ({type(error).__name__})") from None
        return cast("T", value)

    def _unusable(self, reason: str, *, absent: bool = False) -> KeyringUnusable:
        self._fault = KeyringUnusable(reason, absent=absent)
        return self._fault


def _answer(question: Callable[[], Any], answers: SimpleQueue[Any]) -> None:
    # A supervisor: plug-ins and the buses below them raise what they like, and whoever asked is
    # told of it.
    try:
        answers.put((question(), None))
    except Exception as error:
        answers.put((None, error))


def _found_by_the_library() -> object:
    return import_module("keyring").get_keyring()


def _systems(found: object) -> Iterator[Backend]:
    """Yield the system keyrings in *found*, which may be a chain of several."""
    chain: object = getattr(found, "backends", None)
    each = cast("list[object]", chain) if isinstance(chain, list | tuple) else [found]
    for backend in each:
        if type(backend).__module__ in _SYSTEMS:
            yield cast("Backend", backend)


def _absence(found: object) -> str:
    kind = type(found)
    if kind.__module__ in ("keyring.backends.fail", "keyring.backends.null"):
        return "there is no system keyring"
    return f"{kind.__module__}.{kind.__qualname__} is no keyring of the system"
