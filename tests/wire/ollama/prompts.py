"""What Ollama is asked in the recorded requests."""

from pathlib import Path
from typing import Any

from smista.core.history import Role
from smista.core.intents import Effort
from smista.core.prompt import Image, Prompt
from smista.providers.ollama import Ollama
from smista.providers.ollama_facts import OllamaModel, read_model
from tests.wire.golden import READ, Golden, crossing, message

PROMPTS = {
    "text": Prompt(
        model="qwen3-vl:8b",
        system="Answer briefly.",
        messages=(message(Role.USER, "What is in the picture?"),),
        images=(Image(media_type="image/png", data="iVBORw0KGgo="),),
        effort=Effort.XHIGH,
        max_output_tokens=512,
    ),
    "two_calls": Prompt(
        model="gpt-oss:20b",
        system="Use tools.",
        messages=(message(Role.USER, "read a.txt and b.txt"),),
        tools=(READ,),
        effort=Effort.XHIGH,
    ),
    "continued": Prompt(
        model="qwen2.5-coder:7b",
        system="Be kind.",
        messages=crossing("ollama", "anthropic"),
        tools=(READ,),
    ),
}
LEVELS = {"gpt-oss:20b": ("low", "medium", "high")}


def known(name: str, *, window: int = 131_072, values: Any = (False, True)) -> OllamaModel:
    shown = {"model_info": {"a.context_length": window}, "thinking": {"values": list(values)}}
    model = read_model(name, shown, local=True, auth="none")
    assert model is not None
    return model


GOLDEN = Golden(
    folder=Path(__file__).parent,
    dialect=Ollama(known=lambda name: known(name, values=LEVELS.get(name, (False, True)))),
    prompts=PROMPTS,
    url="http://127.0.0.1:11434/api/chat",
    whole=lambda raw: len(raw.rstrip()),
    kind="jsonl",
)
