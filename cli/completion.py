"""Scripts that complete the command line in a shell. They hold every word, and start no program.

The words are taken from the commands themselves when a script is made.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Final, cast

import asyncclick as click

from cli.arguments import PROMPT, YES_TO
from cli.table import COMMANDS, Section
from smista.core.model_ref import BUILT_IN, COMPAT

FILES: Final = "FILES"
"""In the place of values: names of files."""
_MORE: Final[Mapping[str, tuple[str, ...]]] = {"provider": (*sorted(BUILT_IN), COMPAT)}
_WIDEST: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """*values* None: it stands alone."""

    names: tuple[str, ...]
    help: str
    values: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What can follow the command *path*: commands below it, flags, and plain words."""

    path: str
    commands: Mapping[str, str]
    flags: tuple[Flag, ...]
    words: tuple[str, ...] = ()


def script(shell: str, group: click.Group) -> str:
    """Return the script for *shell*, one of SHELLS, of all commands of *group*."""
    return _SCRIPTS[shell](tuple(_places(group)))


def _places(group: click.Group) -> Iterator[Place]:
    shown = {
        name: entry.help for name, entry in COMMANDS.items() if entry.section != Section.HIDDEN
    }
    bare = _command(PROMPT)
    yield Place(path="", commands=shown, flags=(*_flags(group), *_flags(bare)))
    for name in shown:
        yield from _below(name, _command(name))


def _command(name: str) -> click.Command:
    command: click.Command = getattr(import_module(COMMANDS[name].module), name.replace("-", "_"))
    return command


def _below(path: str, command: click.Command) -> Iterator[Place]:
    group: object = getattr(command, "commands", {})
    named = cast("Mapping[str, click.Command]", group)
    aliases: Mapping[str, str] = getattr(command, "aliases", {})
    below = {name: each.get_short_help_str(_WIDEST) for name, each in named.items()}
    words = tuple(word for param in command.params for word in _words(param))
    yield Place(path=path, commands=below, flags=tuple(_flags(command)), words=words)
    for name, each in named.items():
        for known in (name, *(other for other, meant in aliases.items() if meant == name)):
            yield from _below(f"{path} {known}", each)


def _flags(command: click.Command) -> Iterator[Flag]:
    for param in command.params:
        if isinstance(param, click.Option) and not param.hidden and YES_TO not in param.opts:
            names = (*param.opts, *param.secondary_opts)
            values = None if param.is_flag or param.count else _values(param)
            yield Flag(names=names, help=_short(param.help or ""), values=values)


def _words(param: click.Parameter) -> tuple[str, ...]:
    if not isinstance(param, click.Argument):
        return ()
    return _MORE.get(param.name or "") or _values(param)


def _values(param: click.Parameter) -> tuple[str, ...]:
    if isinstance(param.type, click.Path):
        return (FILES,)
    choices: object = getattr(param.type, "choices", ())
    return tuple(map(str, cast("Sequence[object]", choices)))


def _short(text: str) -> str:
    """Return the first sentence of *text*, without what a shell would take for its own."""
    first = text.replace("\n", " ").partition(". ")[0].partition("; ")[0].rstrip(".")
    return "".join(char for char in first if char not in "'\\`$\"[]:")


def _bash(places: tuple[Place, ...]) -> str:
    values = "".join(_bash_values(place) for place in places)
    words = "".join(
        f"        '{place.path}') words='{' '.join(_all_words(place))}' ;;\n" for place in places
    )
    return f"""\
# Completion of smista in bash. In ~/.bashrc: eval "$(smista completion bash)"
_smista_files() {{
    local path
    while IFS= read -r path; do
        if [[ -d $path ]]; then path+=/; fi
        COMPREPLY+=("$1$path")
    done < <(compgen -f -- "$2")
    if [[ ${{#COMPREPLY[@]}} == 1 && ${{COMPREPLY[0]}} == */ ]]; then compopt -o nospace; fi
}}
_smista() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" at="" words="" i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "${{at:+$at }}${{COMP_WORDS[i]}}" in
        {_known(places)}) at="${{at:+$at }}${{COMP_WORDS[i]}}" ;;
        esac
    done
    COMPREPLY=()
    # Whether a word is cut at its @ depends on COMP_WORDBREAKS; what is replaced begins with it.
    if [[ $prev == @ ]]; then _smista_files @ "$cur"; return; fi
    if [[ $cur == @* ]]; then _smista_files @ "${{cur#@}}"; return; fi
    case "$at $prev" in
{values}    esac
    case "$at" in
{words}    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o bashdefault -o default -F _smista smista
"""


