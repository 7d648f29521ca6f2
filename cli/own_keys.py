"""The keys that a command has at hand: the router's own and those of the providers.

They come from the keyring, else from a file, unless the configuration names another source.
"""

import shlex
from difflib import get_close_matches
from functools import partial
from subprocess import DEVNULL
from typing import Final

import trio
from pydantic import SecretStr

from cli.failures import BadUsage
from cli.surroundings import Surroundings
from cli.veil import Veil
from cli.visible import echo, visible_line
from smista.core.model_ref import BUILT_IN, COMPAT, ModelRef
from smista.local.config_checks import SECRET
from smista.local.config_files import ConfigFile, RouterConnection
from smista.local.credentials import ROUTER_KEY, Credentials

API_KEY: Final = "SMISTA_API_KEY"
HELPER_SECONDS: Final = 30.0
_LONGEST: Final = 4096
_ELSEWHERE: Final = {
    "env": f"reads the router key from the variable {API_KEY}",
    "helper": "takes the router key from the program in auth_helper",
}


def keys(here: Surroundings) -> Credentials:
    """Return the keys that are kept, in the keyring or, unless that is enforced, in a file."""
    return Credentials(
        project=here.root,
        places=here.places,
        vault=here.vault,
        files=not here.enforce_keyring,
    )


def router_keys(here: Surroundings, connection: RouterConnection) -> Credentials:
    """Return where the router key is kept. Raises BadUsage if it is not kept at all."""
    source = connection.auth_source
    if source in _ELSEWHERE:
        raise BadUsage(
            f"auth_source = {source!r} {_ELSEWHERE[source]}, so a key that is kept would not be "
            "used; leave auth_source out, or get a key to put there: smista apikey new"
        )
    if source == "file":
        if here.enforce_keyring:
            raise BadUsage("--enforce-keyring and auth_source = 'file' exclude each other")
        return Credentials(project=here.root, places=here.places)
    return keys(here)


async def stored_key(here: Surroundings, connection: RouterConnection) -> SecretStr | None:
    """Return the router key from where the configuration says it is."""
    match connection.auth_source:
        case "env":
            return _from_environment(API_KEY, here)
        case "helper":
            return await _from_helper(connection.auth_helper, here)
        case _:
            return await find_key(router_keys(here, connection), ROUTER_KEY)


async def find_key(kept: Credentials, name: str) -> SecretStr | None:
    """Look *name* up in a thread, and say so if a keyring that is there was passed over."""
    known = kept.fault
    found = await trio.to_thread.run_sync(kept.find, name, abandon_on_cancel=True)
    if kept.fault is not known:
        say_fault(kept)
    return found


def say_fault(kept: Credentials) -> None:
    """Say why the keyring was passed over; that there is none is no news."""
    if kept.fault is not None and not kept.fault.absent:
        echo(f"warning: {visible_line(str(kept.fault))}; the file of keys serves instead", err=True)


async def provider_keys(
    here: Surroundings, config: ConfigFile, override: ModelRef | None
) -> dict[str, SecretStr]:
    """Return the keys of the providers that the policy, or *override*, can reach."""
    kept = keys(here)
    found: dict[str, SecretStr] = {}
    for provider in sorted(_reachable(config, override)):
        secret = await _provider_key(provider, here, config, kept)
        if secret is not None:
            found[provider] = secret
    return found


def secret_names(config: ConfigFile) -> Veil:
    """Hide the names that `${secret:NAME}` references use; show what the user's file lists."""
    references = (entry.api_key for entry in config.providers.values() if entry.api_key)
    return Veil(
        names=frozenset(match[1] for match in map(SECRET.match, references) if match),
        shown=frozenset(config.local_preferences.pass_variables),
    )


def provider_hint(text: str) -> str:
    """Return which provider *text* may have been meant to be, as the end of a sentence."""
    near = get_close_matches(text.lower(), (*BUILT_IN, COMPAT), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


async def _provider_key(
    provider: str, here: Surroundings, config: ConfigFile, kept: Credentials
) -> SecretStr | None:
    # The name of a provider is the same in any case, its table's as well.
    entry = next((e for name, e in config.providers.items() if name.lower() == provider), None)
    reference = SECRET.match(entry.api_key) if entry and entry.api_key else None
    if reference is None:
        return await find_key(kept, provider)
    return _from_environment(reference[1], here) or await find_key(kept, reference[1])


def _reachable(config: ConfigFile, override: ModelRef | None) -> set[str]:
    chains = [(rule.model, *rule.fallbacks) for rule in config.routing.rules]
    if config.routing.default is not None:
        chains.append((config.routing.default.model, *config.routing.default.fallbacks))
    named = {ref.provider for chain in chains for ref in chain}
    return named | {override.provider} if override is not None else named


def _from_environment(name: str, here: Surroundings) -> SecretStr | None:
    value = here.environ.get(name, "").strip()
    return _checked(value, f"the variable {name}") if value else None


async def _from_helper(command: str | None, here: Surroundings) -> SecretStr:
    words = shlex.split(command or "")
    if not words:
        raise BadUsage("auth_source = 'helper' needs auth_helper, a command that prints the key")
    name = f"auth_helper {words[0]!r}"
    environ = {key: value for key, value in here.environ.items() if key != API_KEY}
    run = partial(trio.run_process, stdin=DEVNULL, capture_stdout=True, check=False, cwd="/")
    try:
        with trio.fail_after(HELPER_SECONDS):
            done = await run(words, env=environ)
    except OSError as error:
        raise BadUsage(f"{name} cannot be started: {error.strerror}") from error
    except trio.TooSlowError:
        raise BadUsage(f"{name} did not end in {HELPER_SECONDS:g} s") from None
    if done.returncode or not done.stdout.strip():
        raise BadUsage(f"{name} gave no key; it ended with exit code {done.returncode}")
    return _checked(done.stdout.decode(errors="replace").strip(), name)


def _checked(value: str, origin: str) -> SecretStr:
    if not (value.isascii() and value.isprintable()) or len(value) > _LONGEST:
        raise BadUsage(f"{origin} does not hold a key: keys are printable ASCII on one line")
    return SecretStr(value)
