"""The scripts that complete the command line, run by the shells they are for."""

import shutil
import subprocess

import asyncclick as click
import pytest

from cli.completion import SHELLS, script
from cli.main import cli
from cli.table import COMMANDS, Section

SHOWN = {name for name, entry in COMMANDS.items() if entry.section is not Section.HIDDEN}
PRINT = """
{script}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
compopt() {{ echo "compopt $*"; }}
_smista
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def scripts():
    assert isinstance(cli, click.Group)
    return {shell: script(shell, cli) for shell in SHELLS}


def run(shell, *words, cwd, text=None):
    done = subprocess.run(
        [shell, *words], cwd=cwd, input=text, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def bash(scripts, cwd, *words):
    text = PRINT.format(script=scripts["bash"])
    # No PATH: nothing but the shell itself takes part.
    return set(
        filter(
            None,
            run("/bin/bash", "-c", f"PATH=; {text}", "-", "smista", *words, cwd=cwd).split("\n"),
        )
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "auth.py").write_text("")
    (tmp_path / "README.md").write_text("")
    return tmp_path


def test_the_first_word_is_a_command_or_a_flag_of_a_prompt(scripts, folder):
    offered = bash(scripts, folder, "")
    assert SHOWN | {"--model", "--json", "--version"} <= offered
    assert bash(scripts, folder, "sta") == {"start", "status"}
    assert "--yes-to" not in offered


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["config", "in"], {"init"}),
        (["config", "show", ""], {"project", "global", "router"}),
        (["credentials", "--global", "set", "ope"], {"openai", "openai-compat:"}),
        (["credentials", "rm", "an"], {"anthropic"}),
        (["apikey", "re"], {"remove"}),
        (["completion", ""], {"bash", "zsh", "fish"}),
        (["run", "--intent", "re"], {"review"}),
        (["--intent", "re"], {"review"}),
        (["run", "--mo"], {"--model"}),
        (["run", "--model", ""], set()),
        (["run", "--file", "RE"], {"README.md"}),
        (["explain", "@README"], {"@README.md"}),
        (["@src"], {"@src/", "compopt -o nospace"}),
        (["review", "@", "src/"], {"@src/auth.py"}),
        (["start", "--pidfile", "sr"], {"src/", "compopt -o nospace"}),
    ],
)
def test_bash_offers_what_can_follow(scripts, folder, words, offered):
    assert bash(scripts, folder, *words) == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_the_script(scripts, folder):
    stubs = """
    compdef() {{ }}; _describe() {{ print -l -- ${{names%%:*}} }}
    _files() {{ print files }}; compadd() {{ shift; print -l -- "$@" }}
    {script}
    words=(smista "$@"); CURRENT=$#words; PREFIX=$words[-1]
    _smista
    """
    text = stubs.format(script=scripts["zsh"])
    assert set(run("zsh", "-fc", text, "-", "", cwd=folder).split()) >= SHOWN
    assert run("zsh", "-fc", text, "-", "config", "", cwd=folder).split()[0] == "init"
    assert "review" in run("zsh", "-fc", text, "-", "run", "--intent", "", cwd=folder).split()


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sta", {"start", "status"}),
        ("config show p", {"project"}),
        ("run --intent re", {"review"}),
        ("credentials rm an", {"anthropic"}),
        ("fix @READ", {"@README.md"}),
    ],
)
def test_fish_offers_what_can_follow(scripts, folder, typed, offered):
    text = f"{scripts['fish']}\ncomplete -C 'smista {typed}'"
    said = run("fish", "--no-config", "-c", text, cwd=folder)
    assert {line.partition("\t")[0] for line in said.splitlines()} == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_starts_no_program(scripts, shell):
    code = "\n".join(line for line in scripts[shell].split("\n") if not line.startswith("#"))
    assert "$(smista" not in code
    assert "(smista" not in code
