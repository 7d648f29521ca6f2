"""What deciding a turn costs, and how the cost grows with rules and candidates."""

from functools import partial

from bench.figures import Figure, in_turns
from smista.core.decision import Decision
from smista.core.history import Message, Role
from smista.core.model_ref import Capabilities, ModelDescriptor
from smista.core.pipeline import decide
from smista.core.request import ExecuteRequest
from smista.core.snapshot import Fact, Snapshot

ROUNDS = 60
FACTORS = (1, 10, 100)
_ROOT = "/home/u/project"


async def measure() -> list[Figure]:
    """Return a typical and a large decision, and a typical one grown, as multiples of itself."""
    cases = {
        "large": situation(rules=200, messages=200, files=200, facts=100, models=30),
        **{f"typical x {factor}": typical(factor) for factor in FACTORS},
    }
    samples = await in_turns(ROUNDS, {name: partial(_decide, cases[name]) for name in cases})
    least = samples["typical x 1"]
    grown = [
        Figure(name=f"decision, typical x {factor}", samples=taken, baseline=least)
        for factor in FACTORS[1:]
        if (taken := samples[f"typical x {factor}"])
    ]
    return [
        Figure(name="decision, typical", samples=least, at_most=0.5),
        *grown,
        Figure(name="decision, large", samples=samples["large"], baseline=least, at_most=5),
    ]


async def _decide(snapshot: Snapshot) -> None:
    if not isinstance(decide(snapshot), Decision):
        raise TypeError("the bench's situation is meant to be decided")


def typical(factor: int = 1) -> Snapshot:
    """Return ten rules and twenty candidates, each *factor* times, over eight models."""
    return situation(
        rules=10 * factor, messages=12 * factor, files=6 * factor, facts=2 * factor, models=8
    )


def situation(*, rules: int, messages: int, files: int, facts: int, models: int) -> Snapshot:
    """Return a snapshot in which no rule fits, so that each is looked at."""
    said = "Please look at the parser in src/part1/file1.py. " * 4
    roles = (Role.USER, Role.ASSISTANT)
    return Snapshot(
        request=_request(rules, files),
        text="explain what the parser does",
        run_id="run",
        history=tuple(
            Message(uuid=f"m{n}", role=roles[n % 2], text=f"{n} {said}", run_id=f"r{n // 2}")
            for n in range(messages)
        ),
        models=tuple(_model(n) for n in range(models)),
        memory=tuple(Fact(id=f"f{n}", scope="user", text=f"fact {n}") for n in range(facts)),
    )


def _model(number: int) -> ModelDescriptor:
    return ModelDescriptor(
        provider="ollama",
        model=f"m{number}",
        local=True,
        auth="none",
        capabilities=Capabilities(streaming=True, tools=True, system_prompt=True),
        max_context_tokens=400_000,
    )


def _request(rules: int, files: int) -> ExecuteRequest:
    paths = [f"src/part{n}/file{n}.py" for n in range(files)]
    return ExecuteRequest.model_validate(
        {
            "input": {"text": "explain what the parser does"},
            "workspace": {"root": _ROOT, "referenced_paths": paths[:20]},
            "policy": {
                "version": 1,
                "source": "merged",
                "classification": {"rules": [{"intent": "plan", "keywords": ["plan", "roadmap"]}]},
                "routing": {
                    "default": {"model": "ollama/m0"},
                    "rules": [_rule(n) for n in range(rules)],
                },
                "tools": {"permissions": {"shell": "ask"}},
                "privacy": {"restricted_paths": ["**/*.pem", "secrets/**", ".env*"]},
            },
            "local_preferences": {"auto_apply": False, "local_only": False, "no_network": False},
            "attachments": {
                "files": [
                    {
                        "path": path,
                        "content": f"# {path}\n" + "x = 1\n" * 50,
                        "content_hash": path,
                        "required": False,
                    }
                    for path in paths
                ],
                "instructions": [{"source": "AGENTS.md", "content": "Be brief."}],
            },
        }
    )


def _rule(number: int) -> dict[str, object]:
    paths = [f"lib/part{number}/**", f"**/*.x{number}"]
    return {"name": f"r{number}", "priority": number, "paths": paths, "model": "ollama/m1"}
