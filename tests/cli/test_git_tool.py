"""git under the model's hands: what only reads runs, all else is asked, nothing leaks."""

import os
import subprocess

import pytest

from cli.files import Unusable
from cli.git_words import is_harmless, shows_content
from cli.host import TerminalHost
from cli.permissions import denied, mode_of
from cli.tools import perform, prepare
from smista.core.events import ToolRequest
from smista.core.intents import Mode
from smista.core.policy import ToolsConfig
from tests.cli.ground import call, surroundings
from tests.cli.test_finding import guarded

HARMLESS = """
status|status -s|status --porcelain -b|status -- src|log|log --oneline -5|log -n 3 --stat
log -p -2 -- src/a.py|log main..dev|log --format=%h%x20%s|log --since=yesterday --author=ann
log --pretty=oneline|diff|diff --stat|diff HEAD~1 -- a.py|diff --cached|diff main...dev|show
show HEAD:src/a.py|show --name-only HEAD|branch|branch -vv|branch --show-current|tag -l|remote
stash list|rev-parse HEAD|rev-parse --abbrev-ref HEAD|ls-files|ls-files -o --exclude-standard
blame a.py|blame -L 1,2 a.py|shortlog -sn HEAD|shortlog -s -n HEAD|describe --tags|grep -n two
"""
ASKED = """
|--version|-C / status|-c core.pager=sh status|-c alias.x=!sh x|--git-dir=/ log|--exec-path=x log
--work-tree=/ diff|-p log|--no-pager log|diff --no-index /etc/passwd a|diff --no-index a b
diff /etc/passwd a|diff -- /etc/passwd|diff ../x|diff --output=x|diff --outp=x|diff -Ox|diff -O x
diff --ext-diff|diff --textconv|diff --src-prefix=x|log --output=x|log --ext-diff|log --textconv
log -- ../..|log -- :/|log -- :(top)|log --show-signature|log --format=%G?|log --pretty=mine
log --pretty=format:%G?|log --pretty=%G?|log --format=%(trailers)|log -L1,2:a|log -Skey|log -Gkey
log --stdin|log --exec=x|log ~root|show HEAD:../x|show :/fix|show --textconv HEAD:a
branch new|branch -D main|branch -d x|branch -m a b|branch -f x|branch --edit-description|tag v1
tag -d v1|tag -a v1|remote -v|remote add x y|remote update|stash|stash pop|stash drop|stash show -p
stash list -p|rev-parse --git-path x|rev-parse --parseopt|ls-files ../..
ls-files --recurse-submodules
blame --contents /etc/passwd a|blame -S x a|blame ../a|grep -O two|grep -Oless two
grep --open-files-in-pager two|grep --no-index two /|grep -f /etc/passwd|grep --untracked two
grep two -- /etc|grep two ../..|cat-file -p HEAD|config -l|config alias.x !sh|checkout main
clean -fdx
reset --hard|commit -m x|push|push --force|fetch|pull|clone x|add .|rm a|mv a b|rebase -i|merge x
gc|filter-branch x|worktree add ../x|submodule foreach sh|bisect run sh|difftool|mergetool
archive HEAD
bundle create x|fast-export --all|daemon|upload-pack .|help log|var -l|notes|am|apply x
hook run x|X|log
"""
HARMLESS = [line for line in HARMLESS.strip().replace("\n", "|").split("|") if line]
ASKED = ASKED.strip("\n").replace("\n", "|").split("|")[:-1]


@pytest.mark.parametrize("line", [line for line in HARMLESS if line != "shortlog -sn HEAD"])
def test_what_only_reads_is_harmless(line):
    assert is_harmless(line.split(" "))


@pytest.mark.parametrize("line", ASKED)
def test_everything_else_is_not(line):
    assert not is_harmless(line.split(" "))


@pytest.mark.parametrize(
    ("line", "shows"),
    [
        ("status", False),
        ("status -s --ignored -uall", False),
        ("status -v", True),
        ("diff --check", True),
        ("commit -qv", True),
        ("log --oneline", False),
        ("log -p", True),
        ("log -U9", True),
        ("log --cc", True),
        ("diff", True),
        ("diff --stat", False),
        ("diff --stat -p", True),
        ("show HEAD", True),
        ("show --name-only HEAD:x", True),
        ("show -s HEAD", False),
        ("blame a", True),
        ("grep x", True),
        ("cat-file -p x", True),
        ("commit -m x", False),
        ("commit -v", True),
        ("alias-of-mine", True),
        ("-C x status", True),
    ],
)
def test_what_may_show_the_content_of_files_is_known(line, shows):
    assert shows_content(line.split(" ")) is shows


