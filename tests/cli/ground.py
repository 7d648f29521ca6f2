"""A project in a temporary folder, as a command sees it."""

from dataclasses import replace

from cli.surroundings import Surroundings
from smista.core.events import ToolRequest
from smista.local.paths import find_places


def surroundings(tmp_path, **changes):
    root = tmp_path / "project"
    root.mkdir(exist_ok=True)
    here = Surroundings(
        start=root,
        root=root,
        places=find_places({"SMISTA_HOME": str(tmp_path / "smista-home")}, tmp_path),
        umask=0o022,
        environ={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    return replace(here, **changes)


def call(name, mode="ask", **arguments):
    return ToolRequest(call_id="c1", name=name, arguments=arguments, requires_approval=mode)
