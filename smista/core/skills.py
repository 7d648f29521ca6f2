"""What a SKILL.md says, to whom: a line about itself on offer, its instructions once it is used."""

import re
from typing import Final

from smista.core.request import Attachments, Skill

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


def offered_skill(attachments: Attachments, name: str) -> Skill | None:
    """Return the skill that goes by *name* in this request; what the user invoked counts too."""
    known = (*attachments.available_skills, *attachments.invoked_skills)
    return next((skill for skill in known if skill.name == name), None)


def instructions(skill: Skill) -> str:
    """Return what a model is to read of *skill*: its text, and where its own files are."""
    front = _FRONT_MATTER.match(skill.content)
    body = skill.content if front is None else skill.content[front.end() :]
    return f"{directory_note(skill)}{body.strip()}"


def directory_note(skill: Skill) -> str:
    """Return the line that says where the relative paths of *skill* begin; empty if unknown."""
    if skill.path is None or "/" not in skill.path:
        return ""
    directory = skill.path.rpartition("/")[0] or "/"
    return f"Relative paths in this skill begin at {directory}.\n\n"
