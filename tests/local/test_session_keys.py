"""Where the keys of encrypted sessions are kept, and what is refused there."""

import os
import stat

import pytest

from smista.core.session_key import SessionKey
from smista.local.paths import NotOurs, find_places
from smista.local.session_keys import DamagedKey, SessionKeys

KEY = SessionKey(bytes(range(32)))
OTHER = SessionKey(bytes(32))
SESSION = "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f"
SECOND = "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e70"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def keys(home):
    return SessionKeys(find_places({"SMISTA_HOME": str(home)}, home))


@pytest.fixture
def umask():
    kept = os.umask(0)
    yield os.umask
    os.umask(kept)


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("loose", [0o000, 0o022, 0o077])
def test_a_key_is_for_its_owner_alone_whatever_the_umask(keys, home, umask, loose):
    umask(loose)
    path = keys.store(KEY)
    assert path == home / "e2e" / KEY.key_id
    assert (mode(path), mode(path.parent), mode(home)) == (0o600, 0o700, 0o700)
    assert keys.find(KEY.key_id).key_id == KEY.key_id


def test_keys_stand_beside_the_users_other_things_without_a_home_of_their_own(tmp_path):
    keys = SessionKeys(find_places({}, tmp_path))
    assert keys.store(KEY) == tmp_path / ".smista" / "e2e" / KEY.key_id


def test_a_key_is_durable_before_it_is_used(keys, monkeypatch):
    synced = []
    real = os.fsync

    def fsync(handle):
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    keys.store(KEY)
    assert synced == [False, True]


def test_a_key_that_is_not_here_is_not_found(keys, home):
    assert keys.find(KEY.key_id) is None
    assert keys.held() == ()
    assert keys.recorded(SESSION) is None
    assert not home.exists()


@pytest.mark.parametrize("text", ["", "kf_short", "../../etc/passwd", "kf_" + "a" * 42 + "/"])
def test_what_is_no_fingerprint_names_no_file(keys, text):
    for use in (keys.find, keys.path, keys.remove, lambda text: keys.record(SESSION, text)):
        with pytest.raises(NotOurs, match="no key id"):
            use(text)


def test_what_is_no_session_names_no_record(keys):
    for use in (keys.recorded, keys.forget, lambda text: keys.record(text, KEY.key_id)):
        with pytest.raises(ValueError, match="badly formed"):
            use("../../secrets")


def test_a_planted_link_is_neither_read_nor_written(keys, home, tmp_path):
    target = tmp_path / "theirs"
    target.write_text("theirs")
    (home / "e2e").mkdir(parents=True)
    keys.path(KEY.key_id).symlink_to(target)
    with pytest.raises(NotOurs):
        keys.find(KEY.key_id)
    path = keys.store(KEY)
    assert not path.is_symlink()
    assert target.read_text() == "theirs"


@pytest.mark.parametrize("name", ["e2e", "e2e/sessions"])
def test_a_folder_that_leads_elsewhere_is_refused(keys, home, tmp_path, name):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).symlink_to(elsewhere)
    for use in (
        lambda: keys.record(SESSION, KEY.key_id),
        lambda: keys.find(KEY.key_id),
        lambda: keys.recorded(SESSION),
        keys.held,
    ):
        with pytest.raises(NotOurs):
            use()
    assert list(elsewhere.iterdir()) == []


def test_what_others_could_read_is_closed(keys):
    path = keys.store(KEY)
    path.chmod(0o644)
    path.parent.chmod(0o755)
    assert keys.find(KEY.key_id) is not None
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)


@pytest.mark.parametrize("content", ["", "nonsense", OTHER.text().get_secret_value(), "é"])
def test_a_file_that_holds_another_key_is_said_to_be_damaged(keys, content):
    path = keys.store(KEY)
    path.write_text(content)
    with pytest.raises(DamagedKey, match="keys import"):
        keys.find(KEY.key_id)
    assert [held.damaged for held in keys.held()] == [True]
    keys.store(KEY)
    assert keys.find(KEY.key_id).key_id == KEY.key_id


def test_storing_a_key_twice_changes_nothing(keys):
    before = keys.store(KEY).stat().st_ino
    assert keys.store(KEY).stat().st_ino == before


def test_each_session_remembers_its_key(keys):
    keys.store(KEY)
    keys.record(SESSION, KEY.key_id)
    assert keys.recorded(SESSION.upper()) == KEY.key_id
    (held,) = keys.held()
    assert (held.key_id, held.sessions, held.damaged) == (KEY.key_id, (SESSION,), False)


def test_a_session_whose_key_is_gone_is_known(keys):
    keys.record(SESSION, KEY.key_id)
    assert keys.lost() == {SESSION: KEY.key_id}
    keys.store(KEY)
    assert keys.lost() == {}


def test_a_record_that_names_no_key_is_not_taken_for_one(keys, home):
    keys.record(SESSION, KEY.key_id)
    (home / "e2e" / "sessions" / SESSION).write_text("../../secrets")
    with pytest.raises(DamagedKey):
        keys.recorded(SESSION)
    assert keys.held() == ()


def test_a_deleted_session_takes_its_key_along(keys):
    path = keys.store(KEY)
    keys.record(SESSION, KEY.key_id)
    assert keys.forget(SESSION)
    assert not path.exists()
    assert keys.recorded(SESSION) is None
    assert not keys.forget(SESSION)


def test_a_key_that_another_session_needs_stays(keys):
    path = keys.store(KEY)
    keys.record(SESSION, KEY.key_id)
    keys.record(SECOND, KEY.key_id)
    assert not keys.forget(SESSION)
    assert path.exists()
    assert keys.forget(SECOND)
    assert not path.exists()
