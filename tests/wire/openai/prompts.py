"""What OpenAI is asked in the recorded requests."""

from pathlib import Path

from smista.core.history import Role
from smista.core.intents import Effort
from smista.core.prompt import Image, Prompt, Tool
from smista.providers.facts import load_facts
from smista.providers.openai import OpenAI
from tests.wire.golden import READ, Golden, crossing, message

ODD = Tool(
    name="files.read/all of them, whatever their names are and wherever they may lie, today",
    description="A name that the wire does not take.",
    permission="file_read",
    parameters={},
)
PROMPTS = {
    "text": Prompt(
        model="gpt-6.2-sol",
        system="Answer briefly.",
        messages=(message(Role.USER, "What is in the picture?"),),
        images=(Image(media_type="image/png", data="iVBORw0KGgo="),),
        effort=Effort.XHIGH,
        max_output_tokens=512,
    ),
    "two_calls": Prompt(
        model="gpt-5.4-mini-2026-03-17",
        system="Use tools.",
        messages=(message(Role.USER, "read a.txt and b.txt"),),
        tools=(READ, ODD),
        effort=Effort.LOW,
    ),
    "continued": Prompt(
        model="gpt-4.1-2025-04-14",
        system="Be kind.",
        messages=crossing("openai", "anthropic"),
        tools=(READ,),
    ),
    "refused": Prompt(
        model="gpt-5-nano",
        system="",
        messages=(message(Role.SYSTEM, "be good"), message(Role.USER, "say it")),
        effort=Effort.XHIGH,
    ),
}
GOLDEN = Golden(
    folder=Path(__file__).parent,
    dialect=OpenAI(efforts=load_facts().efforts),
    prompts=PROMPTS,
    url="https://api.openai.com/v1/responses",
    whole=lambda raw: raw.rindex(b"}"),
)
