"""Skills on disk: found by the front matter of each SKILL.md, read in full once they are needed.

A skill that cannot be used is a warning with a remedy, never an error.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import trio

from cli.failures import BadUsage
from cli.files import Unusable, decode, read_file
from cli.surroundings import Surroundings
from cli.workspace import Collected, is_ours, relative
from smista.core.privacy import Guard
from smista.core.request import Skill
from smista.core.skills import FrontMatter, front_matter
from smista.local.findings import choose

MOST_SKILLS: Final = 100
MOST_BYTES: Final = 64 * 1024
"""How many skills are looked at, and how long one may be: each is sent with every prompt."""
_HEAD: Final = 8 * 1024
_FOLDER: Final = Path(".agents/skills")
_FILE: Final = "SKILL.md"
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSkill:
    """A skill by its front matter alone. *real* is its file, *path* how requests name that."""

    name: str
    description: str
    real: Path
    path: str
    of_project: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSkills:
    """*skills* by name, the project's own before the others; *warnings* say what is amiss."""

    skills: tuple[FoundSkill, ...]
    warnings: tuple[str, ...]


def find_skills(here: Surroundings, lists: Guard | None = None) -> FoundSkills:
    """Return the skills of the project and of its user; blocks.

    *lists*: what they restrict is left out, with a warning.
    """
    warnings: list[str] = []
    found: dict[str, FoundSkill] = {}
    home = here.places.personal.parent
    for folder, of_project in ((here.root, True), (home, False)):
        if not of_project and folder == here.root:
            continue
        for skill in _skills_in(folder, here, lists, warnings, of_project=of_project):
            found.setdefault(skill.name, skill)
    kept = sorted(found.values(), key=lambda skill: (not skill.of_project, skill.name))
    if len(kept) > MOST_SKILLS:
        warnings.append(f"{len(kept)} skills were found; the first {MOST_SKILLS} are used")
    return FoundSkills(skills=tuple(kept[:MOST_SKILLS]), warnings=tuple(warnings))


def load_skills(skills: Iterable[FoundSkill], warnings: list[str]) -> Iterator[Skill]:
    """Yield *skills* in full; what cannot be read any more is a warning. Blocks."""
    for skill in skills:
        try:
            yield _load(skill)
        except Unusable as fault:
            warnings.append(f"skill {skill.name} left out: {fault}")


async def with_skills(
    collected: Collected, here: Surroundings, lists: Guard | None = None
) -> Collected:
    """Return *collected* with all usable skills on offer, and what is amiss with the others."""
    return await trio.to_thread.run_sync(_with_skills, collected, here, lists)


def _with_skills(collected: Collected, here: Surroundings, lists: Guard | None) -> Collected:
    found = find_skills(here, lists)
    warnings = list(found.warnings)
    offered = tuple(load_skills(found.skills, warnings))
    attachments = collected.attachments.model_copy(update={"available_skills": offered})
    notices = (*collected.notices, *warnings)
    return replace(collected, attachments=attachments, notices=notices)


def load_skill(name: str, here: Surroundings, lists: Guard | None = None) -> Skill:
    """Return the skill that the user invokes by *name*; blocks. Raises BadUsage."""
    found = find_skills(here, lists)
    for skill in found.skills:
        if skill.name == name:
            try:
                return _load(skill)
            except Unusable as fault:
                raise BadUsage(f"the skill {name!r} cannot be used: {fault}") from fault
    amiss = [f"\n  {warning}" for warning in found.warnings if f"skill {name} " in warning]
    if not found.skills:
        where = here.root / _FOLDER
        raise BadUsage(f"there is no skill {name!r}; put one into {where}{''.join(amiss)}")
    remedy = choose(name, [skill.name for skill in found.skills])
    raise BadUsage(f"there is no skill {name!r}; {remedy}{''.join(amiss)}")


def _load(skill: FoundSkill) -> Skill:
    content = read_file(skill.real)
    if content is None:
        raise Unusable("it is gone")
    if len(content) > MOST_BYTES:
        raise Unusable(f"{_FILE} is larger than {MOST_BYTES} bytes; shorten it")
    return Skill(name=skill.name, content=decode(content, _FILE), path=skill.path)


def _skills_in(
    folder: Path,
    here: Surroundings,
    lists: Guard | None,
    warnings: list[str],
    *,
    of_project: bool,
) -> Iterator[FoundSkill]:
    for name in _names(folder / _FOLDER, warnings):
        file = folder / _FOLDER / name / _FILE
        try:
            real = _real(file, folder, here, lists)
            front = _front_matter(real)
        except Unusable as fault:
            warnings.append(f"skill {name} left out: {fault}")
            continue
        warnings += [f"skill {name} ({file}): {each}" for each in _amiss(name, front)]
        yield FoundSkill(
            name=name,
            description=front.description or "",
            real=real,
            path=relative(real, here.root.resolve()),
            of_project=of_project,
        )


def _names(folder: Path, warnings: list[str]) -> list[str]:
    """Return the names of the skill directories; a folder that is not there has none."""
    try:
        with os.scandir(folder) as listed:
            # Unlike the entry's own answer, this one is a no for links that lead in a circle.
            entries = [entry for entry in listed if os.path.isdir(entry.path)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        warnings.append(f"no skills from {folder}: {error.strerror}")
        return []
    names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    odd = [name for name in names if not name.isprintable()]
    if odd:
        warnings.append(f"{len(odd)} skills in {folder} have unprintable names; rename them")
    return [name for name in names if name.isprintable()]


def _real(file: Path, folder: Path, here: Surroundings, lists: Guard | None) -> Path:
    """Return the file that *file* really is, if a prompt may hold it. Raises Unusable."""
    try:
        real = file.resolve()
        there = os.path.lexists(file)
    except (OSError, RuntimeError) as error:
        raise Unusable(f"{_FILE} cannot be found: {error}") from error
    if not there:
        raise Unusable(f"there is no {_FILE} in it; add the file or delete the directory")
    if not real.is_relative_to(folder.resolve()):
        raise Unusable(f"{_FILE} leads to {real}, outside of {folder}")
    if is_ours(real, here):
        raise Unusable("smista keeps its own files to itself")
    for path in (relative(file, here.root), relative(real, here.root.resolve())):
        reason = None if lists is None else lists.restricts(path)
        if reason is not None:
            raise Unusable(f"it is restricted: {reason}")
    return real


def _front_matter(real: Path) -> FrontMatter:
    """Return what the head of the file says. Raises Unusable."""
    try:
        # A device may do something when it is opened.
        if not stat.S_ISREG(os.stat(real, follow_symlinks=False).st_mode):
            raise Unusable(f"{_FILE} is not a regular file")
        handle = os.open(real, _READ)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise Unusable(f"{_FILE} is not a regular file")
            if status.st_size > MOST_BYTES:
                raise Unusable(f"{_FILE} is larger than {MOST_BYTES} bytes; shorten it")
            head = os.read(handle, _HEAD)
        finally:
            os.close(handle)
    except OSError as error:
        raise Unusable(f"{_FILE} cannot be read: {error.strerror}") from error
    if b"\0" in head:
        raise Unusable(f"{_FILE} is not text")
    return front_matter(head.decode("utf-8", "replace"))


def _amiss(name: str, front: FrontMatter) -> Iterator[str]:
    if not front.valid:
        yield "invalid front matter; begin the file with a valid --- block"
        return
    if not front.description:
        yield "missing description; add one to the front matter"
    if front.name is not None and front.name != name:
        yield f"its name is {front.name!r}, but the directory's name counts; align the two"