def _bash_values(place: Place) -> str:
    lines = ""
    for flag in place.flags:
        if flag.values is None:
            continue
        cases = " | ".join(f"'{place.path} {name}'" for name in flag.names)
        asked = f"COMPREPLY=($(compgen -W '{' '.join(flag.values)}' -- \"$cur\"))"
        if flag.values == (FILES,):
            asked = '_smista_files "" "$cur"'
        lines += f"    {cases}) {asked}; return ;;\n"
    return lines


def _zsh(places: tuple[Place, ...]) -> str:
    values = "".join(_zsh_values(place) for place in places)
    words = "".join(
        f"    '{place.path}')\n        names=({' '.join(_described(place))})\n        ;;\n"
        for place in places
    )
    return f"""\
#compdef smista
# Completion of smista in zsh. In ~/.zshrc, after compinit: eval "$(smista completion zsh)"
_smista() {{
    local at="" word
    local -a names
    for word in ${{words[2,CURRENT-1]}}; do
        case "${{at:+$at }}$word" in
        {_known(places)}) at="${{at:+$at }}$word" ;;
        esac
    done
    if [[ $PREFIX == @* ]]; then compset -P @; _files; return; fi
    case "$at ${{words[CURRENT-1]}}" in
{values}    esac
    case "$at" in
{words}    esac
    _describe smista names || _files
}}
if [[ $funcstack[1] == _smista ]]; then _smista "$@"; else compdef _smista smista; fi
"""


def _zsh_values(place: Place) -> str:
    lines = ""
    for flag in place.flags:
        if flag.values is None:
            continue
        cases = " | ".join(f"'{place.path} {name}'" for name in flag.names)
        asked = "_files" if flag.values == (FILES,) else f"compadd -- {' '.join(flag.values)}"
        lines += f"    {cases}) {asked}; return ;;\n"
    return lines


def _described(place: Place) -> Iterator[str]:
    for name, text in place.commands.items():
        yield f"'{name}:{_short(text)}'"
    for word in place.words:
        if word != FILES:
            yield "'" + word.replace(":", "\\:") + "'"
    for flag in place.flags:
        for name in flag.names:
            yield f"'{name}:{flag.help}'"


def _fish(places: tuple[Place, ...]) -> str:
    known = " ".join(f"'{place.path}'" for place in places if place.path)
    lines = "".join(line for place in places for line in _fish_lines(place))
    return f"""\
# Completion of smista in fish: smista completion fish > ~/.config/fish/completions/smista.fish
function __smista_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        set -l longer (string trim -- "$at $word")
        if contains -- "$longer" {known}
            set at $longer
        end
    end
    test "$at" = "$argv[1]"
end
function __smista_files
    string replace -r '^' @ (__fish_complete_path (string replace -r '^@' '' -- (commandline -ct)))
end
complete -c smista -n "string match -q '@*' -- (commandline -ct)" -a '(__smista_files)'
{lines}"""


def _fish_lines(place: Place) -> Iterator[str]:
    start = f"complete -c smista -n \"__smista_at '{place.path}'\""
    for name, text in place.commands.items():
        yield f"{start} -f -a '{name}' -d '{_short(text)}'\n"
    for word in place.words:
        yield f"{start} -F\n" if word == FILES else f"{start} -f -a '{word}'\n"
    for flag in place.flags:
        names = " ".join(
            f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names
        )
        yield f"{start} {names}{_fish_values(flag)} -d '{flag.help}'\n"


def _fish_values(flag: Flag) -> str:
    if flag.values is None:
        return ""
    if flag.values == (FILES,):
        return " -r -F"
    return f" -x -a '{' '.join(flag.values)}'" if flag.values else " -x"


def _known(places: tuple[Place, ...]) -> str:
    return " | ".join(f"'{place.path}'" for place in places if place.path)


def _all_words(place: Place) -> Iterator[str]:
    yield from place.commands
    yield from (word for word in place.words if word != FILES)
    for flag in place.flags:
        yield from flag.names


_SCRIPTS: Final[Mapping[str, Callable[[tuple[Place, ...]], str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
SHELLS: Final = tuple(_SCRIPTS)
