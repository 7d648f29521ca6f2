"""What Anthropic is asked in the recorded requests."""

from pathlib import Path

from smista.core.history import Role
from smista.core.intents import Effort
from smista.core.prompt import Image, Prompt
from smista.providers.anthropic import Anthropic
from tests.wire.golden import READ, Golden, crossing, message

PROMPTS = {
    "text": Prompt(
        model="claude-opus-5-5",
        system="Answer briefly.",
        messages=(message(Role.USER, "What is in the picture?"),),
        images=(Image(media_type="image/png", data="iVBORw0KGgo="),),
        effort=Effort.XHIGH,
        max_output_tokens=512,
    ),
    "two_calls": Prompt(
        model="claude-haiku-4-5-20251001",
        system="Use tools.",
        messages=(message(Role.USER, "read a.txt and b.txt"),),
        tools=(READ,),
        effort=Effort.HIGH,
    ),
    "continued": Prompt(
        model="claude-sonnet-4-6",
        system="Be kind.",
        messages=crossing("anthropic", "openai"),
        tools=(READ,),
        effort=Effort.XHIGH,
    ),
    "refused": Prompt(
        model="claude-sonnet-5-5", system="", messages=(message(Role.USER, "say it"),)
    ),
}
GOLDEN = Golden(
    folder=Path(__file__).parent,
    dialect=Anthropic(),
    prompts=PROMPTS,
    url="https://api.anthropic.com/v1/messages",
    whole=lambda raw: raw.index(b'"stop_reason":"'),
)
