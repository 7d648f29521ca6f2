"""Nothing restricted leaves: fallbacks are gated anew, and locality makes no remote connection."""

import pytest

from smista.core.errors import ProviderUnavailable
from smista.core.events import Status
from tests.actors.house import USER, hear, open_house, outcome, request
from tests.actors.test_approvals import decide, near, policy, remote
from tests.fakes import said

MARKER = "MARKER-7f3a"
DIFF = f"""diff --git a/secrets/key.txt b/secrets/key.txt
--- a/secrets/key.txt
+++ b/secrets/key.txt
@@ -1 +1 @@
-old
+{MARKER}
diff --git a/open.txt b/open.txt
--- a/open.txt
+++ b/open.txt
@@ -1 +1 @@
-old
+free to read
"""
GUARDED = policy(
    privacy={"restricted_paths": ["secrets/**"]},
    routing={
        "default": {"model": "openai-compat:near/m", "fallbacks": ["openai-compat:a/m"]},
    },
)
SECRET = {
    "path": "secrets/key.txt",
    "content": MARKER,
    "content_hash": "sha256:0",
    "required": False,
}
SEEN = {
    "workspace": {"root": "/project", "referenced_paths": [], "git_diff": DIFF},
    "attachments": {"files": [SECRET], "instructions": []},
}


async def test_a_live_fallback_to_a_remote_model_is_finalized_and_gated_anew():
    close = near(said("seen"), *[[ProviderUnavailable("down")]] * 6)
    far = remote(said("from afar"))
    async with open_house(close, far) as house:
        # A local turn with the secret in view, so that history is restricted too.
        await hear(await house.execute("look", policy=GUARDED, **SEEN))
        assert MARKER in str(close.prompts[0].messages)
        assert (await house.state()).messages[-1].restricted

        end = await outcome(await house.execute("again", policy=GUARDED, **SEEN))
        assert end.status is Status.AWAITING_APPROVAL
        assert end.data["approval"]["detail"]["provider"] == "openai-compat:a"
        assert "secrets/key.txt" not in end.data["approval"]["detail"]["paths"]
        assert far.prompts == []

        end = await decide(house, end, "approved")
        assert end.data["routing"]["fallback_used"] is True
    sent = str(far.prompts[0])
    assert MARKER not in sent
    assert "free to read" in sent
    assert "seen" not in [m.text for m in far.prompts[0].messages]


LOCAL = {"auto_apply": False, "local_only": True, "no_network": False}
DENIED = {**GUARDED, "privacy": {"remote": {"mode": "deny"}}}
REQUIRED = {**SEEN, "attachments": {**SEEN["attachments"], "files": [{**SECRET, "required": True}]}}
RULE = policy(
    routing={"rules": [{"name": "r", "local_only": True, "model": "openai-compat:near/m"}]}
)


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": GUARDED, "local_preferences": LOCAL},
        {"policy": DENIED},
        {"policy": GUARDED, **REQUIRED},
        {"policy": RULE},
    ],
    ids=["preference", "privacy mode", "restricted content", "rule"],
)
async def test_a_turn_that_has_to_stay_local_asks_no_remote_host_for_its_models(changes):
    async with open_house(near(said("x")), remote()) as house:
        house.providers.fresh = False
        await house.directory.preview(USER, house.session_id, request(**changes), {})
        assert (await outcome(await house.execute(**changes))).status is Status.COMPLETED
        assert house.providers.asked == [True, True]


async def test_a_turn_that_may_go_anywhere_asks_all():
    async with open_house(near(said("x")), remote()) as house:
        house.providers.fresh = False
        await hear(await house.execute(policy=GUARDED))
        assert house.providers.asked == [False]
