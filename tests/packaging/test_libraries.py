"""What we depend on is explained, locked, and takes none of our names."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
REQUIREMENTS = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]
NAMES = [re.split(r"[\[<>=!~; ]", requirement)[0] for requirement in REQUIREMENTS]


@pytest.fixture(scope="module")
def explained() -> dict[str, str]:
    rows = re.findall(
        r"^\| ([a-z0-9-]+) \| (.+) \|$", (ROOT / "docs/libraries.md").read_text(), re.M
    )
    return dict(row for row in rows if row[0] != "library")


@pytest.mark.parametrize("name", NAMES)
def test_a_dependency_has_a_reason(explained: dict[str, str], name: str) -> None:
    assert len(explained[name]) > len("because")


def test_no_reason_outlives_its_dependency(explained: dict[str, str]) -> None:
    assert set(explained) - {"---"} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_dependency_is_locked_with_its_hashes(name: str) -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert re.search(rf"^{re.escape(name)}==\S+.*\\\n    --hash=sha256:[0-9a-f]{{64}}", lock, re.M)


def test_the_lock_names_no_host_and_no_path() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"://|^-|^\s+--(?!hash=)| @ |file:", lock, re.M)


def test_no_dependency_ships_a_name_of_ours() -> None:
    taken = [
        (distribution.name, path.parts[0])
        for distribution in importlib.metadata.distributions()
        if distribution.name != "smista"
        for path in distribution.files or ()
        if path.parts[0].removesuffix(".py") in {"smista", "actors", "cli"}
    ]
    assert taken == []
