"""The two hashes of *Router authentication*: Argon2id for keys, SHA-512 crypt for tokens.

All of it takes milliseconds, so call it in a thread.
"""

import warnings
from typing import Final, cast

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

with warnings.catch_warnings():
    # passlib looks at the interpreter's deprecated crypt module, which it is then told not to use.
    warnings.simplefilter("ignore", DeprecationWarning)
    from passlib.hash import sha512_crypt  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

# The other backend of passlib holds the interpreter's lock, and with it the loop.
sha512_crypt.set_backend("builtin")  # pyright: ignore[reportUnknownMemberType]

_ARGON: Final = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
_ROUNDS: Final = 5000

NOBODY: Final = f"$argon2id$v=19$m=19456,t=2,p=1${'A' * 22}${'A' * 43}"
"""A hash that no key has; checking against it takes as long as against any other."""


def hash_key(key: str) -> str:
    return _ARGON.hash(key)


def key_matches(key: str, stored: str) -> bool:
    try:
        return _ARGON.verify(stored, key)
    except (VerificationError, InvalidHashError):
        return False


def hash_token(token: str) -> str:
    hasher = sha512_crypt.using(rounds=_ROUNDS)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return cast("str", hasher.hash(token))  # pyright: ignore[reportUnknownMemberType]


def token_matches(token: str, stored: str) -> bool:
    try:
        return bool(sha512_crypt.verify(token, stored))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    except ValueError:
        return False
