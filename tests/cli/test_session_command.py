"""`smista session` and `smista usage`, as processes against a router."""

import json
import stat
from urllib.parse import parse_qs

import pytest

from cli.failures import BadUsage
from cli.looking_back import find_listed
from smista.local.session_keys import SessionKeys
from smista.sdk.answers import SessionSummary
from smista.sdk.sealing import new_key
from tests.cli.ground import surroundings
from tests.cli.test_command_line import Home
from tests.sdk.router import SESSION, FakeRouter, Reply

SESSIONS = "/api/v1/sessions"
ID = "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f"
NEAR = "018f9c3e-7a2b-7c4d-8e5f-000000000001"
FAR = "01900000-0000-7c4d-8e5f-000000000002"
AT = "2026-05-25T09:00:00Z"


def summary(session_id=ID, **changes):
    given = {"id": session_id, "title": "Fix it", "created_at": AT, "updated_at": AT}
    return {**given, **changes}


@pytest.fixture
async def router(nursery):
    return await FakeRouter().start(nursery)


@pytest.fixture
def home(tmp_path, router):
    return Home(tmp_path, router.url)


def lists(router, *sessions):
    router.answer("GET", SESSIONS, Reply({"sessions": list(sessions)}))


async def test_the_projects_living_sessions_are_listed(home, router):
    sessions = [summary(), summary(FAR, title=None, archived=True, scope="/p")]
    for _ in range(2):
        lists(router, *sessions)
    plain = await home.run("session", "list")
    assert plain.stdout.decode().split("  ")[0] == ID[:13]
    assert plain.stdout.decode().endswith("  Fix it\n")
    scope = parse_qs(router.to(SESSIONS)[0].query)["scope"]
    assert scope == [str(home.project)]
    more = (await home.run("session", "list", "--all", "--archived")).stdout.decode()
    assert more.splitlines()[1].endswith("(no title)  (archived)  [/p]")
    assert router.to(SESSIONS)[1].query == ""


class Listing:
    """A client that lists what it was given."""

    def __init__(self, *sessions):
        self._sessions = [SessionSummary.model_validate(each) for each in sessions]

    async def sessions(self):
        return self._sessions


@pytest.mark.parametrize(
    ("part", "found"), [(ID[-6:], ID), (FAR[:8], FAR), (FAR[:8].upper(), FAR), (NEAR, NEAR)]
)
async def test_a_session_is_named_by_a_part_of_its_id(part, found):
    client = Listing(summary(), summary(NEAR), summary(FAR))
    assert (await find_listed(client, part)).id == found


@pytest.mark.parametrize(
    ("part", "why"),
    [(ID[:13], "more of the id"), ("018", "at least 4"), ("ffffffff", "no session"), ("*", "id")],
)
async def test_a_part_that_fits_none_or_several_is_refused(part, why):
    client = Listing(summary(), summary(NEAR), summary(FAR))
    with pytest.raises(BadUsage, match=why):
        await find_listed(client, part)


async def test_an_archived_session_is_found_where_it_may_be():
    client = Listing(summary(archived=True))
    assert (await find_listed(client, ID[:8], archived=True)).id == ID
    with pytest.raises(BadUsage, match="archive --undo"):
        await find_listed(client, ID[:8])


async def test_what_was_said_is_printed(home, router):
    said = [
        {"role": "user", "content": {"plaintext": "hello"}},
        {"role": "assistant", "content": {"plaintext": ""}, "provider": "p", "model": "m"},
        {"role": "tool", "content": {"encrypted": {}}},
    ]
    router.answer("GET", f"{SESSIONS}/{ID}", Reply({"session": summary() | {"messages": said}}))
    done = await home.run("session", "show", ID)
    assert done.stdout.decode() == (
        "you: hello\n\nmodel (p/m): (asked for tools)\n\ntool: sealed\n"
    )
    assert done.stderr.decode().startswith(f"session {ID}: Fix it")


async def test_an_export_is_a_new_file_for_its_owner_alone(home, router):
    document = {"format": "smista-session", "said": "é"}
    for _ in range(4):
        router.answer("GET", f"{SESSIONS}/{ID}/export", Reply(document))
    done = await home.run("session", "export", ID)
    file = home.project / f"smista-session-{ID}.json"
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text("utf-8")) == document

    file.write_text("mine")
    assert (await home.run("session", "export", ID)).returncode == 1
    assert file.read_text() == "mine"
    assert (await home.run("session", "export", ID, "--force")).returncode == 0
    assert json.loads(file.read_text("utf-8")) == document
    to_stdout = await home.run("session", "export", ID, "--to", "-")
    assert json.loads(to_stdout.stdout) == document


