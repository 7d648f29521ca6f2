"""The files that `smista config init` writes: short, commented, and valid as they stand."""

from typing import Final

_HEAD: Final = """\
# {title}
# Merged over the built-in defaults{over}. Check it with: smista config check {target}
# What a prompt would do under it: smista explain "your prompt"

"""
_ROUTES: Final = """\
# The providers you use. Their keys stay out of this file: smista credentials set openai
[providers.ollama]
type = "ollama"

# [providers.openai]
# type = "openai"

# The model that serves when no rule matches. Local Ollama is enabled in router.toml.
[routing.default]
model = "ollama/qwen2.5-coder:7b"
# fallbacks = ["openai/gpt-5.5-mini"]
"""
_QUIET_ROUTES: Final = """\
# Providers and default route are those of your global file, unless this project needs others.
# [providers.openai]
# type = "openai"

# [routing.default]
# model = "openai/gpt-5.5-mini"
"""
_REST: Final = """
# What kind of work a prompt is: chat, plan, edit, review, summarize, prompt or skill.
# [[classification.rules]]
# intent = "review"
# keywords = ["review", "audit"]

# Which model does which work. A lower priority is tried first; all conditions must match.
# [[routing.rules]]
# name = "sensitive code stays on this machine"
# priority = 5
# paths = ["src/auth/**"]
# local_only = true
# model = "ollama/qwen2.5-coder:7b"

# [[routing.rules]]
# name = "reviews"
# priority = 10
# intent = "review"
# model = "openai/gpt-5.5-mini"
# fallbacks = ["ollama/qwen2.5-coder:7b"]
# cost_limit = "0.50"

# What no remote model may see, besides keys and .env files, which are built in.
[privacy]
restricted_paths = []

# Before something goes to a remote model: allow, ask or deny.
[privacy.remote]
mode = "ask"

# What a model may do: allow, ask or deny.
[tools.permissions]
file_read = "ask"
file_write = "ask"
shell = "ask"
network = "ask"
git = "ask"

# [local_preferences]
# local_only = true     # no remote model at all
# no_network = true     # and no network tools
"""
ROUTER: Final = """\
# The router of this machine. Check it with: smista config check router
# Every setting shown is the default; remove the # to change one.

[router]
# host = "127.0.0.1"
# port = 7331

# Models of Ollama on this machine.
[router.ollama]
# enabled = true
# base_url = "http://127.0.0.1:11434"

# Any server that speaks Chat Completions, under a name of your own.
# [router.providers."openai-compat:local"]
# base_url = "http://127.0.0.1:8000/v1"
# local = true
#
# [[router.providers."openai-compat:local".models]]
# name = "qwen2.5-coder-7b"
# max_context_tokens = 32768

[router.limits]
# max_concurrent_requests = 8
# request_timeout_ms = 120000
# provider_timeout_ms = 180000

[router.retention]
# trace_retention_days = 90
# session_retention_days = 365
# archived_session_retention_days = 30
"""


def policy_starter(target: str, *, own_routes: bool) -> str:
    """Return a new `config.toml` for *target*; without *own_routes* it names no model."""
    project = target == "project"
    title = "The policy of this project; safe to commit." if project else "Your own policy."
    over = " and your global file" if project else ""
    head = _HEAD.format(title=title, over=over, target=target)
    return head + (_ROUTES if own_routes else _QUIET_ROUTES) + _REST
