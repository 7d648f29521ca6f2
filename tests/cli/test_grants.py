"""What "always in this session" allows, and what slips past it: nothing."""

import pytest

from cli.approvals import Answer
from cli.machine import Machine
from cli.permissions import Grant, Grants, offered
from cli.tools import leads_to, prepare
from smista.core.policy import ToolsConfig
from tests.cli.ground import call, surroundings

GRANTED = ("npm", "test")
SLIPS = [
    *(f"npm test{between}rm -rf x" for between in ";|&\n"),
    *(
        f"npm test {between} rm -rf x"
        for between in (";", "|", "||", "&&", "&", "|&", "\n", "\r\n")
    ),
    *("npm test;", "npm test&", "npm test |sh", "npm test\n", "\nnpm test", "npm\ntest"),
    *("npm test $(rm x)", "npm test `rm x`", "npm test ${x}", "npm test $x", 'npm test "$(rm x)"'),
    *("npm test <(rm x)", "npm test >(rm x)", "npm test > x", "npm test >> x", "npm test 2>x"),
    *(
        "npm test < x",
        "npm test <<x",
        "npm test <<<x",
        "npm test >&2",
        "npm test &>x",
        "npm test>x",
    ),
    *("(npm test)", "{ npm test; }", "npm test {a,b}", "npm test a}", "$(npm test)", "`npm test`"),
    *("npm test *", "npm test ?", "npm test [ab]", "npm test ~", "npm test ~root", "npm test a~"),
    *("npm test !!", "! npm test", "npm test !x", "npm test # x", "npm test#", "#npm test"),
    *("npm test \\x", "npm\\ test", "npm test\\\nrm x", "\\npm test", "npm test 'a\\'"),
    *("X=1 npm test", "X= npm test", "PATH=. npm test", "x=npm test", "X+=1 npm test"),
    *("env npm test", "sudo npm test", "xargs npm test", "sh npm test", "bash -c 'npm test'"),
    *("exec npm test", "eval npm test", "command npm test", "time npm test", "nohup npm test"),
    *(". npm test", "source npm test", "builtin npm test", "if npm test", "while npm test"),
    *("npm", "npm ", "npm tes", "npm tests", "npm testx", "npmtest", "npm  tests", "npm -x test"),
    *(
        "npm --prefix /x test",
        "./npm test",
        "/tmp/npm test",
        "npm/ test",
        "../npm test",
        "NPM test",
    ),
    *("npm 'test x'", "npm 'te", 'npm "test', "'npm test'", "npm 'test' 'x"),
    *("npm\ttest", "npm test\tx", "npm\x0btest", "npm\x0ctest", "npm test\x00", "npm\rtest"),
    *("npm\u00a0test", "npm test\u2028rm x", "npm te\u200bst", "npm t\u0435st", "\ufeffnpm test"),
    *("npm test 'a;b'", 'npm test "a&b"', "npm test '$x'", "npm test 'a\nb'", "", " ", "''"),
    *("%1 test", ": test", "npm run test", "npm exec test", "npx test", "node npm test"),
]
NEVER = [
    *("sh x", "bash x", "/bin/bash x", "dash x y", "zsh x", "fish x", "busybox ls", "pwsh x"),
    *("python x.py", "python3 x.py", "python3.11 x.py", "/usr/bin/python x", "perl x", "ruby x"),
    *("node x.js", "php x.php", "lua5.4 x", "awk x y", "gawk x y", "sed p x", "java x.jar"),
    *("env ls", "xargs ls x", "find x y", "sudo ls x", "ssh host ls", "git log", "git status"),
    *("make test", "gmake test", "nice ls x", "timeout 5 ls", "nohup ls x", "watch ls x"),
    *("docker run x", "kubectl exec x", "curl x y", "wget x y", "nc x 1", "scp a b", "tar x y"),
    *("npx tool x", "uv run python x", "poetry run python x", "npm exec sh x", "uv run", "npm run"),
    *("vim x y", "less x", "man ls x", "time ls x", "eval ls x", ". ./x y", "exec ls x"),
    *("rm build", "mv a b", "cp a b", "ln a b", "chmod 600 a", "kill 123", "gh pr", "aws s3 ls"),
    *("npm install", "pip install -r x", "cargo add -p x"),
    *("ls", "ls -la", "npm -v test", "npm run -s test", "'' x", "PYTHON x", "Bash x", "sh.exe x"),
]


