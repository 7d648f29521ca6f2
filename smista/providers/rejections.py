"""An HTTP answer outside 200..299 → the error of ours; what is the same for every dialect."""

from collections.abc import Callable
from typing import Any, Final

from smista.core.errors import ProviderError, ProviderFailure
from smista.providers.faults import Complaint, classify, not_an_api, read_complaint
from smista.providers.json_values import BadJson, is_list, parse_json
from smista.providers.masking import Mask

_NOTHING_HERE: Final = (404, 405)


def rejection(
    provider: str,
    url: str,
    status: int,
    body: bytes,
    mask: Mask,
    *,
    depth: int,
    judge: Callable[[Complaint, Any], ProviderError | None] | None = None,
) -> ProviderError:
    """Return the error that *status* and *body* stand for.

    *judge* is asked first: it knows what its provider means by words that others use otherwise.
    """
    if 300 <= status < 400:
        return _redirected(provider, url, status)
    said = error_value(body, depth=depth)
    complaint = read_complaint(provider, status, said, mask)
    error = (judge(complaint, said) if judge is not None else None) or classify(complaint)
    if status in _NOTHING_HERE and isinstance(error, ProviderFailure):
        return not_an_api(provider, url, f"{status} ({complaint.message})", status)
    return error


def error_value(body: bytes, *, depth: int) -> Any:
    """Return the error object of *body*, or its text if it is short and for people."""
    try:
        value = parse_json(body, depth=depth)
    except BadJson:
        page = body.lstrip().startswith(b"<")
        return "a web page" if page else body.decode("utf-8", "replace").strip()
    return value[0] if is_list(value) and value else value


def _redirected(provider: str, url: str, status: int) -> ProviderError:
    return ProviderFailure(
        f"{url} answered {status}, a redirect; smista follows none, so that no key or prompt goes"
        f" where nobody sent it. Set base_url of {provider} to the final address",
        kind="redirect",
        provider=provider,
        status=status,
    )
