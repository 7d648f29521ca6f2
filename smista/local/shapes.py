"""Tables of a file against the pydantic model they should fit: every misfit at once.

What does not fit is taken out, so that the rest can be read and judged too.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError

from smista.local.findings import Fault, Place, choose
from smista.local.toml_source import MAX_DEPTH

_SCALARS: Final[Mapping[type, str]] = {
    bool: "true or false, without quotes",
    int: "a whole number, without quotes",
    float: "a number, without quotes",
    str: 'text in quotes: "…"',
}
_WORDS: Final = {
    "string_type": ("it should be text", _SCALARS[str]),
    "tuple_type": ("it should be a list", 'write ["…", "…"]'),
    "model_type": ("it should be a table", "write [name] and its keys below"),
    "model_attributes_type": ("it should be a table", "write [name] and its keys below"),
    "dict_type": ("it should be a table", "write [name] and its keys below"),
}
_GONE: Final = object()


def fit(
    model: type[BaseModel],
    data: dict[str, Any],
    *,
    place: Place = (),
    stand_ins: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Fault, ...]:
    """Take out of *data* what *model* cannot take, and return all that was wrong with it.

    A table that lacks a required key gets that of *stand_ins*, so that the rest of it can still
    be judged; without one it goes whole.
    """
    faults = list(_misfits(model, data, place))
    known = {fault.place for fault in faults}
    said = [_said(error, data, place) for error in _missed(model, data)]
    faults += [fault for fault in said if not _within(fault, known)]
    for fault in faults:
        _take_out(data, fault.place[len(place) :])
    _sweep(data)
    _complete(model, data, stand_ins)
    return tuple(faults)


def _within(fault: Fault, known: set[Place]) -> bool:
    return any(fault.place[:length] in known for length in range(1, len(fault.place) + 1))


def _complete(model: type[BaseModel], data: dict[str, Any], stand_ins: Mapping[str, str]) -> None:
    # A required key that had to go leaves its table incomplete; that may go too, and so on.
    for _ in range(MAX_DEPTH):
        missed = _missed(model, data)
        if not missed:
            return
        for error in missed:
            *above, key = error["loc"]
            if error["type"] != "missing":
                _take_out(data, tuple(error["loc"]))
            elif key in stand_ins:
                _find(data, above)[key] = stand_ins[key]
            else:
                _take_out(data, tuple(above))
        _sweep(data)
    data.clear()


def _find(data: Any, place: Sequence[str | int]) -> Any:
    for step in place:
        data = data[step]
    return data


def _missed(model: type[BaseModel], data: Mapping[str, Any]) -> list[Any]:
    try:
        model.model_validate(data)
    except ValidationError as error:
        return list(error.errors(include_input=False, include_url=False))
    return []


def _said(error: Mapping[str, Any], data: Any, place: Place) -> Fault:
    where = (*place, *error["loc"])
    if error["type"] == "missing":
        return Fault(where, "it is missing", f"add {error['loc'][-1]}")
    message, remedy = _WORDS.get(error["type"], (str(error["msg"]), ""))
    message, listed, names = message.partition("; use one of ")
    said = str(_find(data, error["loc"]))
    # A key may stand anywhere by mistake, and findings end up in logs.
    message = message.replace(repr(said), "it").replace(repr(said.partition("/")[0]), "it")
    if listed:
        # The word at fault, or of a model reference the provider.
        remedy = choose(said.partition("/")[0], names.split(", "))
    return Fault(where, message.replace("Input should be", "it should be"), remedy)


def _misfits(model: type[BaseModel], data: Mapping[str, Any], place: Place) -> Iterator[Fault]:
    """Yield what pydantic would let pass: unknown keys, and scalars of another kind."""
    for key, value in data.items():
        spot = (*place, key)
        if key not in model.model_fields:
            yield Fault(spot, "unknown key", choose(key, sorted(model.model_fields)))
            continue
        yield from _below(model.model_fields[key].annotation, value, spot)


def _below(annotation: Any, value: object, place: Place) -> Iterator[Fault]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if isinstance(value, dict):
            yield from _misfits(annotation, cast("dict[str, Any]", value), place)
        return
    if annotation in (bool, int, float):
        yield from _scalar(annotation, value, place)
        return
    inner = get_args(annotation)
    if get_origin(annotation) is dict and isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _below(inner[1], item, (*place, key))
    elif get_origin(annotation) is tuple and isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _below(inner[0], item, (*place, index))
    elif get_origin(annotation) is not Annotated:
        for option in inner:
            yield from _below(option, value, place)


def _scalar(kind: type, value: object, place: Place) -> Iterator[Fault]:
    # Exact types: in Python a bool is an int, and pydantic reads "yes" and 1 as true.
    if type(value) is not kind and not (kind is float and type(value) is int):
        noun = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
        yield Fault(place, f"it should be {noun}", f"write {_SCALARS[kind]}")


def _take_out(data: Any, place: Place) -> None:
    """Remove what is at *place*; a list keeps a gap, so that the other places stay true."""
    here = data
    for depth, step in enumerate(place):
        below = _step(here, step)
        if below is _GONE:
            return
        if depth == len(place) - 1 or not isinstance(below, dict | list):
            if isinstance(step, int):
                here[step] = _GONE
            else:
                del here[step]
            return
        here = cast("Any", below)


def _step(box: Any, step: str | int) -> object:
    try:
        return box[step]
    except (KeyError, IndexError, TypeError):
        return _GONE


def _sweep(value: object) -> None:
    """Close the gaps; tables and lists stay the same objects."""
    if isinstance(value, dict):
        for item in cast("dict[str, object]", value).values():
            _sweep(item)
    elif isinstance(value, list):
        items = cast("list[object]", value)
        items[:] = [item for item in items if item is not _GONE]
        for item in items:
            _sweep(item)
