"""Preview and execute agree in encrypted sessions, though only one of them opens anything."""

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smista.core.decision import Decision
from smista.core.errors import SmistaError
from smista.core.events import Status
from smista.sdk.sealing import Sealer, new_key
from tests.actors.house import USER, open_house, request
from tests.actors.portal import Portal
from tests.actors.sealed import Client
from tests.actors.test_preview import bodies
from tests.fakes import ScriptedProvider, descriptor, said

NEAR = {
    **request().policy.model_dump(mode="json"),
    "routing": {"default": {"model": "openai-compat:near/m"}},
}
texts = st.text(st.sampled_from("aé漢"), min_size=1, max_size=40)


class Sealed:
    """One house for all examples, each in an encrypted session that has gone to sleep."""

    def __init__(self) -> None:
        scripts = [said("x é" * 5)] * 20_000
        self.near = ScriptedProvider(*scripts, provider_id="openai-compat:near", local=True)
        self.far = ScriptedProvider(*scripts, provider_id="openai-compat:a", local=False)
        small = descriptor("openai-compat:near", "small", local=True, max_context_tokens=48)
        self.portal = Portal(lambda: open_house(self.near, self.far, models=[small]))

    def told_and_done(self, history, body):
        client = self.portal.call(self._remember, history)
        self.portal.jump(1801)  # also what errors before have left unsealed
        assert self.portal.house.directory.awake == 0
        return (*self.portal.call(self._both, client, body), client)

    async def _remember(self, history) -> Client:
        house, key = self.portal.house, new_key()
        session = await house.directory.create(USER, title="t", scope=None, key_id=key.key_id)
        client = Client(house, Sealer(key, session.id), session.id)
        for text in history:
            await client.finish(await client.execute(text, policy=NEAR))
        await trio.testing.wait_all_tasks_blocked()
        return client

    async def _both(self, client, body):
        self.near.prompts.clear()
        self.far.prompts.clear()
        directory = client.house.directory
        try:
            told = await directory.preview(USER, client.session_id, request(**body), {})
        except SmistaError as error:
            told = error
        return told, await client.execute(**body)


@pytest.fixture(scope="module")
def sealed():
    sealed = Sealed()
    yield sealed
    sealed.portal.close()


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(history=st.lists(texts, max_size=4), body=bodies())
def test_preview_and_execute_choose_the_same(sealed, history, body):
    told, end, client = sealed.told_and_done(history, body)
    if isinstance(told, SmistaError):
        assert end.status is Status.ERROR
        assert (end.error.code, end.error.message) == (told.code, told.message)
        return
    assert isinstance(told, Decision)
    held = [m.uuid for m in told.prompt.messages if m.sealed is not None]
    assert sorted(f"message:{uuid}" for uuid in held) == [n for each in client.opened for n in each]
    prompts = [*sealed.near.prompts, *sealed.far.prompts]
    for prompt in prompts:
        assert prompt.model == told.descriptor.model
        assert [m.uuid for m in prompt.messages if m.sealed is not None][: len(held)] == held
        assert all(m.text for m in prompt.messages)
    if end.status is Status.COMPLETED:
        shown = end.data["context"]
        assert shown["included"] == list(
            dict.fromkeys(i.label for i in told.included if i.label != "the prompt")
        )
