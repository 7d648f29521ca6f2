"""The core asks nobody: no network, no file, no clock, on import and while it decides."""

import subprocess
import sys
from pathlib import Path

import smista

PROGRAM = """
import sys, socket, time, builtins, random, os

# Libraries read their own files while they are imported; ours come after the doors are shut.
import pydantic, rapidfuzz.process, rapidfuzz.distance
import importlib.util

def refuse(*args, **kwargs):
    raise AssertionError("the core reached out")

socket.socket = refuse
builtins.open = refuse
os.open = refuse
random.random = refuse
for clock in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep"):
    setattr(time, clock, refuse)

import smista.core.request, smista.core.pipeline, smista.core.mediation, smista.core.views
for name in [name for name in sys.modules if name.startswith("smista.core.")]:
    loaded = sys.modules[name]
    for forbidden in (socket, time, random, os):
        assert forbidden not in vars(loaded).values(), (name, forbidden)

from smista.core.pipeline import decide
from smista.core.request import ExecuteRequest
from smista.core.snapshot import Snapshot
from smista.core.model_ref import ModelDescriptor

request = ExecuteRequest.model_validate({
    "input": {"text": "reviwe this"},
    "workspace": {"root": "/w", "referenced_paths": ["src/a"],
                  "git_diff": "diff --git a/x b/x\\n--- a/x\\n+++ b/x\\n@@ -1 +1 @@\\n-a\\n+b\\n"},
    "policy": {"version": 1, "source": "s", "tools": {},
               "classification": {"rules": [{"intent": "review", "keywords": ["review"]}]},
               "routing": {"default": {"model": "ollama/m"},
                           "rules": [{"name": "r", "paths": ["src/*"], "model": "ollama/m"}]},
               "privacy": {"restricted_paths": [".env", "**/*.p?m"]}},
    "local_preferences": {"auto_apply": False, "local_only": False, "no_network": False},
    "attachments": {"files": [], "instructions": []},
})
model = ModelDescriptor(provider="ollama", model="m", local=True, auth="none",
                        max_context_tokens=1000)
decision = decide(Snapshot(request=request, text="reviwe this", run_id="r", models=(model,)))
print(decision.routing.matched_rule, decision.classification.intent.value)
"""


def test_a_decision_is_made_with_every_door_shut():
    root = Path(smista.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "r -> ollama/m review"
