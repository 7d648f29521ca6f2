"""What a SKILL.md says about itself: name and description, read without a YAML parser."""

import re
from typing import Final

from smista.core.request import Skill

_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_DESCRIPTION: Final = re.compile(r"^description:[ \t]*(.*?)[ \t]*\r?$", re.MULTILINE)


def description(skill: Skill) -> str:
    """Return the skill's description, else the first line of its text."""
    front = _FRONT_MATTER.match(skill.content)
    if front is not None and (found := _DESCRIPTION.search(front[1])) and found[1]:
        return found[1].strip("\"'")
    body = skill.content[front.end() :] if front is not None else skill.content
    lines = (line.strip("# \t\r") for line in body.split("\n"))
    return next((line for line in lines if line), "")


def summary(skill: Skill) -> str:
    """Return the one line by which a skill is offered to a model."""
    return f"{skill.name}: {description(skill)}"
