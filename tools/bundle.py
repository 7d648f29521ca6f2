"""Build hook: carries actors and cli inside the wheel, below smista, and only there.

An editable install reads them from the checkout; a copy would go stale.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Bundle(BuildHookInterface[Any]):
    """Puts both folders under `smista/_bundle`, so that a wheel has one top-level name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"] |= {
                "actors": "smista/_bundle/actors",
                "cli": "smista/_bundle/cli",
            }
