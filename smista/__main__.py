"""The entry point of `smista` and `python -m smista`.

It tightens the umask, answers `--version` before anything heavy is imported, makes the two
folders beside the library importable, and hands over to `cli.main`.
"""

import os
import sys

from smista import __version__

_SERVERS = frozenset({"--foreground", "demo-model"})
_HERE = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    """Run the command line and leave with its exit code."""
    umask = os.umask(0o077)
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"smista {__version__}\n")
        return
    sys.path.insert(0, _folder_of_commands())
    # httpx would load a command line of its own, with all that colours it; None stops that.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    if not _SERVERS.intersection(sys.argv):
        # And HTTP/2, which only the libraries of servers may need: 70 ms of each command.
        sys.modules.setdefault("h2", None)  # type: ignore[arg-type]
    from cli.main import run  # not at the top: it must not slow down --version

    sys.exit(run(sys.argv[1:], umask=umask))


def _folder_of_commands() -> str:
    # A wheel carries `cli` and `actors` below smista, a checkout beside it.
    bundle = os.path.join(_HERE, "_bundle")
    return bundle if os.path.isdir(bundle) else os.path.dirname(_HERE)


if __name__ == "__main__":
    main()