@pytest.fixture
def here(tmp_path):
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_DIR": "/nowhere"}
    here = surroundings(tmp_path, environ=environ)
    git(here, "init", "-q", "-b", "main")
    git(here, "config", "user.email", "a@example.org")
    git(here, "config", "user.name", "a")
    (here.root / "a.py").write_text("one\n")
    (here.root / ".env").write_text("KEY=canary1\n")
    (here.root / "sub").mkdir()
    (here.root / "sub" / "my.PEM").write_text("canary2\n")
    git(here, "add", "-f", ".")
    git(here, "commit", "-q", "-m", "first")
    (here.root / "a.py").write_text("two\n")
    (here.root / ".env").write_text("KEY=canary3\n")
    return here


def git(here, *words):
    environ = {"PATH": os.environ["PATH"], "HOME": str(here.root.parent)}
    ran = subprocess.run(
        ["git", *words], cwd=here.root, env=environ, check=True, capture_output=True, text=True
    )
    return ran.stdout.strip()


async def run(here, *words, restricted=(".env", "*.pem")):
    prepared = prepare(call("git", arguments=list(words)), here, guard=guarded(here, *restricted))
    return prepared, await perform(prepared, here)


@pytest.mark.parametrize(
    "words",
    [
        ["diff"],
        ["diff", "HEAD"],
        ["diff", "HEAD", "--", "."],
        ["show"],
        ["show", "HEAD"],
        ["log", "-p"],
        ["log", "-p", "--", "."],
        ["grep", "canary"],
        ["grep", "canary", "HEAD"],
    ],
)
async def test_restricted_files_are_left_out_of_what_is_shown(here, words):
    prepared, outcome = await run(here, *words)
    assert prepared.confined
    assert "canary" not in outcome.content
    assert outcome.restricted is None


@pytest.mark.parametrize(
    "words",
    [
        ["show", "HEAD:.env"],
        ["show", "HEAD:sub/my.PEM"],
        ["blame", ".env"],
        ["diff", "HEAD", "--", ".env"],
        ["cat-file", "-p", "HEAD:.env"],
        ["stash", "show", "-p"],
        ["log", "-p", "--cc"],
        ["diff", "--no-index", "/dev/null", ".env"],
        ["archive", "HEAD"],
        ["-C", ".", "diff"],
    ],
)
async def test_what_could_be_restricted_is_marked_or_empty(here, words):
    _, outcome = await run(here, *words)
    assert outcome.restricted or "canary" not in outcome.content


async def test_content_that_is_named_by_its_id_alone_counts_as_restricted(here):
    file, folder = (git(here, "rev-parse", f"HEAD:{name}") for name in (".env", "sub"))
    git(here, "tag", "kept", file)
    for words in (
        ["show", file],
        ["show", "--stat", "kept"],
        ["diff", f"{file}..HEAD:a.py"],
        ["diff", folder, "HEAD"],
        ["grep", "canary", folder],
        ["show", f"{folder}:my.PEM"],
    ):
        _, outcome = await run(here, *words, restricted=(".env", "sub/**"))
        assert outcome.restricted, words


async def test_many_files_can_be_shown_at_once(here):
    _, outcome = await run(here, "diff", "--", "a.py", *(f"{n}.py" for n in range(30)))
    assert "+two" in outcome.content
    assert outcome.restricted is None


async def test_a_commit_named_by_its_id_is_shown(here):
    _, outcome = await run(here, "show", git(here, "rev-parse", "HEAD"))
    assert "+one" in outcome.content
    assert outcome.restricted is None


async def test_a_pattern_that_git_does_not_know_is_seen_by_its_names(here):
    _, outcome = await run(here, "diff", restricted=("{.env,x}",))
    assert "canary" in outcome.content
    assert outcome.restricted


async def test_plain_work_is_shown_and_free(here):
    _, outcome = await run(here, "diff", "a.py")
    assert "-one\n+two\n" in outcome.content
    assert (outcome.is_error, outcome.restricted) == (False, None)
    _, outcome = await run(here, "show", "HEAD:a.py")
    assert (outcome.content, outcome.restricted) == ("one\n\n[exit code 0]", None)
    _, outcome = await run(here, "status", "-s")
    assert " M a.py" in outcome.content


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.fsmonitor", "touch {}"),
        ("core.hooksPath", "."),
        ("filter.x.clean", "touch {}"),
        ("diff.external", "touch {}"),
        ("diff.x.textconv", "touch {}"),
        ("alias.status", "!touch {}"),
        ("include.path", "x"),
        ("core.worktree", "/"),
        ("gpg.program", "x"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
    ],
)
def test_a_repository_that_brings_programs_along_is_asked_about(here, key, value):
    git(here, "config", key, value.format(here.root / "marker"))
    assert not prepare(call("git", arguments=["status"]), here).confined


def test_another_repository_in_the_place_of_this_one_is_asked_about(here):
    (here.root / ".git/commondir").write_text("other")
    (here.root / ".git/config").rename(here.root / "config")
    assert not prepare(call("git", arguments=["status"]), here).confined


