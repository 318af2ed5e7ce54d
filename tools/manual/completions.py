"""Completions for bash, zsh and fish.

Behind overlap-run's options stands PROGRAM, whose own completion goes on there: libraries that make completions of
argparse parsers (shtab) complete file names there instead.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from tools.manual.parsers import Command, Option

_HEAD = "# Made by tools/manual from the parsers of the commands."
_PROGRAM = "[PROGRAM [ARG ...]]"


class Names:
    """What values may be, by the words that help writes for them."""

    def __init__(self, gpus: tuple[str, ...], policies: tuple[str, ...]) -> None:
        self.words = {"GPU": gpus, "POLICY": policies}

    def of(self, option: Option) -> tuple[str, ...]:
        return option.choices or self.words.get(option.value, ())


def takes_file(option: Option) -> bool:
    return option.value.split(" ")[0] in ("FILE", "POLICY", "BEFORE")


def takes_folder(option: Option) -> bool:
    return option.value.split(" ")[0] == "DIR"


def visible(command: Command) -> Iterator[Option]:
    return (option for option in command.options if not option.hidden)


def with_value(command: Command) -> list[str]:
    return [name for option in command.options if option.value for name in option.names]


def bash(commands: list[Command], names: Names) -> str:
    overlap_run, _, *below = commands
    lines = [_HEAD, *_BASH_PARTS.splitlines(), "", "_overlap_values() {", '    case "$1 $2" in']
    for command in commands:
        for option in filter(lambda option: option.value and option.names, command.options):
            if not (names.of(option) or takes_file(option) or takes_folder(option)):
                continue
            cases = " | ".join(f'"{" ".join(command.words)} {name}"' for name in option.names)
            lines.append(f"        {cases}) {_bash_value(option, names)} ;;")
    lines += ["        *) return 1 ;;", "    esac", "}", "", "_overlap_words() {", '    case "$1" in']
    for command in commands:
        words = [name for option in visible(command) for name in option.names]
        groups = " ".join(name for name, _ in command.groups)
        rest = next((option for option in command.options if not option.names), None)
        position = f'_overlap_some "{groups}"' if groups else _bash_value(rest, names) if rest else ":"
        if rest and not groups and not (names.of(rest) or takes_file(rest) or takes_folder(rest)):
            position = ":"
        lines.append(f'        "{" ".join(command.words)}")')
        lines.append(f'            if [[ $cur == -* ]]; then _overlap_some "{" ".join(words)}"; else {position}; fi ;;')
    lines += ["    esac", "}", ""]
    lines += [
        line.replace("@RUN@", "|".join(with_value(overlap_run)))
        .replace("@DOCTOR@", "|".join(next(with_value(one) for one in below if one.words[1:] == ("doctor",))))
        .replace("@COMMANDS@", " | ".join(f'"{" ".join(one.words)}"' for one in below))
        for line in _BASH_MAIN.splitlines()
    ]
    return "\n".join(lines) + "\n"


def _bash_value(option: Option, names: Names) -> str:
    words = " ".join(names.of(option))
    some = f'_overlap_some "{words}"' if words else ""
    files = "_overlap_files -f" if takes_file(option) else "_overlap_files -d" if takes_folder(option) else ""
    return "; ".join(filter(None, (some, files))) or ":"


_BASH_PARTS = """
_overlap_some() {
    local word
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$1" -- "$cur")
}

_overlap_files() {
    local word
    compopt -o filenames 2>/dev/null
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen "$1" -- "$cur")
}

