"""Places, their modes, and what is refused because it is not ours."""

import os
import stat

import pytest

from smista.local.paths import (
    NotOurs,
    create_private,
    find_places,
    find_root,
    open_private,
    private_directory,
    read_private,
    write_private,
)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_smista_home_replaces_every_place_and_turns_the_keyring_off(tmp_path):
    places = find_places({"SMISTA_HOME": str(tmp_path / "s")}, tmp_path)
    assert (places.config, places.personal) == (tmp_path / "s", tmp_path / "s")
    assert places.runtime == tmp_path / "s" / "run"
    assert not places.keyring


def test_without_it_the_places_are_those_of_the_user(tmp_path):
    places = find_places({}, tmp_path)
    assert places.policy_file == tmp_path / ".config/smista/config.toml"
    assert places.personal == tmp_path / ".smista"
    assert places.runtime == tmp_path / ".config/smista/run"
    assert places.keyring


def test_the_runtime_directory_of_the_system_is_used_if_it_is_there(tmp_path):
    assert find_places({"XDG_RUNTIME_DIR": str(tmp_path)}, tmp_path).runtime == tmp_path / "smista"
    gone = find_places({"XDG_RUNTIME_DIR": str(tmp_path / "gone")}, tmp_path)
    assert gone.runtime == tmp_path / ".config/smista/run"


def test_the_runtime_directory_of_another_user_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    places = find_places({"XDG_RUNTIME_DIR": str(tmp_path)}, tmp_path)
    assert places.runtime == tmp_path / ".config/smista/run"


def test_the_root_is_the_nearest_smista_folder_before_any_git_folder(tmp_path):
    start = tmp_path / "a" / "b" / "c"
    start.mkdir(parents=True)
    assert find_root(start, tmp_path) == start
    (tmp_path / "a" / "b" / ".git").mkdir()
    assert find_root(start, tmp_path) == tmp_path / "a" / "b"
    (tmp_path / "a" / ".smista").mkdir()
    assert find_root(start, tmp_path) == tmp_path / "a"


def test_the_root_is_never_home_for_something_below_it(tmp_path):
    (tmp_path / ".smista").mkdir()
    start = tmp_path / "work"
    start.mkdir()
    assert find_root(start, tmp_path) == start
    assert find_root(tmp_path, tmp_path) == tmp_path


def test_directories_and_files_are_made_tight_whatever_the_umask(tmp_path):
    old = os.umask(0)
    try:
        private_directory(tmp_path / "d")
        write_private(tmp_path / "d" / "f", b"x")
        os.close(open_private(tmp_path / "d" / "g", os.O_RDWR | os.O_CREAT))
    finally:
        os.umask(old)
    assert mode(tmp_path / "d") == 0o700
    assert mode(tmp_path / "d" / "f") == 0o600
    assert mode(tmp_path / "d" / "g") == 0o600


def test_what_is_looser_is_tightened(tmp_path):
    (tmp_path / "d").mkdir(mode=0o755)
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "f").chmod(0o644)
    private_directory(tmp_path / "d")
    assert read_private(tmp_path / "f") == b"x"
    assert mode(tmp_path / "d") == 0o700
    assert mode(tmp_path / "f") == 0o600


def test_a_planted_link_is_refused(tmp_path):
    (tmp_path / "target").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder-link").symlink_to(tmp_path / "folder")
    with pytest.raises(NotOurs):
        read_private(tmp_path / "link")
    with pytest.raises(NotOurs):
        private_directory(tmp_path / "folder-link", real=True)
    assert private_directory(tmp_path / "folder-link") == tmp_path / "folder-link"


def test_a_fifo_neither_holds_nor_serves(tmp_path):
    os.mkfifo(tmp_path / "f")
    with pytest.raises(NotOurs):
        read_private(tmp_path / "f")


def test_a_file_of_another_user_is_refused(tmp_path, monkeypatch):
    (tmp_path / "f").write_bytes(b"x")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(NotOurs, match="another user"):
        read_private(tmp_path / "f")
    with pytest.raises(NotOurs, match="another user"):
        private_directory(tmp_path)


def test_writing_replaces_in_one_step_and_leaves_nothing_beside_it(tmp_path, monkeypatch):
    file = tmp_path / "f"
    write_private(file, b"old")
    write_private(file, b"new" * 100_000)
    assert file.read_bytes() == b"new" * 100_000

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_private(file, b"lost")
    assert file.read_bytes() == b"new" * 100_000
    assert list(tmp_path.iterdir()) == [file]


def test_what_is_to_be_new_is_put_there_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "key"
    assert create_private(path, b"one")
    assert not create_private(path, b"two")
    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def unable(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", unable)  # a file system without hard links
    assert not create_private(path, b"two")
    assert create_private(tmp_path / "other", b"two")
    assert sorted(os.listdir(tmp_path)) == ["key", "other"]
