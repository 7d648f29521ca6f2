"""The tools a model may ask for: names, permission keys, and the shape of their arguments."""

from collections.abc import Mapping
from typing import Any, Final

from smista.core.prompt import Tool

_PATH: Final = {"type": "string", "description": "Path relative to the workspace root"}
_GLOB: Final = {"type": "string", "description": "Only paths that fit this glob"}
_LIMIT: Final = {"type": "integer", "minimum": 1, "description": "At most so many entries"}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _count(description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "description": description}


def _shape(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        name="read_file",
        description="Read a text file, or some lines of it.",
        permission="file_read",
        parameters=_shape(
            {
                "path": _PATH,
                "start_line": _count("First line to read, counted from 1"),
                "line_count": _count("How many lines to read"),
            },
            "path",
        ),
    ),
    Tool(
        name="list_files",
        description="List the files below a directory.",
        permission="file_read",
        parameters=_shape({"path": _PATH, "glob": _GLOB, "limit": _LIMIT}),
    ),
    Tool(
        name="search_files",
        description="Search file contents for a regular expression; answers path:line: text.",
        permission="file_read",
        parameters=_shape(
            {
                "pattern": _text("Regular expression"),
                "path": _PATH,
                "glob": _GLOB,
                "limit": _LIMIT,
            },
            "pattern",
        ),
    ),
    Tool(
        name="write_file",
        description="Create a file or replace all of it.",
        permission="file_write",
        parameters=_shape(
            {"path": _PATH, "content": _text("The whole new content")}, "path", "content"
        ),
        writes=True,
    ),
    Tool(
        name="edit_file",
        description="Replace a piece of text in a file; it must occur once unless replace_all.",
        permission="file_write",
        parameters=_shape(
            {
                "path": _PATH,
                "old": _text("Text to replace, exactly as it stands in the file"),
                "new": _text("Text to put in its place"),
                "replace_all": {"type": "boolean", "description": "Replace every occurrence"},
            },
            *("path", "old", "new"),
        ),
        writes=True,
    ),
    Tool(
        name="shell",
        description="Run a shell command in the workspace root and return its output.",
        permission="shell",
        parameters=_shape(
            {
                "command": _text("The command line"),
                "timeout_ms": _count("Stop it after so many milliseconds"),
            },
            "command",
        ),
        writes=True,
    ),
    Tool(
        name="git",
        description="Run git in the workspace root.",
        permission="git",
        parameters=_shape(
            {
                "arguments": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": 'Arguments after `git`, such as ["diff", "--stat"]',
                }
            },
            "arguments",
        ),
    ),
    Tool(
        name="fetch_url",
        description="Fetch a public web page or file over HTTP and return its text.",
        permission="network",
        parameters=_shape({"url": _text("An http or https URL")}, "url"),
    ),
    Tool(
        name="memory",
        description=(
            "Keep a lasting fact: what the user prefers or how they work (scope user, for all"
            " sessions), or what matters to this task only (scope session). record adds one,"
            " update replaces one that changed, forget drops one. Never keep secrets."
        ),
        permission="memory",
        parameters=_shape(
            {
                "operation": {
                    "type": "string",
                    "enum": ["record", "update", "forget"],
                    "description": "What to do; update and forget need a key",
                },
                "scope": {
                    "type": "string",
                    "enum": ["user", "session"],
                    "description": "For whom the fact is kept",
                },
                "key": _text("Topic that one fact is kept under, or the id shown with a fact"),
                "value": _text("The fact, in a sentence or two; not for forget"),
            },
            *("operation", "scope"),
        ),
        strict=True,
    ),
    Tool(
        name="use_skill",
        description="Read the full instructions of a skill on offer before you apply it.",
        permission="skill",
        parameters=_shape({"name": _text("Name of the skill")}, "name"),
        strict=True,
    ),
)

BY_NAME: Final[Mapping[str, Tool]] = {tool.name: tool for tool in TOOLS}
ROUTER_TOOLS: Final = frozenset({"memory", "use_skill"})
"""Run in the router itself."""
CLIENT_TOOLS: Final = frozenset(BY_NAME) - ROUTER_TOOLS
"""Run on the user's machine."""
NETWORK_TOOLS: Final = frozenset(tool.name for tool in TOOLS if tool.permission == "network")
FILE_TOOLS: Final = frozenset({"read_file", "write_file", "edit_file"})
"""Their `path` argument is the one file they touch."""
LISTING_TOOLS: Final = frozenset({"list_files", "search_files"})
"""They answer with bytes of files that their arguments do not name."""
