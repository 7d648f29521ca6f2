"""`./dev` sets up once, mends a set-up that was cut short, and otherwise stays out of the way.

The installers are stand-ins that write down how they were called; the script is the real one.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

UV = """#!/bin/sh
echo "uv $1 $2" >> "$CALLS"
case "$1" in
venv)
    rm -rf .venv && mkdir -p .venv/bin
    printf '#!/bin/sh\\n[ "$1" = -c ] || echo "python $*" >> "$CALLS"\\n' > .venv/bin/python
    printf '#!/bin/sh\\necho "just $*" >> "$CALLS"\\n' > .venv/bin/just
    chmod +x .venv/bin/*
    ;;
pip) [ ! -e "$CALLS.no-network" ] ;;
esac
"""
SET_UP = ["uv venv --quiet", "uv pip install"]
INSTALL = ["python -m pip install --quiet --no-index --no-deps --no-build-isolation -e ."]


@dataclass(frozen=True)
class Checkout:
    root: Path
    calls: Path
    path: str

    def dev(self, *arguments: str, cwd: str = "/") -> tuple[int, list[str]]:
        """Run `dev`; return its exit code and the calls that it made."""
        self.calls.write_text("")
        done = subprocess.run(
            [self.root / "dev", *arguments],
            cwd=cwd,
            env={"PATH": self.path, "HOME": str(self.root), "CALLS": str(self.calls)},
            capture_output=True,
        )
        return done.returncode, self.calls.read_text().splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root = tmp_path / "with a space"
    root.mkdir()
    for name in ("dev", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "uv").write_text(UV)
    (tools / "uv").chmod(0o755)
    interpreters = os.path.join(sys.base_prefix, "bin")
    return Checkout(root, tmp_path / "calls", f"{tools}:{interpreters}:/usr/bin:/bin")


def test_the_first_run_sets_up_and_the_second_does_not(checkout: Checkout) -> None:
    assert checkout.dev("test", "a b") == (0, [*SET_UP, *INSTALL, "just test a b"])
    assert checkout.dev("test") == (0, ["just test"])


def test_a_set_up_that_failed_starts_anew(checkout: Checkout) -> None:
    no_network = Path(f"{checkout.calls}.no-network")
    no_network.touch()
    code, calls = checkout.dev("test")
    assert code != 0
    assert calls == SET_UP
    no_network.unlink()
    assert checkout.dev("test") == (0, [*SET_UP, *INSTALL, "just test"])


def test_a_new_lock_makes_a_new_environment(checkout: Checkout) -> None:
    checkout.dev("test")
    with (checkout.root / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    assert checkout.dev("test") == (0, [*SET_UP, *INSTALL, "just test"])


def test_a_changed_project_file_needs_no_new_environment(checkout: Checkout) -> None:
    checkout.dev("test")
    with (checkout.root / "pyproject.toml").open("a") as project:
        project.write("# changed\n")
    assert checkout.dev("test") == (0, [*INSTALL, "just test"])


def test_a_moved_checkout_is_set_up_where_it_is(checkout: Checkout, tmp_path: Path) -> None:
    checkout.dev("test")
    moved = Checkout(checkout.root.rename(tmp_path / "moved"), checkout.calls, checkout.path)
    assert moved.dev("test") == (0, [*SET_UP, *INSTALL, "just test"])


def test_a_lost_interpreter_is_replaced(checkout: Checkout) -> None:
    checkout.dev("test")
    (checkout.root / ".venv/bin/python").unlink()
    assert checkout.dev("test") == (0, [*SET_UP, *INSTALL, "just test"])


def test_ci_runs_every_step_and_fails_if_one_did(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    (tmp_path / "dev").write_text('#!/bin/sh\necho "$1"\n[ "$1" != types ]\n')
    (tmp_path / "dev").chmod(0o755)
    done = subprocess.run([tmp_path / ".ci/run"], cwd="/", capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.split() == ["lint", "types", "docs-check", "test", "test"]
    assert done.stderr == "ci: types failed\n"
