"""The example policies of the documentation: valid, trusted as one file, and deciding as told."""

from pathlib import Path
from typing import Any

import pytest

from smista.core.decision import Decision, Refusal
from smista.core.intents import Mode
from smista.core.model_ref import Capabilities, ModelDescriptor
from smista.core.pipeline import decide
from smista.core.request import Attachments, ContextFile, ExecuteRequest, TaskInput, Workspace
from smista.core.snapshot import Snapshot
from smista.local.config_files import ConfigFile, read_configuration
from smista.local.paths import find_places

FOLDER = Path(__file__).parents[2] / "docs" / "examples"
ABLE = Capabilities(streaming=True, tools=True, system_prompt=True, reasoning=True)


def described(ref: str, *, local: bool = False, price: str | None = "1") -> ModelDescriptor:
    provider, _, name = ref.partition("/")
    return ModelDescriptor(
        provider=provider,
        model=name,
        local=local,
        auth="none" if local else "api_key",
        capabilities=ABLE,
        max_context_tokens=100_000,
        input_cost_per_million_tokens=price,
        output_cost_per_million_tokens=price,
    )


MODELS = (
    described("ollama/qwen2.5-coder:7b", local=True, price=None),
    described("anthropic/claude-sonnet"),
    described("openai/gpt-5.5-mini"),
    described("openai/gpt-5.5-thinking", price="30"),
    described("openai-compat:inhouse/llama-3.1-70b", local=True, price=None),
)


def load(name: str, folder: Path) -> ConfigFile:
    places = find_places({"SMISTA_HOME": str(folder)}, folder)
    file = FOLDER / f"{name}.toml"
    return read_configuration(folder, places, project=file, trusted=True).checked().merged


def outcome(config: ConfigFile, prompt: str, *files: str, **more: Any) -> Decision | Refusal:
    attached = tuple(
        ContextFile(path=file, content="text", content_hash="h", required=True) for file in files
    )
    request = ExecuteRequest(
        input=TaskInput(text=prompt),
        workspace=Workspace(root="/w", referenced_paths=files),
        policy=config.policy(),
        local_preferences=config.local_preferences.travelling(),
        attachments=Attachments(files=attached, instructions=()),
    )
    facts: dict[str, Any] = {
        "models": MODELS,
        "credentials": frozenset({"openai", "anthropic"}),
        **more,
    }
    return decide(Snapshot(request=request, text=prompt, run_id="r", **facts))


def served(config: ConfigFile, prompt: str, *files: str, **more: Any) -> tuple[str | None, str]:
    """Return the rule's name, None for the default route, and the model."""
    decision = outcome(config, prompt, *files, **more)
    assert isinstance(decision, Decision), decision
    rule = decision.routing.matched_rule
    return rule and rule.split(" -> ")[0], str(decision.descriptor.ref)


def test_every_example_is_tried_here() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == {"solo", "team", "cost-aware"}


@pytest.mark.parametrize(
    ("prompt", "files", "expected"),
    [
        ("hello there", (), (None, "ollama/qwen2.5-coder:7b")),
        ("fix the parser", ("src/a.py",), (None, "ollama/qwen2.5-coder:7b")),
        ("plan the new storage", (), ("plans get the strong model", "anthropic/claude-sonnet")),
        (
            "review this",
            ("src/a.py",),
            ("reviews get the strong model, or what is at hand", "anthropic/claude-sonnet"),
        ),
        (
            "plan my week",
            ("notes/week.md",),
            ("notes stay on this machine", "ollama/qwen2.5-coder:7b"),
        ),
    ],
)
def test_solo(tmp_path: Path, prompt: str, files: tuple[str, ...], expected: Any) -> None:
    assert served(load("solo", tmp_path), prompt, *files) == expected


def test_solo_without_a_key_reviews_with_what_is_at_hand(tmp_path: Path) -> None:
    rule, model = served(load("solo", tmp_path), "review @a", "a", credentials=frozenset())
    assert rule == "reviews get the strong model, or what is at hand"
    assert model == "ollama/qwen2.5-coder:7b"


@pytest.mark.parametrize(
    ("prompt", "files", "expected"),
    [
        ("hello", (), (None, "openai/gpt-5.5-mini")),
        ("fix it", ("src/ui.py",), ("edits", "anthropic/claude-sonnet")),
        ("review it", ("src/ui.py",), ("reviews", "anthropic/claude-sonnet")),
        (
            "review it",
            ("src/auth/login.py",),
            ("cryptography is reviewed in house", "openai-compat:inhouse/llama-3.1-70b"),
        ),
        (
            "fix it",
            ("fixtures/customers/a.json",),
            ("customer data stays in house", "openai-compat:inhouse/llama-3.1-70b"),
        ),
        ("fix it", ("src/crypto/aes.py",), ("edits", "openai-compat:inhouse/llama-3.1-70b")),
    ],
)
def test_team(tmp_path: Path, prompt: str, files: tuple[str, ...], expected: Any) -> None:
    assert served(load("team", tmp_path), prompt, *files) == expected


def test_team_gives_a_reviewer_in_house_no_shell(tmp_path: Path) -> None:
    decision = outcome(load("team", tmp_path), "review it", "src/auth/login.py")
    assert isinstance(decision, Decision)
    assert decision.permissions["shell"] is Mode.DENY
    assert decision.permissions["file_read"] is Mode.ALLOW


def test_team_lets_no_customer_file_out_even_without_its_own_server(tmp_path: Path) -> None:
    remote = tuple(model for model in MODELS if not model.local)
    refusal = outcome(load("team", tmp_path), "fix it", "fixtures/customers/a.json", models=remote)
    assert isinstance(refusal, Refusal)
    assert refusal.error.code == "no_route"


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("summarize this", ("summaries cost nothing", "ollama/qwen2.5-coder:7b")),
        ("plan the release", ("plans may cost", "openai/gpt-5.5-thinking")),
        ("fix the typo", ("edits with a small model", "openai/gpt-5.5-mini")),
        ("good morning", (None, "openai/gpt-5.5-mini")),
    ],
)
def test_cost_aware(tmp_path: Path, prompt: str, expected: Any) -> None:
    assert served(load("cost-aware", tmp_path), prompt) == expected


def test_cost_aware_knows_its_ceiling_and_what_a_summary_costs(tmp_path: Path) -> None:
    config = load("cost-aware", tmp_path)
    plan = outcome(config, "plan the release")
    summary = outcome(config, "summarize this")
    assert isinstance(plan, Decision)
    assert isinstance(summary, Decision)
    assert str(plan.cost_limit) == "0.50"
    assert 0 < plan.cost.min < plan.cost.max < plan.cost_limit
    assert summary.cost.max == 0
