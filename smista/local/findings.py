"""What is wrong with a file of the user, said so that a person finds the line and mends it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """*place* is the path of tables and keys inside *file*. Values are never quoted."""

    file: str
    place: str
    message: str
    remedy: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        where = f"{self.file}: {self.place}" if self.place else self.file
        tail = f" ({self.remedy})" if self.remedy else ""
        return f"{self.severity}: {where}: {self.message}{tail}"


class InvalidConfig(Exception):
    """A configuration that cannot be used; *findings* holds all there is to mend."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = findings


def shape_findings(error: ValidationError, *, file: str, place: str) -> list[Finding]:
    """Return one finding for each fault that pydantic saw below *place*."""
    return [
        Finding(
            file=file,
            place=_place(place, fault["loc"]),
            message="unknown key" if fault["type"] == "extra_forbidden" else fault["msg"],
        )
        for fault in error.errors(include_input=False, include_url=False)
    ]


def unknown_keys(
    model: type[BaseModel], data: Mapping[str, Any], *, file: str, place: str
) -> Iterator[Finding]:
    """Yield a finding for each key of *data*, at any depth, that *model* does not know."""
    for key, value in data.items():
        spot = f"{place}.{key}" if place else key
        if key not in model.model_fields:
            known = ", ".join(sorted(model.model_fields))
            yield Finding(
                file=file, place=spot, message="unknown key", remedy=f"use one of {known}"
            )
            continue
        yield from _below(model.model_fields[key].annotation, value, file=file, place=spot)


def _below(annotation: Any, value: object, *, file: str, place: str) -> Iterator[Finding]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if isinstance(value, dict):
            table = cast("dict[str, Any]", value)
            yield from unknown_keys(annotation, table, file=file, place=place)
        return
    inner = get_args(annotation)
    if get_origin(annotation) is dict and isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _below(inner[1], item, file=file, place=f"{place}.{key}")
    elif get_origin(annotation) is tuple and isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _below(inner[0], item, file=file, place=f"{place}[{index}]")
    else:
        for option in inner:
            yield from _below(option, value, file=file, place=place)


def _place(start: str, location: tuple[int | str, ...]) -> str:
    place = start
    for step in location:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else step
    return place
