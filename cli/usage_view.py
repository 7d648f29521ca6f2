"""Usage as a person reads it: one bar for each group, as wide as the terminal allows. Pure."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from cli.visible import visible_line

_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_FULL: Final = "█"
_BAR_AT_MOST: Final = 30
_NARROW: Final = 60
_LABEL_AT_MOST: Final = 40
_NAMES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "by_model": lambda group: f"{group.get('provider')}/{group.get('model')}",
    "by_task_type": lambda group: str(group.get("task_type")),
    "by_day": lambda group: str(group.get("day")),
    "by_project": lambda group: str(group.get("scope") or "(no project)"),
}
Usage = Mapping[str, Any]


def usage_text(usage: Usage, *, width: int = 80, blocks: bool = True) -> str:
    """Return the total and, for each breakdown in *usage*, its groups with bars.

    *blocks*: the terminal can show block characters, else `#` stands for them.
    """
    parts = [_total(usage)]
    for member, name in _NAMES.items():
        groups: Sequence[Usage] = usage.get(member) or ()
        if groups:
            ordered = groups if member == "by_day" else sorted(groups, key=_weight(groups))[::-1]
            parts.append(_bars(ordered, name, width, blocks=blocks))
    return "\n\n".join(parts)


def _total(usage: Usage) -> str:
    total: Usage = usage.get("total", {})
    models: Sequence[Usage] = usage.get("by_model") or ()
    calls = total.get("request_count", sum(int(each["request_count"]) for each in models))
    return " · ".join(part for part in (_calls(calls), _tokens(total), _money(total)) if part)


def _bars(
    groups: Sequence[Usage], name: Callable[[Usage], str], width: int, *, blocks: bool
) -> str:
    weight = _weight(groups)
    most = max(map(weight, groups)) or Decimal(1)
    labels = [visible_line(name(group)) for group in groups]
    space = min(max(map(len, labels)), _LABEL_AT_MOST)
    room = max(4, min(_BAR_AT_MOST, width - space - 2))
    lines: list[str] = []
    for label, group in zip(labels, groups, strict=True):
        bar = _bar(weight(group) / most, room, blocks=blocks)
        facts = [_money(group), _calls(group["request_count"]), _tokens(group)]
        told = "  ".join(fact for fact in facts if fact)
        if width < _NARROW or space + room + len(told) + 4 > width:
            lines += [_cut(label, width), f"  {bar.rstrip()}", f"  {told}"]
        else:
            lines.append(f"{_cut(label, space):<{space}}  {bar}  {told}")
    return "\n".join(lines)


def _weight(groups: Sequence[Usage]) -> Callable[[Usage], Decimal]:
    """Return what the bars show: cost if anything had one, else tokens, else calls."""
    for measure in (_cost, _token_count):
        if any(measure(group) for group in groups):
            return measure
    return lambda group: Decimal(int(group["request_count"]))


def _cost(group: Usage) -> Decimal:
    try:
        return Decimal(str(group.get("estimated_cost", 0)))
    except InvalidOperation:
        return Decimal(0)


def _token_count(group: Usage) -> Decimal:
    return Decimal(sum(int(group.get(name, 0)) for name in ("input_tokens", "output_tokens")))


def _bar(share: Decimal, room: int, *, blocks: bool) -> str:
    if not blocks:
        return ("#" * int(share * room + Decimal("0.5"))).ljust(room)
    eighths = int(share * room * 8)
    whole, rest = divmod(eighths, 8)
    return (_FULL * whole + (_EIGHTHS[rest] if rest else "")).ljust(room)


def _calls(count: Any) -> str:
    return f"{count} call" if count == 1 else f"{count} calls"


def _tokens(group: Usage) -> str:
    counts = [
        f"{int(group[name]):,} {word}"
        for name, word in (("input_tokens", "in"), ("output_tokens", "out"))
        if name in group
    ]
    return f"{' + '.join(counts)} tokens" if counts else ""


def _money(group: Usage) -> str:
    if "estimated_cost" not in group:
        return ""
    # Totals of many calls have more digits than anybody reads; small ones keep what they have.
    cost = _cost(group)
    shown = f"{cost:.2f}" if cost >= 1 else f"{cost.normalize():f}" if cost else "0"
    return f"{shown[:10]} USD"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
