"""What a SKILL.md says, to whom: a line about itself on offer, its instructions once it is used."""

import re
from dataclasses import dataclass
from typing import Final

from smista.core.request import Attachments, Skill

_FRONT_MATTER: Final = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(.*?\n)?---[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
_MEMBER: Final = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*))?\Z")
_BLOCK: Final = re.compile(r"[>|][+-]?[0-9]?\Z")
_MOST: Final = 1_024
"""Characters of a description that a model is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """*valid*: there is a block, and each of its lines is one that a YAML mapping may have."""

    valid: bool
    name: str | None = None
    description: str | None = None


def front_matter(text: str) -> FrontMatter:
    """Return what a SKILL.md, or its head, says about itself."""
    front = _FRONT_MATTER.match(text)
    members = None if front is None else _members(front[1] or "")
    if members is None:
        return FrontMatter(valid=False)
    return FrontMatter(valid=True, name=members.get("name"), description=members.get("description"))


def _members(block: str) -> dict[str, str] | None:
    """Return the plain texts of a block's top level, None if it is no mapping."""
    found: dict[str, str] = {}
    open_name = ""
    for line in block.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] in " \t-":
            if not found:
                return None
            # A block or a long line goes on; the members of a nested table are not asked for.
            found[open_name] = f"{found[open_name]} {line.strip()}".strip()
            continue
        member = _MEMBER.match(line.rstrip())
        if member is None:
            return None
        open_name, value = member[1], (member[2] or "").strip()
        found[open_name] = "" if _BLOCK.match(value) else value.strip("\"'")
    return found


def description(skill: Skill) -> str:
    """Return the skill's description, else the first line of its text."""
    said = front_matter(skill.content).description
    if said:
        return said
    front = _FRONT_MATTER.match(skill.content)
    body = skill.content[front.end() :] if front is not None else skill.content
    lines = (line.strip("# \t\r") for line in body.split("\n"))
    return next((line for line in lines if line), "")


def summary(skill: Skill) -> str:
    """Return the one line by which a skill is offered to a model."""
    return f"{skill.name}: {' '.join(description(skill).split())[:_MOST]}"


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
