"""Models that no list shows are found by their exact name, under the rules of where they run."""

from smista.core.errors import NoRoute
from smista.core.events import Status
from tests.actors.house import descriptor, open_house, outcome
from tests.actors.test_approvals import decide, policy, remote
from tests.fakes import said

HIDDEN = descriptor("openai-compat:a", "hidden", local=False)
TO_HIDDEN = policy(routing={"default": {"model": "openai-compat:a/hidden"}})


async def test_a_model_that_is_not_listed_serves_who_names_it_after_the_gate_for_remote_ones():
    async with open_house(remote(said("here I am"))) as house:
        house.providers.name_only(HIDDEN)
        listed = await house.directory.models({}, deadline=1)
        assert HIDDEN not in listed.models
        attachment = {"path": "a.txt", "content": "x", "content_hash": "h", "required": False}
        seen = {"attachments": {"files": [attachment], "instructions": []}}
        end = await outcome(await house.execute("look", policy=TO_HIDDEN, **seen))
        assert end.status is Status.AWAITING_APPROVAL
        end = await decide(house, end, "approved")
        assert end.status is Status.COMPLETED
        assert (await house.state()).messages[-1].model == "hidden"


async def test_it_does_not_serve_where_only_local_models_may():
    async with open_house(remote(said("never"))) as house:
        house.providers.name_only(HIDDEN)
        tight = {"auto_apply": False, "local_only": True, "no_network": False}
        end = await outcome(await house.execute("look", policy=TO_HIDDEN, local_preferences=tight))
        assert end.status is Status.ERROR
        assert end.data["error"]["code"] == NoRoute.code
