"""The import contracts catch what they are for: each planted import is named in the report."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT_IMPORTS = Path(sys.executable).parent / "lint-imports"

PLANTED = {
    "smista.core": (
        *("trio", "os", "time", "random", "uuid", "logging", "socket", "httpx", "asyncio"),
        *("smista.ports.journal", "smista.storage"),
    ),
    "smista.ports": ("trio", "httpx", "smista.storage"),
    "smista.providers": ("surrealdb", "quart", "asyncio", "smista.storage", "smista.local"),
    "smista.storage": ("httpx", "asyncio", "smista.front", "actors"),
    "smista.front": (
        "httpx",
        "surrealdb",
        "cbor2",
        "smista.providers",
        "smista.sdk",
        "actors",
        "cli",
    ),
    "smista.sdk": ("surrealdb", "hypercorn", "rich", "smista.front"),
    "smista.demo": ("httpx", "asyncio", "smista.local"),
    "smista.local": ("httpx", "asyncclick", "smista.sdk"),
    "actors": ("httpx", "surrealdb", "rich", "smista.front", "smista.demo", "smista.local", "cli"),
    "cli": ("asyncio", "surrealdb", "quart", "smista.storage", "smista.front", "actors"),
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the linter says of a copy of the tree with every import of PLANTED in it."""
    copy = tmp_path_factory.mktemp("a checkout")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for package in ("smista", "actors", "cli"):
        shutil.copytree(ROOT / package, copy / package)
    for package, targets in PLANTED.items():
        lines = [f"import {target}\n" for target in targets]
        (copy / package.replace(".", "/") / "planted.py").write_text("".join(lines))
    done = subprocess.run(
        [LINT_IMPORTS, "--no-logo", "--no-cache"], cwd=copy, capture_output=True, text=True
    )
    assert "Contracts: " in done.stdout, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("importer", "imported"),
    [(package, target) for package, targets in PLANTED.items() for target in targets],
)
def test_a_forbidden_import_is_named(report: str, importer: str, imported: str) -> None:
    assert f"{importer}.planted -> {imported} (l." in report


def test_every_contract_has_a_planted_import_that_breaks_it(report: str) -> None:
    assert "Contracts: 0 kept, " in report


CLOCKS = {"now", "utcnow", "today", "fromtimestamp"}


@pytest.mark.parametrize("path", sorted((ROOT / "smista/core").glob("*.py")), ids=lambda p: p.name)
def test_core_neither_waits_nor_reads_a_clock(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    waits = [node.name for node in nodes if isinstance(node, ast.AsyncFunctionDef)]
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    clocks = [func.attr for func in calls if isinstance(func, ast.Attribute) if func.attr in CLOCKS]
    assert (waits, clocks) == ([], [])


VALUES = {
    "pydantic",
    "typing",
    "abc",
    "collections",
    "contextlib",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
}


@pytest.mark.parametrize("path", sorted((ROOT / "smista/ports").glob("*.py")), ids=lambda p: p.name)
def test_ports_speak_of_core_types_and_nothing_else(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    modules = [*plain, *(node.module for node in nodes if isinstance(node, ast.ImportFrom))]
    strange = [
        module
        for module in modules
        if module.split(".")[0] not in VALUES
        and not module.startswith(("smista.core", "smista.ports"))
    ]
    assert strange == []
