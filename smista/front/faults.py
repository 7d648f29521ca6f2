"""Where a fault of ours goes: into the log, masked; the client only learns that it happened."""

import logging
import traceback
from collections.abc import Sequence

from smista.core.errors import InternalError
from smista.front.mask import masked_text

_log = logging.getLogger("smista.front")


def log_fault(error: BaseException, place: str, keys: Sequence[str] = ()) -> InternalError:
    """Log *error* at *place* (a path template) and return what the client is told."""
    text = "".join(traceback.format_exception(error))
    _log.error("%s failed: %s", place, masked_text(text, keys))
    return InternalError("the router failed; its log says more")