async def test_an_export_follows_no_link(home, router):
    kept = home.project / "kept"
    kept.write_text("mine")
    (home.project / "link").symlink_to(kept)
    router.answer("GET", f"{SESSIONS}/{ID}/export", Reply({}), Reply({}))
    assert (await home.run("session", "export", ID, "--to", "link")).returncode == 1
    assert (await home.run("session", "export", ID, "--to", "link", "--force")).returncode == 0
    assert kept.read_text() == "mine"


async def test_an_import_sends_the_document_as_it_is(home, router):
    document = {"format": "smista-session", "n": [1, None]}
    made = Reply({"session": summary(FAR)}, 201)
    router.answer("POST", f"{SESSIONS}/import", made, made)
    (home.project / "x.json").write_text(json.dumps(document))
    done = await home.run("session", "import", "x.json")
    assert done.stdout.decode() == f"session {FAR}: Fix it\n"
    piped = await home.run("session", "import", stdin=json.dumps(document).encode())
    assert piped.returncode == 0
    assert [asked.body for asked in router.to(f"{SESSIONS}/import")] == [document, document]


@pytest.mark.parametrize("content", [b"[]", b"\xff"])
async def test_what_is_no_export_is_not_sent(home, router, content):
    done = await home.run("session", "import", stdin=content)
    assert done.returncode == 1
    assert b"no exported session" in done.stderr
    assert router.to(f"{SESSIONS}/import") == []


async def test_a_session_gets_another_title(home, router):
    lists(router, summary())
    router.answer("PUT", f"{SESSIONS}/{ID}", Reply({"session": summary(title="New")}))
    assert (await home.run("session", "rename", ID[:8], "New")).returncode == 0
    assert router.to(f"{SESSIONS}/{ID}")[0].body == {"title": "New"}


async def test_deleting_is_asked_about_and_takes_the_key_along(home, router, tmp_path):
    kept = SessionKeys(surroundings(tmp_path).places)
    home.smista = tmp_path / "smista-home"
    (home.smista / "run").mkdir(parents=True)
    home.write((home.path / "smista" / "config.toml").read_text())
    (home.smista / "run" / "router.secret").write_bytes(
        (home.path / "smista" / "run" / "router.secret").read_bytes()
    )
    key = new_key()
    kept.store(key)
    kept.record(ID, key.key_id)
    (home.smista / "sessions" / ID).mkdir(parents=True)
    path = f"{SESSIONS}/{ID}"
    lists(router, summary(encrypted=True, key_id=key.key_id))
    assert (await home.run("session", "delete", ID)).returncode == 2

    lists(router, summary(encrypted=True, key_id=key.key_id))
    code, shown = await home.run_at_a_terminal("session", "delete", ID, answers=[b"n\n"])
    assert (code, "Fix it" in shown, router.to(path)) == (4, True, [])

    lists(router, summary(encrypted=True, key_id=key.key_id))
    router.answer("DELETE", path, Reply({"deleted": True}))
    assert (await home.run("session", "delete", ID, "--yes")).returncode == 0
    assert kept.find(key.key_id) is None
    assert not (home.smista / "sessions" / ID).exists()


async def test_usage_is_asked_for_as_it_was_named(home, router):
    sums = {"total": {"request_count": 2}, "by_day": [{"day": "2026-05-25", "request_count": 2}]}
    router.answer("GET", "/api/v1/usage", Reply(sums), Reply(sums))
    words = ["usage", "--by", "day", "--since", "2026-05-01", "--here"]
    done = await home.run(*words)
    assert done.stdout.decode().splitlines()[0] == "2 calls"
    query = router.to("/api/v1/usage")[0].query
    assert "by=day" in query
    assert "since=2026-05-01T00" in query
    assert "scope=" in query
    as_json = await home.run("usage", "--json")
    assert json.loads(as_json.stdout) == sums


async def test_usage_of_one_session_is_that_sessions(home, router):
    sums = {"total": {}, "by_model": [{"provider": "p", "model": "m", "request_count": 1}]}
    router.answer("GET", f"{SESSIONS}/{SESSION['id']}/usage", Reply(sums))
    done = await home.run("usage", SESSION["id"])
    assert "p/m" in done.stdout.decode()
    assert (await home.run("usage", SESSION["id"], "--by", "day")).returncode == 2
