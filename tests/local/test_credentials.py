"""Keys at rest, in the project and for the user."""

import stat

import pytest
from pydantic import SecretStr

from smista.local.credentials import Credentials, Scope
from smista.local.findings import InvalidConfig
from smista.local.paths import NotOurs, find_places

KEY = SecretStr("sk-canary-1")
OTHER = SecretStr('sk-"quoted"\\\n\x7f ü')


@pytest.fixture
def store(tmp_path):
    (tmp_path / "p").mkdir()
    places = find_places({"SMISTA_HOME": str(tmp_path / "home")}, tmp_path)
    return Credentials(project=tmp_path / "p", places=places)


def test_the_projects_key_comes_before_the_users(store):
    assert store.find("openai") is None
    store.store("openai", OTHER, scope=Scope.GLOBAL)
    assert store.find("openai") == OTHER
    store.store("openai", KEY, scope=Scope.PROJECT)
    assert store.find("openai") == KEY


def test_names_with_a_colon_and_other_keys_stay(store):
    store.store("openai-compat:my-vllm", KEY, scope=Scope.PROJECT)
    store.store("router", OTHER, scope=Scope.PROJECT)
    assert store.find("openai-compat:my-vllm") == KEY
    assert store.find("router") == OTHER


def test_the_file_is_for_its_owner_alone(store):
    for scope in Scope:
        path = store.store("router", KEY, scope=scope)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path(Scope.GLOBAL).parent.stat().st_mode) == 0o700


def test_git_is_told_before_the_first_key_is_written(store, monkeypatch, tmp_path):
    def fail(*_):
        raise OSError("power cut")

    monkeypatch.setattr("smista.local.credentials.write_private", fail)
    with pytest.raises(OSError, match="power cut"):
        store.store("router", KEY, scope=Scope.PROJECT)
    assert (tmp_path / "p/.smista/.gitignore").read_text() == "secrets\nsecrets*\n"


def test_an_existing_gitignore_is_kept_and_not_filled_twice(store, tmp_path):
    folder = tmp_path / "p" / ".smista"
    folder.mkdir()
    (folder / ".gitignore").write_text("plans/\n")
    store.store("router", KEY, scope=Scope.PROJECT)
    store.store("router", OTHER, scope=Scope.PROJECT)
    assert (folder / ".gitignore").read_text() == "plans/\nsecrets\nsecrets*\n"


def test_a_key_is_forgotten_in_its_scope_only(store):
    store.store("router", KEY, scope=Scope.GLOBAL)
    store.store("router", OTHER, scope=Scope.PROJECT)
    assert store.remove("router", scope=Scope.PROJECT)
    assert not store.remove("router", scope=Scope.PROJECT)
    assert store.find("router") == KEY


def test_a_broken_file_is_named_and_never_quoted(store, tmp_path):
    path = store.path(Scope.GLOBAL)
    path.parent.mkdir()
    path.write_text("router = sk-canary-1\n")
    with pytest.raises(InvalidConfig) as caught:
        store.find("router")
    assert str(path) in str(caught.value)
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_project_folder_that_leads_elsewhere_gets_no_key(store, tmp_path):
    (tmp_path / "public").mkdir()
    (tmp_path / "p" / ".smista").symlink_to(tmp_path / "public")
    with pytest.raises(NotOurs):
        store.store("router", KEY, scope=Scope.PROJECT)
    assert list((tmp_path / "public").iterdir()) == []


def test_a_project_folder_keeps_its_mode(store, tmp_path):
    folder = tmp_path / "p" / ".smista"
    folder.mkdir()
    folder.chmod(0o755)
    store.store("router", KEY, scope=Scope.PROJECT)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_link_in_place_of_the_file_is_refused(store, tmp_path):
    path = store.path(Scope.PROJECT)
    path.parent.mkdir()
    (tmp_path / "elsewhere").write_text('router = "x"\n')
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotOurs):
        store.find("router")


def test_a_file_of_keys_that_came_with_the_project_does_not_count(store):
    path = store.path(Scope.PROJECT)
    path.parent.mkdir()
    path.write_text('openai = "sk-of-a-stranger"\nrouter = "sk-of-a-stranger"\n')
    assert store.find("openai") is None
    assert store.foreign() == path
    assert not store.remove("openai", scope=Scope.PROJECT)
    store.store("router", KEY, scope=Scope.PROJECT)
    assert store.foreign() is None
    assert store.find("router") == KEY
    assert store.find("openai") is None
    assert "stranger" not in path.read_text()


def test_one_byte_changed_by_another_hand_is_another_file(store):
    path = store.store("router", KEY, scope=Scope.PROJECT)
    path.write_text(path.read_text().replace("canary-1", "canary-2"))
    assert store.find("router") is None


def test_a_copy_in_another_project_does_not_count(store, tmp_path):
    path = store.store("router", KEY, scope=Scope.PROJECT)
    copy = tmp_path / "q" / ".smista" / "secrets"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(path.read_bytes())
    places = find_places({"SMISTA_HOME": str(tmp_path / "home")}, tmp_path)
    assert Credentials(project=tmp_path / "q", places=places).find("router") is None


def test_a_crash_before_the_file_is_replaced_leaves_the_keys_usable(store, monkeypatch):
    store.store("router", KEY, scope=Scope.PROJECT)

    def fail(*_):
        raise OSError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr("smista.local.credentials.write_private", fail)
        with pytest.raises(OSError, match="power cut"):
            store.store("openai", OTHER, scope=Scope.PROJECT)
    assert store.find("router") == KEY


def test_the_key_of_the_marks_is_the_users_alone(store, tmp_path):
    store.store("router", KEY, scope=Scope.PROJECT)
    for name in ("mark.key", "marks.json"):
        file = tmp_path / "home" / name
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "canary" not in file.read_text()


def test_git_is_not_told_through_a_link(store, tmp_path):
    folder = tmp_path / "p" / ".smista"
    folder.mkdir()
    (tmp_path / "private").write_text("mine")
    (folder / ".gitignore").symlink_to(tmp_path / "private")
    with pytest.raises(NotOurs):
        store.store("router", KEY, scope=Scope.PROJECT)
    assert (tmp_path / "private").read_text() == "mine"
