"""What Gemini is asked in the recorded requests."""

from pathlib import Path

from smista.core.history import Role
from smista.core.intents import Effort
from smista.core.prompt import Image, Prompt, Tool
from smista.providers.gemini import Gemini
from tests.wire.golden import READ, Golden, crossing, message

DOTTED = Tool(name="notes.list", description="List.", permission="file_read", parameters={})
PROMPTS = {
    "text": Prompt(
        model="gemini-2.5-flash",
        system="Answer briefly.",
        messages=(message(Role.USER, "What is in the picture?"),),
        images=(Image(media_type="image/png", data="iVBORw0KGgo="),),
        effort=Effort.XHIGH,
        max_output_tokens=4000,
    ),
    "two_calls": Prompt(
        model="gemini-3.8-flash",
        system="Use tools.",
        messages=(message(Role.USER, "read a.txt and list"),),
        tools=(READ, DOTTED),
        effort=Effort.MEDIUM,
    ),
    "continued": Prompt(
        model="gemini-4-neon",
        system="",
        messages=crossing("gemini", "anthropic"),
        tools=(READ,),
    ),
    "blocked": Prompt(
        model="gemma-3-27b-it",
        system="Be kind.",
        messages=(message(Role.USER, "say it"),),
        tools=(READ,),
        effort=Effort.LOW,
    ),
}
GOLDEN = Golden(
    folder=Path(__file__).parent,
    dialect=Gemini(),
    prompts=PROMPTS,
    url="https://generativelanguage.googleapis.com/v1beta/models"
    "/{model}:streamGenerateContent?alt=sse",
    # A JSON text is whole with its last bracket; the line's end adds nothing.
    whole=lambda raw: len(raw.rstrip()),
)
