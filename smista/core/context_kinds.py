"""The kinds of context a classification rule may ask for, and which of them are at hand."""

import re
from typing import Final

from smista.core.snapshot import Snapshot

KINDS: Final = frozenset(
    {
        *("git_diff", "git_branch", "active_file", "referenced_paths", "attachments"),
        *("invoked_skill", "pull_request"),
        *("tool_results", "tool_error", "file_changes", "approved_plan"),
    }
)
"""All kinds there are; another name in a policy is never available."""

_PULL_REQUEST: Final = re.compile(
    r"https?://[^\s/]+/\S*?/(?:pulls?|pull-requests|pullrequest|merge_requests)/\d+", re.IGNORECASE
)


def available_kinds(snapshot: Snapshot) -> frozenset[str]:
    """Return the context kinds this turn can offer, those that a run grows included."""
    request = snapshot.request
    workspace = request.workspace
    at_hand = {
        "git_diff": bool(workspace.git_diff and workspace.git_diff.strip()),
        "git_branch": bool(workspace.git_branch),
        "active_file": bool(workspace.active_file),
        "referenced_paths": bool(workspace.referenced_paths),
        "attachments": bool(request.attachments.files),
        "invoked_skill": bool(request.attachments.invoked_skills),
        "pull_request": _PULL_REQUEST.search(snapshot.text) is not None,
    }
    return frozenset(kind for kind, held in at_hand.items() if held) | snapshot.grown_kinds
