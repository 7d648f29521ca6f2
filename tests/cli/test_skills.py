"""Skills on disk: found, offered, invoked by name, and what is amiss with them."""

import os

import pytest

from cli.failures import BadUsage
from cli.skills import MOST_BYTES, find_skills, load_skill, with_skills
from cli.surroundings import Surroundings
from cli.workspace import Collected
from smista.core.privacy import guard
from smista.core.request import Attachments, Workspace
from smista.core.skills import front_matter, summary
from smista.local.paths import find_places
from tests.actors.house import request

GOOD = "---\nname: review\ndescription: Reviews a change.\n---\n\nLook twice. See checklist.md.\n"


@pytest.fixture
def here(tmp_path):
    home, root = tmp_path / "home", tmp_path / "home/work/project"
    (root / ".agents/skills").mkdir(parents=True)
    (home / ".agents/skills").mkdir(parents=True)
    return Surroundings(
        start=root, root=root, places=find_places({}, home), umask=0o022, environ={}
    )


def write(folder, name, text=GOOD):
    place = folder / ".agents/skills" / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "SKILL.md").write_text(text)
    return place / "SKILL.md"


def home_of(here):
    return here.places.personal.parent


def test_a_projects_skill_wins_over_a_global_one_of_the_same_name(here):
    write(here.root, "review")
    write(home_of(here), "review", GOOD.replace("Reviews", "Ignores"))
    write(home_of(here), "zip", GOOD.replace("review", "zip"))
    found = find_skills(here)
    assert [(s.name, s.of_project) for s in found.skills] == [("review", True), ("zip", False)]
    assert found.skills[0].description == "Reviews a change."
    assert found.skills[0].path == ".agents/skills/review/SKILL.md"
    assert found.skills[1].path.startswith("/")
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("---\nname: review\n---\nbody", "missing description"),
        ("---\nname: other\ndescription: d\n---\nbody", "align the two"),
        ("no block at all", "invalid front matter"),
        ("---\nname: review\ndescription: d\nbody without an end", "invalid front matter"),
        ("---\n- a\n- list\n---\nbody", "invalid front matter"),
        ("---\n\tx\n---\nbody", "invalid front matter"),
    ],
)
def test_a_skill_that_looks_misconfigured_is_used_with_a_warning(here, text, warning):
    write(here.root, "review", text)
    found = find_skills(here)
    assert [s.name for s in found.skills] == ["review"]
    assert len(found.warnings) == 1
    assert warning in found.warnings[0]


def test_what_is_huge_binary_missing_no_file_or_leads_outside_is_a_warning(here):
    write(here.root, "good", GOOD.replace("name: review", "name: good"))
    write(here.root, "huge", GOOD + "x" * MOST_BYTES)
    write(here.root, "binary").write_bytes(b"---\n\0\1\2")
    (here.root / ".agents/skills/empty").mkdir()
    (here.root / ".agents/skills/fifo").mkdir()
    os.mkfifo(here.root / ".agents/skills/fifo/SKILL.md")
    (here.root / ".agents/skills/folder/SKILL.md").mkdir(parents=True)
    outside = home_of(here) / "secret"
    outside.write_text("SECRET")
    (here.root / ".agents/skills/outside").mkdir()
    (here.root / ".agents/skills/outside/SKILL.md").symlink_to(outside)
    (here.root / ".agents/skills/loop").mkdir()
    (here.root / ".agents/skills/loop/SKILL.md").symlink_to("SKILL.md")
    (here.root / ".agents/skills/dangling").mkdir()
    (here.root / ".agents/skills/dangling/SKILL.md").symlink_to("nowhere")
    (here.root / ".agents/skills/a-file").write_text("no directory")
    found = find_skills(here)
    assert [s.name for s in found.skills] == ["good"]
    text = "\n".join(found.warnings)
    assert len(found.warnings) == 8
    for name in ("huge", "binary", "empty", "fifo", "folder", "outside", "loop", "dangling"):
        assert f"skill {name} left out" in text or f"skill {name} (" in text
    assert "add the file or delete the directory" in text
    assert "SECRET" not in text


def test_a_link_in_a_circle_costs_no_other_skill(here):
    write(here.root, "review")
    (here.root / ".agents/skills/round").symlink_to("round")
    (skill,) = find_skills(here).skills
    assert skill.name == "review"


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_an_unreadable_skill_is_a_warning(here):
    write(here.root, "review").chmod(0)
    found = find_skills(here)
    assert found.skills == ()
    assert "cannot be read" in found.warnings[0]


def test_a_folder_of_skills_that_is_a_link_to_elsewhere_offers_none(here, tmp_path):
    write(tmp_path / "elsewhere", "review")
    (here.root / ".agents/skills").rmdir()
    (here.root / ".agents/skills").symlink_to(tmp_path / "elsewhere/.agents/skills")
    found = find_skills(here)
    assert found.skills == ()
    assert "outside of" in found.warnings[0]


def test_a_restricted_skill_is_left_out(here):
    write(here.root, "review")
    policy = {
        **request().policy.model_dump(mode="json"),
        "privacy": {"restricted_paths": [".agents/skills/review/**"]},
    }
    lists = guard(request(policy=policy).policy, str(here.root))
    found = find_skills(here, lists)
    assert found.skills == ()
    assert "restricted" in found.warnings[0]


async def test_skills_go_along_in_full_with_their_warnings(here):
    write(here.root, "review")
    write(here.root, "huge", GOOD + "x" * MOST_BYTES)
    bare = Collected(
        workspace=Workspace(root=str(here.root), referenced_paths=()),
        attachments=Attachments(files=(), instructions=()),
        notices=("first",),
    )
    collected = await with_skills(bare, here)
    (skill,) = collected.attachments.available_skills
    assert (skill.name, skill.content) == ("review", GOOD)
    assert collected.notices[0] == "first"
    assert "huge" in collected.notices[1]


def test_a_skill_is_invoked_by_name_and_a_slip_is_told(here):
    write(here.root, "review")
    assert load_skill("review", here).content == GOOD
    with pytest.raises(BadUsage, match="did you mean 'review'"):
        load_skill("reveiw", here)
    (here.root / ".agents/skills/review/SKILL.md").write_bytes(b"---\nname: a\n---\n\xff")
    with pytest.raises(BadUsage, match="not UTF-8"):
        load_skill("review", here)
    (here.root / ".agents/skills/review/SKILL.md").unlink()
    with pytest.raises(BadUsage, match="there is no skill 'review'"):
        load_skill("review", here)


@pytest.mark.parametrize(
    ("block", "description"),
    [
        ("description: plain", "plain"),
        ('description: "quoted: with a colon"', "quoted: with a colon"),
        ("description: >\n  folded over\n  two lines", "folded over two lines"),
        ("description: |-\n  kept\n", "kept"),
        ("description: long\n  goes on", "long goes on"),
        ("metadata:\n  description: not this\ndescription: this", "this"),
        ("# a comment\ndescription: d", "d"),
        ("description:", ""),
    ],
)
def test_the_usual_forms_of_a_description_are_read(block, description):
    assert (front_matter(f"---\n{block}\n---\nbody").description or "") == description


def test_a_long_description_is_cut_where_a_model_sees_it(here):
    write(here.root, "review", f"---\ndescription: {'d' * 5_000}\n---\nbody")
    assert len(summary(load_skill("review", here))) < 1_100