def test_a_folder_that_is_no_repository_of_its_own_is_asked_about(tmp_path):
    assert not prepare(call("git", arguments=["status"]), surroundings(tmp_path)).confined


@pytest.mark.parametrize("arguments", [None, [], "status", [1], ["a\0"], [["status"]], ["\ud800"]])
def test_bad_arguments_are_told(here, arguments):
    with pytest.raises(Unusable):
        prepare(call("git", arguments=arguments), here)


async def test_nobody_is_asked_for_a_password_or_a_message(here):
    _, outcome = await run(here, "commit", "-a")
    assert outcome.is_error
    _, outcome = await run(here, "clone", "https://user@127.0.0.1:1/x")
    assert outcome.is_error


def mode(here, words, restricted=False, **permissions):
    request = ToolRequest("c", "git", {"arguments": words}, "allow", restricted)
    return mode_of(request, prepare(request, here), ToolsConfig(permissions=permissions))


def test_git_under_allow_runs_what_is_harmless_and_asks_else(here):
    assert mode(here, ["status"], git="allow") is Mode.ALLOW
    assert mode(here, ["commit", "-m", "x"], git="allow") is Mode.ASK
    assert mode(here, ["status"]) is Mode.ASK
    assert mode(here, ["status"], git="deny") is Mode.DENY


LOSES = """
rebase main|reset --hard|reset|filter-branch|update-ref -d x|gc --prune=now|reflog expire --all
commit --amend|commit --am|push --force|push -f origin main|push origin +main|push origin :gone
push --delete origin x|push --mirror|push --force-with-lease|branch -D x|branch -f main HEAD~1
branch -M a b|tag -d v1|tag -f v1|checkout -f main|checkout -B main|checkout -- .|checkout .
switch -C main|switch --discard-changes main|stash drop|stash clear|stash pop|clean -fdx|restore .
worktree remove x|remote rm origin|notes remove|rm -f a|pull --rebase|pull --force|replace a b
-c alias.x=reset x|-C . reset --hard|unknown-alias|read-tree -u x|fast-import|symbolic-ref HEAD x
"""
KEEPS = """
add .|commit -m x|commit --all -m x|merge dev|cherry-pick x|revert x|push|push origin HEAD:main
push -u origin main|fetch|fetch origin|pull|branch new|tag v1|checkout -b new|checkout main
switch -c new|stash|stash push|clone x|init|mv a b|rm a|-c user.name=x commit -m y|worktree add x
"""


@pytest.mark.parametrize("line", LOSES.strip().replace("\n", "|").split("|"))
def test_what_may_lose_work_is_never_agreed_to_in_advance(here, line):
    prepared = prepare(call("git", arguments=line.split()), here)
    assert "history" in prepared.warning


@pytest.mark.parametrize("line", KEEPS.strip().replace("\n", "|").split("|"))
def test_what_only_adds_may_be_agreed_to_in_advance(here, line):
    assert prepare(call("git", arguments=line.split()), here).warning is None


FURTHER = """
grep -Osh x|grep --open-files-in-pager=sh x|grep --op=sh x|diff --output=/tmp/x|log --outp /tmp/x
show --ext-diff|diff --textconv|init --template=/tmp/x|diff --no-index a /etc/passwd
-c core.fsmonitor=x status|-c user.name=x -c core.editor=x commit|--config-env=a.b=C status
-C /tmp status|--git-dir=/tmp/x status|--work-tree=/ add .|--exec-path=/tmp status
fetch --upload-pack=x|push --receive-pack=x|push --exec=x|clone -c core.x=y a b|clone -u x a b
clone --config core.x=y a|clone --template=x a
"""


@pytest.mark.parametrize("line", FURTHER.strip().replace("\n", "|").split("|"))
def test_what_starts_other_programs_is_never_agreed_to_in_advance(here, line):
    prepared = prepare(call("git", arguments=line.split()), here)
    assert "other programs" in prepared.warning


async def test_yes_to_git_is_no_yes_to_losing_work(here):
    host = TerminalHost(here, ToolsConfig(), terminal=None, named=frozenset({"git"}))
    kept, lost = await host.run_tools(
        (
            call("git", arguments=["tag", "kept"]),
            call("git", arguments=["tag", "-d", "kept"]),
        )
    )
    assert (kept.decision, lost.decision) == ("approved", "rejected")


def test_git_that_talks_to_others_needs_the_network_too(here):
    request = call("git", "allow", arguments=["push"])
    assert denied(request, ToolsConfig(permissions={"git": "allow", "network": "deny"}))
    assert not denied(request, ToolsConfig(permissions={"git": "allow", "network": "ask"}))
    assert mode(here, ["push"], git="allow", network="allow") is Mode.ASK
