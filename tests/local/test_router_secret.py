"""The secret by which a router proves whose it is: made once, private, found again."""

import stat
import threading

import pytest

from smista.local.paths import NotOurs, find_places
from smista.local.router_secret import find_secrets, make_secret, secret_file


@pytest.fixture
def places(tmp_path):
    return find_places({"SMISTA_HOME": str(tmp_path / "home")}, tmp_path)


def test_it_is_made_once_and_private(places):
    assert find_secrets(places) == ()
    made = make_secret(places)
    assert make_secret(places) == made
    assert find_secrets(places) == (made,)
    file = secret_file(places)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert len(made.get_secret_value()) == 64
    assert [path.name for path in file.parent.iterdir()] == ["router.secret"]


def test_routers_that_start_together_share_one(places):
    made, begin = [], threading.Barrier(8)

    def start():
        begin.wait()
        made.append(make_secret(places).get_secret_value())

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len(set(made)) == 1


def test_an_empty_file_proves_nothing(places):
    places.runtime.mkdir(parents=True)
    secret_file(places).touch()
    assert find_secrets(places) == ()
    with pytest.raises(NotOurs, match="remove it"):
        make_secret(places)


def test_a_loose_file_is_tightened_and_a_link_refused(places, tmp_path):
    make_secret(places)
    file = secret_file(places)
    file.chmod(0o644)
    assert find_secrets(places)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.rename(tmp_path / "theirs")
    file.symlink_to(tmp_path / "theirs")
    with pytest.raises(NotOurs):
        find_secrets(places)


def test_who_has_no_runtime_directory_finds_the_secret_of_who_has_one(tmp_path):
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    desktop = find_places({"XDG_RUNTIME_DIR": str(runtime)}, tmp_path)
    service = find_places({}, tmp_path)
    made = make_secret(service)
    assert made in find_secrets(desktop)
    own = make_secret(desktop)
    assert own != made
    assert {own, made} <= set(find_secrets(desktop))
