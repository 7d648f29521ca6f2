"""What the system may take out of a process that has keys in its memory: nothing.

No core file, and on Linux no other process of the same user may look into it.
"""

import resource
import sys
from typing import Final

_PR_SET_DUMPABLE: Final = 4


def keep_memory_private() -> None:
    """Refuse core files and, on Linux, being looked into; a program we start is free again."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    if sys.platform == "linux":
        # Imported late: what only prints a version holds no keys and need not wait for it.
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
