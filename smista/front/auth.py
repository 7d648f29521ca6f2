"""Keys and tokens → user. Nothing here is ever written down in clear or told twice.

A verified token is remembered for at most a minute under a keyed digest, so that the hash is
paid once; signing out, or its expiry, forgets it at once, also for a check that is under way.
"""

import hmac
import re
import secrets
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar
from uuid import UUID

import trio

from smista.core.errors import (
    AuthError,
    Forbidden,
    InternalError,
    InvalidApiKey,
    InvalidToken,
    MissingCredentials,
    StorageError,
    StorageUnavailable,
    TokenExpired,
    TokenRevoked,
)
from smista.core.ids import new_uuid7
from smista.core.records import AuthToken, User
from smista.front.crypt import NOBODY, hash_key, hash_token, key_matches, token_matches
from smista.front.settings import FrontSettings
from smista.ports.journal import Journal

T = TypeVar("T")

_TOKEN: Final = re.compile(r"([0-9a-f]{32})-[a-z0-9]{64}\Z")
_KEY_LETTERS: Final = string.ascii_letters + string.digits
_TOKEN_LETTERS: Final = string.ascii_lowercase + string.digits
_KEY_SECRET: Final = 96
_TOKEN_SECRET: Final = 64
_REMEMBERED: Final = 60.0
_TOKENS_AT_MOST: Final = 4096
_LAST_WRITE: Final = 10.0


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whom a token speaks for."""

    user_id: str
    token_id: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewUser:
    """What bootstrap hands out, once."""

    user_id: str
    api_key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    token: str = field(repr=False)
    expires_at: datetime


@dataclass(slots=True)
class _Check:
    """A verification under way; *outcome* stays None if it was cancelled."""

    token_id: str
    done: trio.Event = field(default_factory=trio.Event)
    revoked: bool = False
    outcome: Identity | AuthError | None = None


class Auth:
    """Mints keys and tokens, and says whose they are. *now* is the wall clock."""

    def __init__(
        self, journal: Journal, settings: FrontSettings, *, now: Callable[[], datetime] = utc_now
    ) -> None:
        self._journal = journal
        self._settings = settings
        self._now = now
        # Apart, so that a flood of sign-ins cannot hold up those who have a token.
        self._key_threads = trio.CapacityLimiter(2)
        self._token_threads = trio.CapacityLimiter(2)
        self._digest_key = secrets.token_bytes(32)
        self._known: dict[bytes, tuple[Identity, float]] = {}
        self._checks: dict[bytes, _Check] = {}
        version = re.escape(settings.api_key_version)
        shape = rf"sk-smista-api{version}-([0-9a-f]{{32}})-[A-Za-z0-9]{{{_KEY_SECRET}}}\Z"
        self._key_shape = re.compile(shape)

    async def bootstrap(self) -> NewUser:
        """Make a user. Raises Forbidden when switched off, InternalError if it was not stored."""
        if not self._settings.local_bootstrap_enabled:
            raise Forbidden("bootstrap is switched off on this router")
        user_id = self._new_id()
        bare = UUID(user_id).hex
        secret = _random(_KEY_LETTERS, _KEY_SECRET)
        key = f"sk-smista-api{self._settings.api_key_version}-{bare}-{secret}"
        hashed = await _in_thread(hash_key, key, limiter=self._key_threads)
        now = self._now()
        user = User(id=user_id, api_key_hash=hashed, created_at=now, updated_at=now)
        try:
            await self._journal.add_user(user)
        except StorageError:
            raise InternalError("the user could not be stored; try again") from None
        return NewUser(user_id=user_id, api_key=key)

    async def sign_in(self, key: str | None) -> NewToken:
        """Exchange an API key. Raises MissingCredentials, InvalidApiKey or Forbidden."""
        if not key:
            raise MissingCredentials("send the API key in the X-Smista-Api-Key header")
        user = await self._owner(key)
        token_id = UUID(self._new_id()).hex
        token = f"{token_id}-{_random(_TOKEN_LETTERS, _TOKEN_SECRET)}"
        hashed = await _in_thread(hash_token, token, limiter=self._token_threads)
        now = self._now()
        expires = now + timedelta(seconds=self._settings.token_ttl_seconds)
        await self._journal.add_token(
            AuthToken(
                id=str(UUID(token_id)),
                user_id=user.id,
                token_hash=hashed,
                created_at=now,
                expires_at=expires,
            )
        )
        return NewToken(token=token, expires_at=expires)

    async def sign_out(self, identity: Identity) -> None:
        """Revoke the token of *identity*; durable when this returns, also if its caller left.

        Raises StorageError.
        """
        try:
            # A caller that leaves must not leave the token half revoked.
            with trio.move_on_after(_LAST_WRITE, shield=True) as writing:
                await self._journal.revoke_token(identity.token_id, at=self._now())
        finally:
            self._forget(identity.token_id)
        if writing.cancelled_caught:
            raise StorageUnavailable("the token could not be revoked in time; sign out again")

    async def verify(self, authorization: str | None) -> Identity:
        """Return whom the Authorization header speaks for.

        Raises MissingCredentials, InvalidToken, TokenExpired, TokenRevoked or Forbidden; the
        last three only to a caller that holds the genuine token.
        """
        token = _bearer(authorization)
        digest = hmac.digest(self._digest_key, token.encode(), "sha256")
        known = self._recall(digest)
        while known is None and (check := self._checks.get(digest)):
            await check.done.wait()
            known = _settled(check)
        return known or await self._check(token, digest)

    def _recall(self, digest: bytes) -> Identity | None:
        found = self._known.get(digest)
        if found is None:
            return None
        identity, until = found
        if trio.current_time() < until and self._now() < identity.expires_at:
            return identity
        del self._known[digest]
        return None

    async def _check(self, token: str, digest: bytes) -> Identity:
        match = _TOKEN.match(token)
        if match is None:
            raise InvalidToken("the session token is malformed or unknown; sign in again")
        check = self._checks[digest] = _Check(str(UUID(match[1])))
        try:
            identity = await self._verified(token, check)
            check.outcome = identity
            self._remember(digest, identity)
        except AuthError as error:
            check.outcome = error
            raise
        finally:
            del self._checks[digest]
            check.done.set()
        return identity

    async def _verified(self, token: str, check: _Check) -> Identity:
        row = await self._journal.token(check.token_id)
        if row is None or not await self._is_genuine(token, row):
            raise InvalidToken("the session token is malformed or unknown; sign in again")
        if row.revoked_at is not None:
            raise TokenRevoked("the session token was revoked; sign in again")
        if self._now() >= row.expires_at:
            raise TokenExpired("the session token has expired; sign in again")
        user = await self._journal.user(row.user_id)
        if user is None:
            raise InvalidToken("the session token is malformed or unknown; sign in again")
        _require_enabled(user)
        if check.revoked:
            raise TokenRevoked("the session token was revoked; sign in again")
        return Identity(user_id=user.id, token_id=row.id, expires_at=row.expires_at)

    def _remember(self, digest: bytes, identity: Identity) -> None:
        if len(self._known) >= _TOKENS_AT_MOST:
            del self._known[next(iter(self._known))]
        self._known[digest] = (identity, trio.current_time() + _REMEMBERED)

    def _forget(self, token_id: str) -> None:
        for check in self._checks.values():
            check.revoked |= check.token_id == token_id
        stale = [d for d, (identity, _) in self._known.items() if identity.token_id == token_id]
        for digest in stale:
            del self._known[digest]

    async def _owner(self, key: str) -> User:
        match = self._key_shape.match(key)
        if match is None:
            raise InvalidApiKey("the API key is not valid; check it or bootstrap a new user")
        user = await self._journal.user(str(UUID(match[1])))
        # Unknown and wrong keys take the same time, so that no one learns who exists.
        stored = user.api_key_hash if user else NOBODY
        matches = await _in_thread(key_matches, key, stored, limiter=self._key_threads)
        if user is None or not matches:
            raise InvalidApiKey("the API key is not valid; check it or bootstrap a new user")
        _require_enabled(user)
        return user

    async def _is_genuine(self, token: str, row: AuthToken) -> bool:
        limiter = self._token_threads
        return await _in_thread(token_matches, token, row.token_hash, limiter=limiter)

    def _new_id(self) -> str:
        return new_uuid7(int(self._now().timestamp() * 1000), secrets.randbits(74))


async def _in_thread(work: Callable[..., T], *args: str, limiter: trio.CapacityLimiter) -> T:
    return await trio.to_thread.run_sync(work, *args, limiter=limiter)


def _settled(check: _Check) -> Identity | None:
    if isinstance(check.outcome, AuthError):
        raise type(check.outcome)(check.outcome.message)
    return None if check.revoked else check.outcome


def _require_enabled(user: User) -> None:
    if user.disabled_at is not None:
        raise Forbidden("this user is disabled")


def _bearer(authorization: str | None) -> str:
    if not authorization:
        raise MissingCredentials("send Authorization: Bearer <session-token>; sign in to get one")
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise MissingCredentials("send Authorization: Bearer <session-token>; sign in to get one")
    return token.strip()


def _random(letters: str, length: int) -> str:
    return "".join(secrets.choice(letters) for _ in range(length))
