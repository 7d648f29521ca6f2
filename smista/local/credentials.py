"""Keys at rest: in the system's keyring, else in a flat TOML file of mode 0600.

Each key is the project's or the user's; looking up goes from the project to the user. Values are
secrets from the moment they are read. A project's file counts only if smista wrote it, for this
user.
"""

import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from smista.local.findings import Finding, InvalidConfig
from smista.local.gitignore import keep_out_of_git
from smista.local.marks import is_marked, mark
from smista.local.paths import Places, private_directory, read_private, write_private
from smista.local.system_keyring import KeyringUnusable, NoVault, Vault

ROUTER_KEY: Final = "router"
"""The name under which the key of the router is kept."""
_NO_KEYRING: Final = "no keyring was asked for"


class Scope(StrEnum):
    PROJECT = "project"
    GLOBAL = "global"


class Credentials:
    """The keys of one user in one project. It blocks: call it in a thread.

    *vault* is the keyring. *files*: whether a file may do where it cannot serve; if not,
    KeyringUnusable is raised. *fault* is why the keyring was passed over, once it was.
    """

    def __init__(
        self, *, project: Path, places: Places, vault: Vault | None = None, files: bool = True
    ) -> None:
        self._project = project
        self._places = places
        self._vault = vault or NoVault(_NO_KEYRING)
        self._files = files
        self.fault: KeyringUnusable | None = None

    def find(self, name: str) -> SecretStr | None:
        """Return the key kept as *name*, the project's first. Raises InvalidConfig, NotOurs."""
        for scope in Scope:
            # The file first: a key is in it only since the keyring could not take it.
            value = self._entries(scope).get(name) or self._from_vault(name, scope)
            if value is not None:
                return SecretStr(value)
        return None

    def store(self, name: str, secret: SecretStr, *, scope: Scope) -> Path | None:
        """Keep *secret* as *name* and return the file, None for the keyring.

        Durable when it returns.
        """
        if self._to_vault(name, secret, scope):
            self._forget_in_file(name, scope)
            return None
        path = self.path(scope)
        if scope is Scope.PROJECT:
            # Before the first key is written: a commit in between must not carry it.
            keep_out_of_git(path.parent)
        else:
            private_directory(path.parent)
        self._write(scope, self._entries(scope) | {name: secret.get_secret_value()})
        return path

    def remove(self, name: str, *, scope: Scope) -> bool:
        """Forget *name* in *scope*, wherever it is; return whether it was there."""
        in_file = self._forget_in_file(name, scope)
        try:
            return self._vault.delete(self._account(name, scope)) or in_file
        except KeyringUnusable as error:
            self._pass_over(error)
            return in_file

    def foreign(self) -> Path | None:
        """Return the project's file if somebody else wrote it; nothing in it counts."""
        path = self.path(Scope.PROJECT)
        content = read_private(path)
        return None if content is None or is_marked(self._places, path, content) else path

    def path(self, scope: Scope) -> Path:
        if scope is Scope.GLOBAL:
            return self._places.config / "secrets"
        return self._project / ".smista" / "secrets"

    def _account(self, name: str, scope: Scope) -> str:
        return f"*:{name}" if scope is Scope.GLOBAL else f"{self._project}:{name}"

    def _from_vault(self, name: str, scope: Scope) -> str | None:
        try:
            return self._vault.get(self._account(name, scope))
        except KeyringUnusable as error:
            self._pass_over(error)
            return None

    def _to_vault(self, name: str, secret: SecretStr, scope: Scope) -> bool:
        try:
            self._vault.set(self._account(name, scope), secret.get_secret_value())
        except KeyringUnusable as error:
            self._pass_over(error)
            return False
        return True

    def _pass_over(self, error: KeyringUnusable) -> None:
        if not self._files:
            raise error
        self.fault = error

    def _forget_in_file(self, name: str, scope: Scope) -> bool:
        entries = self._entries(scope)
        if name not in entries:
            return False
        del entries[name]
        self._write(scope, entries)
        return True

    def _entries(self, scope: Scope) -> dict[str, str]:
        path = self.path(scope)
        content = read_private(path) if self._files else None
        if content is None:
            return {}
        # A project comes from anywhere; the global directory is the user's alone.
        if scope is Scope.PROJECT and not is_marked(self._places, path, content):
            return {}
        return _parse(path, content)

    def _write(self, scope: Scope, entries: dict[str, str]) -> None:
        import tomlkit  # only whoever stores a key pays for it

        content = tomlkit.dumps(dict(sorted(entries.items()))).encode()
        if scope is Scope.PROJECT:
            mark(self._places, self.path(scope), content)
        write_private(self.path(scope), content)


def _parse(path: Path, content: bytes) -> dict[str, str]:
    try:
        entries = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        # `from None`: the cause quotes the file, and this file holds keys.
        broken = Finding(
            file=str(path),
            place="",
            message=f"not a TOML file ({type(error).__name__})",
            remedy="remove the file and store the keys again",
        )
        raise InvalidConfig((broken,)) from None
    return {name: value for name, value in entries.items() if isinstance(value, str)}
