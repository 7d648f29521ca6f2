"""What a client sends to start a run: input, workspace, attachments, preferences, policy."""

from pydantic import ConfigDict

from smista.core.model_ref import ModelReference
from smista.core.policy import Frozen, Intent, Policy


class TaskInput(Frozen):
    """The prompt; `command` fixes the intent, `explicit_model` bypasses routing."""

    text: str
    command: Intent | None = None
    explicit_model: ModelReference | None = None


class Workspace(Frozen):
    """A snapshot of the project; paths are relative to *root* with `/`, absolute if outside."""

    root: str
    git_branch: str | None = None
    git_diff: str | None = None
    git_diff_restricted: bool = False
    referenced_paths: tuple[str, ...]
    active_file: str | None = None


class LocalPreferences(Frozen):
    """Three switches that may tighten safety; any other member is refused."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True, extra="forbid")

    auto_apply: bool
    local_only: bool
    no_network: bool


class ContextFile(Frozen):
    """A file read by the client. *paths*: given and real path of every file that gave bytes."""

    path: str
    content: str
    content_hash: str
    required: bool
    paths: tuple[str, ...] | None = None
    restricted: bool | None = None


class Instruction(Frozen):
    source: str
    content: str


class Skill(Frozen):
    name: str
    content: str
    path: str | None = None


class Attachments(Frozen):
    files: tuple[ContextFile, ...]
    instructions: tuple[Instruction, ...]
    invoked_skills: tuple[Skill, ...] = ()
    available_skills: tuple[Skill, ...] = ()


class ExecuteRequest(Frozen):
    """The body of `execute` and `preview` (*Request body*)."""

    input: TaskInput
    workspace: Workspace
    policy: Policy
    local_preferences: LocalPreferences
    attachments: Attachments