# The program of the user, which begins at word $1, with its own completion where bash-completion is loaded.
_overlap_program() {
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif ((COMP_CWORD == $1)) && [[ $cur != */* ]]; then
        local word
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -c -- "$cur")
    else
        _overlap_files -f
    fi
}
"""
_BASH_MAIN = r"""# Options of command $1 begin at word $2; $3: those with a value. True: a program stands behind them.
_overlap_before_program() {
    local index=$2
    while ((index < COMP_CWORD)); do
        case ${COMP_WORDS[index]} in
            --) ((index++)); break ;;
            -*)
                if [[ ${COMP_WORDS[index + 1]} == = ]]; then ((index += 3))
                elif [[ "|$3|" == *"|${COMP_WORDS[index]}|"* ]]; then ((index += 2))
                else ((index++)); fi ;;
            *) break ;;
        esac
    done
    if ((index >= COMP_CWORD)) && [[ ${COMP_WORDS[index - 1]} != -- ]]; then
        [[ $index -eq $COMP_CWORD && $cur != -* ]] || return 1
    fi
    _overlap_values "$1" "$before" && return 0
    _overlap_program "$index"
}

_overlap() {
    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=overlap index
    COMPREPLY=()
    # bash splits --option=VALUE at the equals sign
    if [[ $cur == = ]]; then cur=""; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    if [[ ${COMP_WORDS[0]##*/} == overlap-run ]]; then
        _overlap_before_program overlap-run 1 "@RUN@" && return
        command=overlap-run
    else
        for ((index = 1; index < COMP_CWORD; index++)); do
            case "$command ${COMP_WORDS[index]}" in
                "overlap run") _overlap_before_program overlap-run $((index + 1)) "@RUN@" && return
                    command=overlap-run; break ;;
                "overlap doctor") _overlap_before_program "overlap doctor" $((index + 1)) "@DOCTOR@" && return
                    command="overlap doctor"; break ;;
                @COMMANDS@) command+=" ${COMP_WORDS[index]}" ;;
            esac
        done
    fi
    _overlap_values "$command" "$before" || _overlap_words "$command"
}
complete -F _overlap overlap overlap-run
"""


def zsh(commands: list[Command], names: Names) -> str:
    lines = ["#compdef overlap overlap-run", _HEAD, ""]
    for command in commands:
        lines += [
            f"{_zsh_function(command)}() {{",
            "    local curcontext=$curcontext state line",
            "    typeset -A opt_args",
        ]
        lines.append("    _arguments -C -s \\")
        lines += [f"        {_zsh_option(option, names)} \\" for option in visible(command) if option.names]
        rest = [option for option in command.options if not option.names]
        if command.words == ("overlap-run",) or any(option.value == _PROGRAM for option in rest):
            lines += ["        '(-):program:_command_names -e' \\", "        '*::argument:_normal'"]
        elif command.groups:
            told = " ".join(f"{name}\\:{_zsh_text(meaning)}" for name, meaning in _short(command))
            lines += [f"        {shlex.quote(f'1:command:(({told}))')} \\", "        '*::argument:->below'"]
            lines += ["    [[ $state == below ]] && case $words[1] in"]
            for name, _ in command.groups:
                inner = "_overlap_run" if name == "run" else f"{_zsh_function(command)}_{name}"
                lines.append(f"        {name}) {inner} ;;")
            lines.append("    esac")
        else:
            value = _zsh_value(rest[0], names) if rest else ""
            lines.append(f"        {shlex.quote(f'*:{rest[0].value.split()[0]}:{value}')}" if rest else "        && :")
        lines += ["}", ""]
    lines += ["case $service in", "    overlap-run) _overlap_run ;;", "    *) _overlap_front ;;", "esac"]
    return "\n".join(lines) + "\n"


def _short(command: Command) -> list[tuple[str, str]]:
    return [(name, shlex.quote(meaning.replace("'", ""))) for name, meaning in command.groups]


def _zsh_function(command: Command) -> str:
    if command.words == ("overlap-run",):
        return "_overlap_run"
    return "_".join(("_overlap_front", *command.words[1:]))


def _zsh_option(option: Option, names: Names) -> str:
    meaning = _zsh_text(option.meaning)
    value = f":{option.value.split()[0]}:{_zsh_value(option, names)}" if option.value else ""
    if option.value.count(" ") == 1 and "..." not in option.value:  # BEFORE AFTER
        value += f":{option.value.split()[1]}:_files"
    if len(option.names) == 1:
        return shlex.quote(f"{option.names[0]}[{meaning}]{value}")
    both = " ".join(option.names)
    return f"'({both})'{{{','.join(option.names)}}}{shlex.quote(f'[{meaning}]{value}')}"


def _zsh_value(option: Option, names: Names) -> str:
    words = " ".join(names.of(option))
    if words and takes_file(option):
        return f"_alternative 'names:name:({words})' 'files:file:_files'"
    return f"({words})" if words else "_files" if takes_file(option) else "_files -/" if takes_folder(option) else " "


def _zsh_text(text: str) -> str:
    return "".join(f"\\{character}" if character in "[]:\\" else character for character in text)


def fish(commands: list[Command], names: Names) -> str:
    lines = [_HEAD]
    for command in commands:
        words = command.words
        head = f"complete -c {words[0]}"
        others = " ".join(name for name, _ in command.groups)
        seen = [f"__fish_seen_subcommand_from {word}" for word in words[1:]]
        where = "; and ".join([*seen, *([f"not __fish_seen_subcommand_from {others}"] if others else [])])
        condition = f" -n {shlex.quote(where)}" if where else ""
        for name, meaning in command.groups:
            lines.append(f"{head}{condition} -f -a {name} -d {shlex.quote(meaning)}")
        for option in visible(command):
            value = _fish_value(option, names)
            if option.names:
                flags = " ".join(
                    f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
                )
                lines.append(f"{head}{condition} {flags}{value} -d {shlex.quote(option.meaning)}")
            elif option.value == _PROGRAM:
                lines.append(f"{head}{condition} -x -a '(__fish_complete_subcommand)'")
            elif value:
                lines.append(f"{head}{condition}{value.replace(' -r', '').replace(' -x', ' -f')}")
        if words == ("overlap-run",):
            values = " ".join(with_value(command))
            lines.append(f"{head} -x -a '(__fish_complete_subcommand -- {values})'")
    return "\n".join(lines) + "\n"


def _fish_value(option: Option, names: Names) -> str:
    words = " ".join(names.of(option))
    if takes_folder(option):
        return " -x -a '(__fish_complete_directories)'"
    if takes_file(option):
        return " -r -F" + (f" -a '{words}'" if words else "")
    return (" -x" + (f" -a '{words}'" if words else "")) if option.value else ""
