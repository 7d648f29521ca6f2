"""Live catalogs: how long a list counts, who waits for it, and what is said when there is none."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date

import pytest
import trio
from pydantic import SecretStr
from trio.testing import MockClock, wait_all_tasks_blocked

from smista.core import errors
from smista.core.model_ref import Catalog, ModelDescriptor
from smista.providers.catalogue import Catalogue, Listing
from smista.providers.facts import Facts, OwnPrice, Prices, load_facts

KEY = SecretStr("canary-key")


def model(name: str, provider: str = "openai", **more) -> ModelDescriptor:
    return ModelDescriptor(provider=provider, model=name, max_context_tokens=1000, **more)


@dataclass
class FakeSource:
    """Answers with *names*, or *error*; *gate* holds answers back until it is set."""

    provider: str = "openai"
    names: tuple[str, ...] = ("m",)
    local: bool = False
    needs_key: str | None = None
    fresh: float = 3600
    spare: bool = False
    error: errors.ProviderError | None = None
    gate: trio.Event = field(default_factory=trio.Event)
    asked: list[SecretStr | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gate.set()

    async def list_models(self, key: SecretStr | None) -> Listing:
        self.asked.append(key)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return Listing(models=tuple(model(name, self.provider) for name in self.names))


@asynccontextmanager
async def open_catalogue(*sources: FakeSource, facts: Facts | None = None) -> AsyncGenerator:
    async with trio.open_nursery() as tasks:
        yield Catalogue(sources, facts or load_facts(), tasks)
        tasks.cancel_scope.cancel()


def names(catalog: Catalog) -> list[str]:
    return [m.model for m in catalog.models]


def reasons(catalog: Catalog) -> list[tuple[str, str]]:
    return [(u.provider, u.reason) for u in catalog.unavailable]


async def test_a_list_counts_as_new_for_its_time_and_no_longer(mock_clock: MockClock):
    source = FakeSource(fresh=60)
    async with open_catalogue(source) as catalogue:
        await catalogue.catalog({})
        mock_clock.jump(59)
        await catalogue.catalog({})
        assert len(source.asked) == 1
        mock_clock.jump(1)
        await catalogue.catalog({})
        await wait_all_tasks_blocked()
        assert len(source.asked) == 2


async def test_old_news_are_served_while_newer_ones_are_on_their_way(mock_clock: MockClock):
    source = FakeSource()
    async with open_catalogue(source) as catalogue:
        await catalogue.catalog({})
        mock_clock.jump(4000)
        source.names, source.gate = ("new",), trio.Event()
        assert names(await catalogue.catalog({})) == ["m"]
        assert names(await catalogue.catalog({})) == ["m"]
        source.gate.set()
        await wait_all_tasks_blocked()
        assert names(await catalogue.catalog({})) == ["new"]
        assert len(source.asked) == 2


async def test_old_news_stay_if_newer_ones_cannot_be_had(mock_clock: MockClock):
    source = FakeSource()
    async with open_catalogue(source) as catalogue:
        await catalogue.catalog({})
        mock_clock.jump(4000)
        source.error = errors.ProviderUnavailable("down")
        for _ in range(3):
            assert names(await catalogue.catalog({})) == ["m"]
            await wait_all_tasks_blocked()
            mock_clock.jump(30)
        assert len(source.asked) == 4


async def test_a_key_that_is_refused_takes_its_list_with_it(mock_clock: MockClock):
    source = FakeSource()
    async with open_catalogue(source) as catalogue:
        await catalogue.catalog({"openai": KEY})
        mock_clock.jump(4000)
        source.error = errors.InvalidProviderCredentials("no")
        await catalogue.catalog({"openai": KEY})
        await wait_all_tasks_blocked()
        catalog = await catalogue.catalog({"openai": KEY})
        assert names(catalog) == []
        assert reasons(catalog) == [("openai", "invalid_credentials")]


async def test_one_question_answers_all_who_ask_at_once():
    source = FakeSource(gate=trio.Event())
    source.gate = trio.Event()
    found: list[Catalog] = []
    async with open_catalogue(source) as catalogue, trio.open_nursery() as nursery:

        async def ask() -> None:
            found.append(await catalogue.catalog({}))

        for _ in range(20):
            nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        source.gate.set()
    assert len(source.asked) == 1
    assert [names(catalog) for catalog in found] == [["m"]] * 20


async def test_a_question_outlives_who_asked_it():
    source = FakeSource()
    source.gate = trio.Event()
    async with open_catalogue(source) as catalogue:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(catalogue.catalog, {})
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        source.gate.set()
        await wait_all_tasks_blocked()
        assert names(await catalogue.catalog({})) == ["m"]
        assert len(source.asked) == 1


async def test_a_list_belongs_to_the_key_it_was_asked_with():
    source = FakeSource()
    async with open_catalogue(source) as catalogue:
        for key in ("a", "b", "a"):
            await catalogue.catalog({"openai": SecretStr(key)})
        await catalogue.catalog({})
        assert [k and k.get_secret_value() for k in source.asked] == ["a", "b", None]
        assert KEY.get_secret_value() not in repr(vars(catalogue))


async def test_lists_of_many_keys_do_not_pile_up():
    source = FakeSource()
    async with open_catalogue(source) as catalogue:
        for number in range(200):
            await catalogue.catalog({"openai": SecretStr(str(number))})
        assert len(source.asked) == 200
        await catalogue.catalog({"openai": SecretStr("199")})
        assert len(source.asked) == 200


async def test_slow_providers_hold_nobody_up_and_are_named(autojump_clock: MockClock):
    slow = [FakeSource(provider=name) for name in ("anthropic", "gemini")]
    for source in slow:
        source.gate = trio.Event()
    async with open_catalogue(*slow, FakeSource()) as catalogue:
        begun = trio.current_time()
        catalog = await catalogue.catalog({}, deadline=3)
        assert trio.current_time() - begun == 3
        assert names(catalog) == ["m"]
        assert reasons(catalog) == [("anthropic", "timeout"), ("gemini", "timeout")]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (errors.ProviderAuthentication("x"), "authentication"),
        (errors.InvalidProviderCredentials("x"), "invalid_credentials"),
        (errors.ProviderRateLimited("x"), "rate_limit"),
        (errors.ProviderUnavailable("x"), "provider_unavailable"),
        (errors.ProviderRejected("x"), "invalid_request"),
        (errors.InvalidProviderConfiguration("x"), "invalid_configuration"),
        (errors.ProviderTimeout("x"), "timeout"),
        (errors.ModelNotFound("x"), "model_not_found"),
        (errors.ProviderFailure("x"), "unknown"),
        (errors.BadStream("x"), "unknown"),
    ],
)
async def test_why_a_provider_is_missing_is_one_of_the_documented_reasons(error, reason):
    async with open_catalogue(FakeSource(error=error)) as catalogue:
        catalog = await catalogue.catalog({})
    assert reasons(catalog) == [("openai", reason)]
    assert catalog.unavailable[0].message == "x"


async def test_a_remote_host_that_failed_is_left_alone_for_a_while_then_asked_again(
    mock_clock: MockClock,
):
    source = FakeSource(error=errors.ProviderUnavailable("x"))
    async with open_catalogue(source) as catalogue:
        for _ in range(3):
            assert reasons(await catalogue.catalog({})) == [("openai", "provider_unavailable")]
        assert len(source.asked) == 1
        assert catalogue.settled({})
        source.error = None
        mock_clock.jump(30)
        assert names(await catalogue.catalog({})) == ["m"]


async def test_the_own_server_is_asked_again_at_once_it_may_just_have_been_started():
    source = FakeSource(local=True, error=errors.ProviderUnavailable("x"))
    async with open_catalogue(source) as catalogue:
        await catalogue.catalog({})
        source.error = None
        assert names(await catalogue.catalog({})) == ["m"]


async def test_a_host_that_is_silent_holds_up_the_first_who_asks_and_nobody_after(
    autojump_clock: MockClock,
):
    source = FakeSource()
    source.gate = trio.Event()
    async with open_catalogue(source) as catalogue:
        for wanted in (10, 0, 0):
            begun = trio.current_time()
            assert reasons(await catalogue.catalog({})) == [("openai", "timeout")]
            assert trio.current_time() - begun == wanted
        assert len(source.asked) == 1


async def test_without_a_key_nobody_is_asked_unless_none_is_needed():
    source, spare = FakeSource(needs_key="bring one"), FakeSource(needs_key="x", spare=True)
    async with open_catalogue(source, spare) as catalogue:
        catalog = await catalogue.catalog({"anthropic": KEY})
    assert source.asked == spare.asked == []
    assert reasons(catalog) == [("openai", "missing_credentials")]
    assert catalog.unavailable[0].message == "bring one"


async def test_under_locality_remote_sources_serve_what_is_known_and_are_not_asked(
    mock_clock: MockClock,
):
    remote, local = FakeSource(), FakeSource(provider="ollama", local=True, names=("here",))
    async with open_catalogue(remote, local) as catalogue:
        catalog = await catalogue.catalog({}, local_only=True)
        assert (names(catalog), reasons(catalog)) == (
            ["here"],
            [("openai", "provider_unavailable")],
        )
        assert remote.asked == []
        await catalogue.catalog({})
        mock_clock.jump(100_000)
        catalog = await catalogue.catalog({}, local_only=True)
        await wait_all_tasks_blocked()
        assert names(catalog) == ["m", "here"]
        assert len(remote.asked) == 1


async def test_it_is_settled_once_no_remote_host_would_be_asked(mock_clock: MockClock):
    remote, local = FakeSource(needs_key="k"), FakeSource(provider="ollama", local=True)
    async with open_catalogue(remote, local) as catalogue:
        assert catalogue.settled({})
        assert not catalogue.settled({"openai": KEY})
        await catalogue.catalog({"openai": KEY})
        assert catalogue.settled({"openai": KEY})
        mock_clock.jump(3600)
        assert not catalogue.settled({"openai": KEY})


async def test_the_same_news_are_the_same_object():
    async with open_catalogue(FakeSource()) as catalogue:
        assert await catalogue.catalog({}) is await catalogue.catalog({})


def own(pattern: str, price: str) -> OwnPrice:
    prices = Prices.model_validate({"input": price, "output": price})
    return OwnPrice(provider="openai", model=pattern, prices=prices)


@pytest.mark.parametrize(
    ("name", "price"),
    [("gpt-9", "3"), ("gpt-9-mini", "2"), ("gpt-8", "1"), ("o9", None), ("gpt-9*", "2")],
)
def test_a_users_own_price_counts_first_the_most_exact_one(name, price):
    facts = Facts(tuple, [own("gpt-*", "1"), own("gpt-9", "3"), own("gpt-9*", "2")])
    found = facts.priced(model(name), date(2026, 11, 30)).input_cost_per_million_tokens
    assert (None if found is None else str(found)) == price
    assert facts.priced(model(name, "gemini"), date(2026, 11, 30)) == model(name, "gemini")


def test_a_price_for_a_time_is_unknown_afterwards():
    facts = load_facts()
    flash = model("gemini-3.8-flash", "gemini")
    assert facts.priced(flash, date(2026, 12, 31)).input_cost_per_million_tokens is not None
    assert facts.priced(flash, date(2027, 1, 1)) == flash


def test_a_snapshot_has_the_facts_of_its_model_and_an_unknown_one_the_usual_window():
    facts, day = load_facts(), date(2026, 11, 30)
    dated, plain = (facts.priced(facts.openai(n), day) for n in ("gpt-5.5-2026-04-23", "gpt-5.5"))
    assert dated == plain.model_copy(update={"model": "gpt-5.5-2026-04-23"})
    unknown = facts.priced(facts.openai("gpt-99"), day)
    assert unknown.max_context_tokens == 128_000
    assert unknown.input_cost_per_million_tokens is None
    assert not unknown.capabilities.reasoning
    claude = facts.priced(model("claude-haiku-4-5-20251001", "anthropic"), day)
    assert str(claude.input_cost_per_million_tokens) == "1"


def test_a_prompt_never_outgrows_the_step_that_its_price_is_for():
    facts = load_facts()
    large = facts.priced(facts.openai("gpt-6.2-sol"), date(2026, 11, 30))
    assert large.max_context_tokens - (large.max_output_tokens or 0) == 272_000
    dear = Facts(tuple, [own("gpt-6.2-sol", "9")]).priced(facts.openai("gpt-6.2-sol"), date.today())
    assert dear.max_context_tokens == 1_050_000
