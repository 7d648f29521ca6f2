"""Choosing an answer: script, request and its number in, steps out. Deterministic."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from smista.demo.asked import Asked
from smista.demo.script import (
    ErrorStep,
    Failure,
    Reasoning,
    Rule,
    Script,
    Step,
    Text,
    Tokens,
    Tool,
    UsageStep,
    When,
    filled,
)

_SHOWN: Final = 200
_NO_RULE: Final = ErrorStep(error=Failure(status=400, message="no rule of the script fits"))


def answer(script: Script, asked: Asked, *, call: int) -> tuple[Step, ...]:
    """Return what the first fitting rule says to request number *call* (from 1)."""
    correction = find_correction(script.corrections, asked)
    for rule in script.rules:
        variables = _match(rule.when, asked, call, correction)
        if variables is not None:
            return _say(rule, {**_standing(asked, call, correction), **variables})
    return (_NO_RULE,)


def find_correction(corrections: Mapping[str, str], asked: Asked) -> tuple[str, str] | None:
    """Return the newest misspelt word of the prompt and its right spelling.

    Results of this run come first: they show the file as it is now. What the model itself said
    earlier does not count.
    """
    if not corrections:
        return None
    words = re.compile(rf"\b({'|'.join(map(re.escape, corrections))})\b")
    found = next(filter(None, map(words.search, _newest_first(asked))), None)
    return (found[1], corrections[found[1]]) if found else None


def tokens(asked: Asked, steps: Iterable[Step]) -> Tokens:
    """Return the usage the steps declare, else an estimate of four characters a token."""
    said, thought = 0, 0
    for step in steps:
        match step:
            case UsageStep():
                return step.usage
            case Text():
                said += len(step.text)
            case Reasoning():
                thought += len(step.reasoning)
            case Tool():
                said += len(step.tool) + len(str(step.arguments))
            case _:
                continue
    count, reasoning = _estimate(said + thought), _estimate(thought)
    return Tokens(input=_estimate(asked.size), output=count, reasoning=reasoning)


def _estimate(characters: int) -> int:
    return -(-characters // 4)


def _newest_first(asked: Asked) -> Iterable[str]:
    yield from (result.text for result in reversed(asked.results))
    yield from reversed(asked.given)


def _say(rule: Rule, variables: Mapping[str, str]) -> tuple[Step, ...]:
    return tuple(filled(step, variables) for step in rule.say)


def _standing(asked: Asked, call: int, correction: tuple[str, str] | None) -> dict[str, str]:
    last = asked.results[-1] if asked.results else None
    wrong, right = correction or ("", "")
    return {
        "user": asked.user,
        "model": asked.model,
        "call": str(call),
        "tool": last.tool if last else "",
        "result": last.text.strip()[:_SHOWN] if last else "",
        "wrong": wrong,
        "right": right,
    }


def _match(
    when: When, asked: Asked, call: int, correction: tuple[str, str] | None
) -> dict[str, str] | None:
    last = asked.results[-1] if asked.results else None
    plain = (
        when.results in (None, bool(asked.results)),
        not when.after or (last is not None and last.tool in when.after),
        when.failed is None or (last is not None and last.failed == when.failed),
        when.correction in (None, correction is not None),
        asked.tools.issuperset(when.tools),
        when.model in (None, asked.model),
        when.call in (None, call),
    )
    return _groups(when, asked) if all(plain) else None


def _groups(when: When, asked: Asked) -> dict[str, str] | None:
    user, prompt = when.patterns
    variables: dict[str, str] = {}
    for pattern, texts in ((prompt, asked.texts[::-1]), (user, (asked.user,))):
        if pattern is None:
            continue
        found = next(filter(None, map(pattern.search, texts)), None)
        if found is None:
            return None
        variables |= {name: text or "" for name, text in found.groupdict().items()}
    return variables
