"""A prompt tells whoever carries it if its model was chosen as a local one."""

import pytest

from tests.core.builders import decided, model, snapshot


@pytest.mark.parametrize("local", [True, False])
def test_a_prompt_says_whether_its_model_was_chosen_as_a_local_one(local):
    decision = decided(snapshot(models=(model("ollama/small", local=local, auth="none"),)))
    assert decision.prompt.local is local