@pytest.fixture
def here(tmp_path):
    return surroundings(tmp_path)


def prepared(here, request):
    return prepare(request, here, agreed=leads_to(request, here))


def shell(here, line):
    request = call("shell", command=line)
    return request, prepared(here, request)


def covers(here, line, *words):
    grants = Grants()
    grants.add(Grant(words=words or GRANTED))
    request = call("shell", command=line)
    # A line that is refused before it is looked at is not covered either.
    return grants.cover(request, shell(here, "npm test")[1])


def test_there_are_a_hundred_ways_and_more():
    assert len(set(SLIPS)) > 100


@pytest.mark.parametrize("line", SLIPS)
def test_only_one_simple_command_that_begins_so_is_covered(here, line):
    assert not covers(here, line)


@pytest.mark.parametrize(
    "line",
    [
        "npm test",
        " npm test ",
        "npm  test --watch",
        "npm test a.js b.js",
        "npm 'test' x=1",
        "npm te'st'",
    ],
)
def test_what_was_allowed_is_covered_with_any_plain_words_after_it(here, line):
    assert covers(here, line)


@pytest.mark.parametrize("line", NEVER)
def test_what_runs_other_things_is_never_offered(here, line):
    assert offered(*shell(here, line)) is None


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("npm test --watch", "npm test"),
        ("npm run lint src", "npm run lint"),
        ("uv run pytest tests", "uv run pytest"),
        ("npm install left-pad", "npm install left-pad"),
        ("pytest tests/cli", "pytest tests/cli"),
        ("cargo build", "cargo build"),
        ("go vet ./x", "go vet"),
        ("cat 'a b'", "cat 'a b'"),
    ],
)
def test_what_always_allows_is_said_in_full(here, line, shown):
    grant = offered(*shell(here, line))
    assert str(grant) == f"every simple command that begins with: {shown}"
    assert covers(here, line, *grant.words)


def test_writes_inside_the_project_are_allowed_as_a_whole(here):
    request = call("write_file", path="a.txt", content="x")
    grant = offered(request, prepared(here, request))
    assert str(grant) == "every change of a file inside the project"
    grants = Grants()
    assert not grants.cover(request, prepared(here, request))
    grants.add(grant)
    assert grants.cover(request, prepared(here, request))
    assert not grants.cover(*shell(here, "npm test"))


@pytest.mark.parametrize("path", ["../x", "/etc/x", "AGENTS.md", ".github/x", ".envrc"])
def test_no_write_outside_or_of_what_steers_others_is_covered(here, path):
    request = call("write_file", path=path, content="x")
    grants = Grants()
    grants.add(Grant())
    assert offered(request, prepared(here, request)) is None
    assert not grants.cover(request, prepared(here, request))


@pytest.mark.parametrize("name", ["git", "fetch_url"])
def test_nothing_is_offered_for_the_network_and_git(here, name):
    arguments = {
        "git": {"arguments": ["commit", "-m", "x"]},
        "fetch_url": {"url": "https://x.org/"},
    }
    request = call(name, **arguments[name])
    assert offered(request, prepared(here, request)) is None


class Person:
    """Says always, and remembers what was put before it."""

    def __init__(self):
        self.asked = []

    def say(self, line): ...

    def put(self, title, shown): ...

    def output(self, text): ...

    async def ask(self, question, *, always=False):
        self.asked.append((question.asked, always))
        return Answer(approved=True, always=always)


async def test_always_is_asked_once_and_suspended_while_restricted_content_is_in_view(here):
    person = Person()
    machine = Machine(here, ToolsConfig(), person)
    line = "printf hello"
    await machine.run((call("shell", command=line), call("shell", command=f"{line} again")))
    assert len(person.asked) == 1
    assert "every simple command that begins with: printf hello" in person.asked[0][0]
    await machine.restricted_in_view()
    await machine.run((call("shell", command=line),))
    assert len(person.asked) == 2
    assert "restricted content is in view" in person.asked[1][0]
    assert not person.asked[1][1]
