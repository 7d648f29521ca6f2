"""What a compatible endpoint is asked in the recorded requests."""

from pathlib import Path

from smista.core.history import Role
from smista.core.intents import Effort
from smista.core.model_ref import Capabilities
from smista.core.prompt import Image, Prompt
from smista.providers.compatible import Compatible
from tests.wire.golden import READ, Golden, crossing, message

NAME = "openai-compat:lab"
FULL = Capabilities(streaming=True, tools=True, system_prompt=True, images=True, reasoning=True)
MODELS = {
    "big": FULL,
    "plain": Capabilities(streaming=True),
    "slow": Capabilities(tools=True, system_prompt=True),
}
PROMPTS = {
    "text": Prompt(
        model="big",
        system="Answer briefly.",
        messages=(message(Role.USER, "What is in the picture?"),),
        images=(Image(media_type="image/png", data="iVBORw0KGgo="),),
        effort=Effort.XHIGH,
        max_output_tokens=512,
    ),
    "two_calls": Prompt(
        model="big",
        system="Use tools.",
        messages=(message(Role.USER, "read a.txt and b.txt"),),
        tools=(READ,),
    ),
    "continued": Prompt(
        model="plain", system="Be kind.", messages=crossing(NAME, "anthropic"), effort=Effort.LOW
    ),
    "not_streamed": Prompt(
        model="slow",
        system="Answer briefly.",
        messages=(message(Role.USER, "hello"),),
        tools=(READ,),
        effort=Effort.HIGH,
    ),
}


def finished(raw: bytes) -> int:
    """Return where the stream tells its end; a whole body ends with its last bracket."""
    return raw.index(b'"finish_reason":"') if b"data:" in raw else len(raw.rstrip())


GOLDEN = Golden(
    folder=Path(__file__).parent,
    dialect=Compatible(provider=NAME, base_url="http://127.0.0.1:8000/v1/", models=MODELS),
    prompts=PROMPTS,
    url="http://127.0.0.1:8000/v1/chat/completions",
    whole=finished,
)
