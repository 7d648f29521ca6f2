"""With which key a session is begun and opened, and when nothing is said in it at all."""

import re
from datetime import datetime

import pytest

from cli.failures import exit_code
from cli.sessions import (
    Downgraded,
    LostKey,
    begin_session,
    forget_key,
    open_session,
    opened,
    plain_title,
    sealer_of,
)
from smista.core.policy import ToolsConfig
from smista.core.session_key import SessionKey
from smista.local.config_files import ConfigFile
from smista.local.config_model import Preferences
from smista.local.paths import NotOurs
from smista.local.session_keys import SessionKeys
from smista.sdk.answers import SessionSummary
from smista.sdk.client import ClientConfig, open_client
from smista.sdk.errors import ApiError
from tests.cli.ground import surroundings
from tests.sdk.router import SESSION, FakeRouter, Reply
from tests.sdk.test_client import KEY as API_KEY

KEY = SessionKey(bytes(range(32)))
CONFIG = ConfigFile()
SESSIONS = "/api/v1/sessions"


class Keeper(FakeRouter):
    """Makes sessions as they are asked for; *present* are the keys that were there by then."""

    def __post_init__(self):
        super().__post_init__()
        self.keys, self.present = None, []

    def _choose(self, asked):
        if (asked.method, asked.path) != ("POST", SESSIONS) or self.replies["POST", SESSIONS]:
            return super()._choose(asked)
        key_id = asked.body.get("key_id")
        self.present.append(key_id is not None and self.keys.find(key_id) is not None)
        more = {} if key_id is None else {"key_id": key_id, "encrypted": True}
        return Reply({"session": {**SESSION, "title": asked.body["title"], **more}}, 201)


@pytest.fixture
def here(tmp_path):
    return surroundings(tmp_path)


@pytest.fixture
def keys(here):
    return SessionKeys(here.places)


@pytest.fixture
async def router(nursery, keys):
    router = await Keeper().start(nursery)
    router.keys = keys
    return router


@pytest.fixture
async def client(router):
    async with open_client(ClientConfig(url=router.url), api_key=API_KEY) as client:
        yield client


def found(key_id=None):
    return SessionSummary(**SESSION, key_id=key_id)


async def test_a_new_session_is_encrypted_and_its_key_is_there_before_it(
    client, here, router, keys
):
    made = await begin_session(client, here, CONFIG, "what it is about")
    (asked,) = router.to(SESSIONS)
    assert router.present == [True]
    assert asked.body["key_id"] == made.sealer.key_id == keys.recorded(made.id)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d project", asked.body["title"])
    assert "about" not in str(asked.body)


async def test_each_session_has_a_key_of_its_own(client, here, router):
    for _ in range(2):
        await begin_session(client, here, CONFIG, "x")
    first, second = (asked.body["key_id"] for asked in router.to(SESSIONS))
    assert first != second


async def test_who_does_not_want_it_gets_a_session_in_clear(client, here, router, keys):
    config = ConfigFile(local_preferences=Preferences(encrypt_sessions=False))
    made = await begin_session(client, here, config, "what it is about")
    assert made.sealer is None
    assert router.to(SESSIONS)[0].body == {"title": "what it is about", "scope": str(here.root)}
    assert keys.held() == ()


async def test_a_router_that_makes_it_in_clear_all_the_same_hears_nothing_more(
    client, here, router
):
    router.answer("POST", SESSIONS, Reply({"session": SESSION}, 201))
    with pytest.raises(Downgraded, match="nothing was sent") as raised:
        await begin_session(client, here, CONFIG, "x")
    assert exit_code(raised.value) == 3
    # It stays refused, also for a command that begins anew.
    with pytest.raises(Downgraded):
        await opened(here, found())


async def test_a_session_that_was_not_made_leaves_no_key(client, here, router, keys):
    error = {"error": {"code": "not_implemented", "message": "no"}}
    router.answer("POST", SESSIONS, Reply(error, 501))
    with pytest.raises(ApiError):
        await begin_session(client, here, CONFIG, "x")
    assert keys.held() == ()


@pytest.mark.parametrize("shown", [None, SessionKey(bytes(32)).key_id, "kf_x"])
async def test_a_session_that_the_router_shows_otherwise_is_refused(here, keys, shown):
    keys.store(KEY)
    keys.record(SESSION["id"], KEY.key_id)
    with pytest.raises(Downgraded):
        await opened(here, found(shown))


async def test_a_lost_key_is_said_plainly(here, keys):
    keys.record(SESSION["id"], KEY.key_id)
    with pytest.raises(LostKey, match="lost for good") as raised:
        await sealer_of(here, found(KEY.key_id))
    assert KEY.key_id in str(raised.value)
    assert exit_code(raised.value) == 1


async def test_a_key_that_came_from_another_machine_is_taken_and_noted(here, keys):
    keys.store(KEY)
    sealer = await sealer_of(here, found(KEY.key_id))
    assert sealer.key_id == KEY.key_id
    assert keys.recorded(SESSION["id"]) == KEY.key_id


@pytest.mark.parametrize("shown", ["../../etc/passwd", "kf_" + "/" * 43, "kf_" + "a" * 44])
async def test_what_a_router_calls_a_key_names_no_file(here, shown):
    with pytest.raises(NotOurs, match="no key id"):
        await opened(here, found(shown))


async def test_a_session_is_opened_by_what_the_router_tells_of_it(client, here, router, keys):
    keys.store(KEY)
    detail = {**SESSION, "key_id": KEY.key_id}
    router.answer("GET", f"{SESSIONS}/{SESSION['id']}", Reply({"session": detail}))
    one = await open_session(client, here, SESSION["id"])
    assert one.sealer.key_id == KEY.key_id


async def test_a_deleted_session_takes_its_key_along(here, keys):
    path = keys.store(KEY)
    keys.record(SESSION["id"], KEY.key_id)
    assert await forget_key(here, SESSION["id"])
    assert not path.exists()
    assert not await forget_key(here, SESSION["id"])


@pytest.mark.parametrize(
    ("permissions", "encrypted", "says"),
    [({"memory": "allow"}, True, 1), ({"memory": "ask"}, True, 0), ({}, True, 0),
     ({"memory": "allow"}, False, 0)],
)  # fmt: skip
async def test_it_is_said_that_what_is_remembered_about_the_user_stays_readable(
    client, here, router, permissions, encrypted, says
):
    config = ConfigFile(
        tools=ToolsConfig(permissions=permissions),
        local_preferences=Preferences(encrypt_sessions=encrypted),
    )
    made = await begin_session(client, here, config, "x")
    assert len(made.notices(config)) == says
    assert all("stays readable" in notice for notice in made.notices(config))


def test_a_title_tells_day_and_project_alone(here):
    assert plain_title(here, datetime(2026, 11, 30, 12, 0)) == "2026-11-30 project"
