"""`smista explain "…"`: what would become of a prompt, without a router and without a network."""

import json
import time
from datetime import UTC, datetime

import asyncclick as click

from cli.configuration import configured
from cli.explained import Explained, as_json, as_text, facts_line
from cli.failures import DONE, BadUsage, code_of_error
from cli.own_keys import provider_keys
from cli.skills import with_skills
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from cli.workspace import Collected, collect
from smista.core.decision import Refusal
from smista.core.errors import SmistaError
from smista.core.explain import Explanation
from smista.core.explain import explain as explain_decision
from smista.core.intents import Mode, TaskIntent
from smista.core.model_ref import ModelRef
from smista.core.privacy import guard
from smista.core.request import ExecuteRequest, TaskInput
from smista.core.snapshot import Snapshot
from smista.core.tools import BY_NAME
from smista.local.catalog_file import CachedCatalog, catalog_path, read_catalog
from smista.local.config_files import ConfigFile, Configuration, read_configuration
from smista.local.config_overrides import Override, override
from smista.local.findings import Place
from smista.local.router_file import parse_router
from smista.local.toml_source import read_source

_MODE = click.Choice([str(mode) for mode in Mode])


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--json", "as_program", is_flag=True, help="Print the explanation as JSON.")
@click.option("--model", metavar="PROVIDER/MODEL", help="As if this model were asked for.")
@click.option("--intent", type=click.Choice([str(intent) for intent in TaskIntent]))
@click.option("--local-only", is_flag=True, help="As if only local models were allowed.")
@click.option("--no-network", is_flag=True, help="As if nothing might use the network.")
@click.option("--remote", type=_MODE, help="A stricter privacy.remote.mode.")
@click.option(
    "--permission", "modes", multiple=True, metavar="TOOL=MODE", help="A stricter tool mode."
)
@click.pass_obj
async def explain(
    here: Surroundings,
    words: tuple[str, ...],
    as_program: bool,
    model: str | None,
    intent: str | None,
    local_only: bool,
    no_network: bool,
    remote: str | None,
    modes: tuple[str, ...],
) -> int:
    """Show what would become of a prompt, and why: intent, rules, models, context, tools, cost.

    It reads your files and the facts that the router last knew about models. It asks nobody.
    """
    said = Override(
        remote_mode=None if remote is None else Mode(remote),
        permissions=dict(map(_mode, modes)),
        local_only=local_only,
        no_network=no_network,
    )
    config = override((await configured(here)).merged, said)
    prompt = " ".join(words)
    lists = guard(config.policy(), str(here.root))
    collected = await with_skills(await collect(prompt, here), here, lists)
    asked = TaskInput(
        text=prompt,
        command=None if intent is None else TaskIntent(intent),
        explicit_model=_model(model),
    )
    catalog = read_catalog(catalog_path(here.places))
    reachable = frozenset(await provider_keys(here, config, asked.explicit_model))
    made = explain_decision(_snapshot(here, config, asked, collected, catalog, reachable))
    it = _explained(here, made, catalog)
    for notice in (*collected.notices, facts_line(it)):
        echo(visible_line(notice), err=True)
    echo(json.dumps(as_json(it)) if as_program else as_text(it))
    outcome = made.outcome
    return code_of_error(outcome.error.code) if isinstance(outcome, Refusal) else DONE


def _mode(text: str) -> tuple[str, Mode]:
    tool, equals, mode = text.partition("=")
    if not equals or mode not in list(Mode):
        raise BadUsage(f"{text!r}: write --permission TOOL=MODE, with allow, ask or deny")
    return tool, Mode(mode)


def _model(text: str | None) -> ModelRef | None:
    try:
        return None if text is None else ModelRef.parse(text)
    except SmistaError as error:
        raise BadUsage(error.message) from error


def _snapshot(
    here: Surroundings,
    config: ConfigFile,
    asked: TaskInput,
    collected: Collected,
    catalog: CachedCatalog | None,
    reachable: frozenset[str],
) -> Snapshot:
    request = ExecuteRequest(
        input=asked,
        workspace=collected.workspace,
        policy=config.policy(),
        local_preferences=config.local_preferences.travelling(),
        attachments=collected.attachments,
    )
    # The router of this machine keeps to its own file; where that is broken, it does not start.
    limits = parse_router(read_source(here.places.router_file))[0].limits
    return Snapshot(
        request=request,
        text=asked.text,
        run_id="explained",
        command=asked.command,
        models=() if catalog is None else catalog.all_models,
        unavailable=() if catalog is None else catalog.unavailable,
        credentials=reachable,
        plan_mode=asked.command is TaskIntent.PLAN,
        max_context_bytes=limits.max_context_bytes,
        offered_tools=frozenset(BY_NAME),
    )


def _explained(here: Surroundings, made: Explanation, catalog: CachedCatalog | None) -> Explained:
    read = read_configuration(here.root, here.places)
    places: dict[int, Place] = {
        rule.number: ("routing", "rules", rule.number) for rule in made.rules
    }
    spots = {number: _spot(read, place) for number, place in places.items()}
    matched = made.classification.matched_rule
    return Explained(
        explanation=made,
        catalog=catalog,
        now=datetime.fromtimestamp(time.time(), UTC),
        spots=spots,
        keyword_spot=None if matched is None else _spot(read, ("classification", "rules", matched)),
    )


def _spot(read: Configuration, place: Place) -> str:
    layer, there = read.origins.of(place)
    spot = layer.source.spot(there)
    return layer.file if spot is None else f"{layer.file}:{spot[0]}"
