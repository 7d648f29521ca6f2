"""What is wrong with a file of the user, said so that a person finds the line and mends it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast, get_args

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
        for nested in _models_in(model.model_fields[key].annotation):
            yield from _below(nested, value, file=file, place=spot)


def _below(model: type[BaseModel], value: object, *, file: str, place: str) -> Iterator[Finding]:
    if isinstance(value, dict):
        yield from unknown_keys(model, cast("dict[str, Any]", value), file=file, place=place)
    if isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _below(model, item, file=file, place=f"{place}[{index}]")


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _place(start: str, location: tuple[int | str, ...]) -> str:
    place = start
    for step in location:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else step
    return place
