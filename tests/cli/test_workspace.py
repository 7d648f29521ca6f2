"""What a prompt refers to goes along; what does not fit is said."""

import os
from dataclasses import replace
from hashlib import sha256

import pytest

from cli.workspace import collect, referenced
from tests.cli.ground import surroundings

CONTENT = "é\r\n".encode()


@pytest.fixture
def here(tmp_path):
    return surroundings(tmp_path)


def attached(collected):
    return [file.path for file in collected.attachments.files]


async def test_a_referenced_file_goes_along_as_required(here):
    (here.root / "src").mkdir()
    (here.root / "src" / "a.py").write_bytes(CONTENT)
    collected = await collect("review @src/a.py", here)
    (file,) = collected.attachments.files
    assert (file.path, file.content, file.required) == ("src/a.py", "é\r\n", True)
    assert file.content_hash == f"sha256:{sha256(CONTENT).hexdigest()}"
    assert file.paths == ("src/a.py",)
    assert collected.workspace.referenced_paths == ("src/a.py",)
    assert collected.workspace.root == str(here.root)
    assert collected.notices == ()


async def test_paths_start_where_smista_was_started(tmp_path):
    here = surroundings(tmp_path)
    (here.root / "sub").mkdir()
    (here.root / "sub" / "a.py").touch()
    here = surroundings(tmp_path, start=here.root / "sub")
    assert attached(await collect("see @a.py and @./a.py", here)) == ["sub/a.py"]


async def test_a_file_outside_the_root_is_named_absolutely(here, tmp_path):
    (tmp_path / "notes.md").write_text("x")
    outside = str(tmp_path / "notes.md")
    collected = await collect(f"@{outside} @../notes.md", here)
    assert attached(collected) == [outside]


async def test_a_link_says_where_it_leads(here):
    (here.root / "real.py").write_text("x")
    (here.root / "link.py").symlink_to("real.py")
    (file,) = (await collect("@link.py", here)).attachments.files
    assert file.paths == ("link.py", "real.py")


@pytest.mark.parametrize("prompt", ["@", "@missing.py", "@folder", "me@a.py", "@a.py.bak"])
def test_what_names_no_file_is_plain_text(here, prompt):
    (here.root / "a.py").touch()
    (here.root / "folder").mkdir()
    assert list(referenced(prompt, here.start)) == []


@pytest.mark.parametrize(
    ("prompt", "named"),
    [
        ("see @missing.py, and @missing.py", "@missing.py"),
        ("@src/gone (@./x.)", "@src/gone, @./x"),
        ("@folder/", "@folder/"),
        ("@there.py @dataclass me@a.py @@ -1 +1 @@ @ @, @... @" + "x" * 5000, None),
        (" ".join(f"@{n}.py" for n in range(7)), "@0.py, @1.py, @2.py, @3.py, @4.py and 2 more"),
    ],
)
async def test_a_reference_to_nothing_is_said_and_sent_as_it_stands(here, prompt, named):
    (here.root / "there.py").touch()
    (here.root / "folder").mkdir()
    notices = (await collect(prompt, here)).notices
    said = () if named is None else (f"no such file, left as it stands: {named}",)
    assert notices == said


@pytest.mark.parametrize("prompt", ["(see @a.py)", "@a.py, please", "“@x” @a.py?!", "@a.py\tx"])
def test_punctuation_is_no_part_of_a_path(here, prompt):
    (here.root / "a.py").touch()
    assert list(referenced(prompt, here.start)) == [here.root / "a.py"]


def test_a_file_whose_name_ends_in_punctuation_is_found(here):
    (here.root / "what?").touch()
    assert list(referenced("@what?", here.start)) == [here.root / "what?"]


async def test_what_is_not_text_stays_and_is_said(here):
    (here.root / "a.bin").write_bytes(b"\xff\xfe")
    collected = await collect("@a.bin", here)
    assert attached(collected) == []
    assert any("a.bin" in notice and "UTF-8" in notice for notice in collected.notices)


async def test_smistas_own_files_never_go_along(here):
    (here.root / ".smista").mkdir()
    (here.root / ".smista" / "secrets").write_text('router = "canary"')
    here.places.config.mkdir()
    (here.places.config / "config.toml").write_text("x = 1")
    (here.root / "innocent").symlink_to(here.root / ".smista" / "secrets")
    prompt = f"@.smista/secrets @innocent @{here.places.config}/config.toml"
    collected = await collect(prompt, here)
    assert attached(collected) == []
    assert len(collected.notices) == 3


async def test_instructions_of_the_root_go_along(here):
    (here.root / "AGENTS.md").write_text("be brief")
    (instruction,) = (await collect("hi", here)).attachments.instructions
    assert (instruction.source, instruction.content) == ("AGENTS.md", "be brief")


async def test_instructions_that_lead_elsewhere_stay(here, tmp_path):
    (tmp_path / "id_rsa").write_text("canary")
    (here.root / "AGENTS.md").symlink_to(tmp_path / "id_rsa")
    collected = await collect("hi", here)
    assert collected.attachments.instructions == ()
    assert any("AGENTS.md" in notice for notice in collected.notices)


async def test_instructions_that_lead_in_a_circle_are_left_out(here):
    (here.root / "AGENTS.md").symlink_to("AGENTS.md")
    collected = await collect("hi", here)
    assert collected.attachments.instructions == ()
    assert any("AGENTS.md" in notice for notice in collected.notices)


async def test_a_fifo_in_place_of_instructions_holds_nobody(here):
    os.mkfifo(here.root / "AGENTS.md")
    collected = await collect("hi", here)
    assert collected.attachments.instructions == ()
    assert any("AGENTS.md" in notice for notice in collected.notices)


async def test_instructions_go_along_from_the_root_down_to_where_smista_was_started(here):
    deep = here.root / "a" / "b"
    deep.mkdir(parents=True)
    (here.root / "AGENTS.md").write_text("root")
    (deep / "AGENTS.md").write_text("deep")
    (here.root / "a" / "other").mkdir()
    (here.root / "a" / "other" / "AGENTS.md").write_text("beside")
    collected = await collect("hello", replace(here, start=deep))
    told = [(each.source, each.content) for each in collected.attachments.instructions]
    assert told == [("AGENTS.md", "root"), ("a/b/AGENTS.md", "deep")]
