"""The name of a router among those that share a store."""

from pathlib import Path

import pytest

from smista.core.errors import StorageUnavailable
from smista.local.instance import held_instance, instance_path
from smista.local.paths import NotOurs, Places


@pytest.fixture
def file(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    return instance_path(Places(config=home, personal=home, runtime=home / "run"))


def name_in(file: Path) -> str:
    with held_instance(file) as name:
        return name


def test_the_name_is_made_once_and_nobody_else_can_read_it(file: Path) -> None:
    name = name_in(file)
    assert name_in(file) == name
    assert file.read_text() == f"{name}\n"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_two_homes_have_two_names(file: Path, tmp_path: Path) -> None:
    assert name_in(file) != name_in(tmp_path / "other" / "instance")


@pytest.mark.parametrize("damage", ["", "half-a-na", "x" * 5000])
def test_a_damaged_name_is_replaced(file: Path, damage: str) -> None:
    file.parent.mkdir()
    file.write_text(damage)
    name = name_in(file)
    assert name_in(file) == name
    assert file.read_text() == f"{name}\n"


def test_two_routers_that_run_never_have_the_same_name(file: Path) -> None:
    with held_instance(file), pytest.raises(StorageUnavailable, match="SMISTA_HOME"):
        name_in(file)
    name_in(file)


def test_a_link_in_its_place_is_refused(file: Path, tmp_path: Path) -> None:
    file.parent.mkdir()
    (tmp_path / "aim").write_text("kept")
    file.symlink_to(tmp_path / "aim")
    with pytest.raises(NotOurs):
        name_in(file)
    assert (tmp_path / "aim").read_text() == "kept"
