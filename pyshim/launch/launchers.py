"""Programs that start other programs elsewhere or anew: does the environment arrive there, and if not, what helps?

Pure functions from words and variables to an answer, one for each kind of launcher (LAUNCHERS in program.py).
Where something can be set so that it arrives, that is set. Else one line says what to write instead.

Of each launcher only the flags that lose the environment are known. They are looked for up to the first word that is a
program: what stands behind it belongs to that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pyshim.launch.environment import NAME, preloaded
from pyshim.launch.program import LAUNCHERS

# What an overlap-run around this one may have set. OVERLAP_LAUNCHER_PID means nothing in another process.
_OURS = ("OVERLAP_TABLE", "OVERLAP_REPORT", "OVERLAP_QUIET")
_OWN = "OVERLAP_LAUNCHER_PID"


class Asked(NamedTuple):
    command: Sequence[str]  # the launcher and its words
    base: Mapping[str, str]  # the environment around overlap-run
    ours: Mapping[str, str]  # what must arrive
    again: Sequence[str] = ("overlap-run",)  # overlap-run as it was called: its path and its options
    path: str = ""  # the launcher's file


class Way(NamedTuple):
    changes: Mapping[str, str] = {}  # what is to be set, too, so that it arrives
    doubt: str | None = None  # it does not arrive: what to write instead
    elsewhere: bool = False  # the program may start on other machines than this


def look(asked: Asked) -> Way:
    kind = LAUNCHERS.get(os.path.basename(asked.command[0])) if asked.command else None
    way = _KINDS[kind](asked) if kind else Way()
    return way if asked.ours else Way(elsewhere=way.elsewhere)


def ours(base: Mapping[str, str], result: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that must arrive in the program: those added to `base`, and an outer overlap-run's."""
    found = {name: value for name, value in result.items() if base.get(name) != value or name in _OURS}
    if _library(result.get("LD_PRELOAD", "")):
        found["LD_PRELOAD"] = result["LD_PRELOAD"]
    found.pop(_OWN, None)
    return found


# Slurm


def _srun(asked: Asked) -> Way:
    ways = [_exported(asked, part, "SLURM_EXPORT_ENV") for part in _parts(asked)]
    return next((way for way in ways if way.doubt), Way(elsewhere=True))


def _sbatch(asked: Asked) -> Way:
    end = _program(asked.command, asked.base)
    script = next((word for word in asked.command[1 : end + 1] if os.path.isfile(word)), "")
    own = asked.command[: asked.command.index(script) if script else end]
    if _values(own, "--export-file"):
        return Way(doubt=_without(asked, "with --export-file"), elsewhere=True)
    return _exported(asked, own, "SBATCH_EXPORT", None if _values(own, "--wrap") else _directive(script))


def _exported(asked: Asked, own: Sequence[str], variable: str, written: str | None = None) -> Way:
    """written: in the script. The command line stands over the variable, and that over the script."""
    options = _values(own, "--export")
    if options:
        value, where = options[-1], f"with --export={options[-1]}"
    elif variable in asked.base:
        value, where = asked.base[variable], f"with {variable}={asked.base[variable]}"
    else:
        value, where = written or "ALL", f"by the line #SBATCH --export={written} of the script"
    given = _given(value.split(","))
    arrives = any(name.upper() == "ALL" for name in given) or given.keys() >= asked.ours.keys()
    if arrives and not _differs(given, asked):
        return Way(elsewhere=True)
    return Way(doubt=_without(asked, where), elsewhere=True)


def _directive(script: str) -> str | None:
    """--export in the #SBATCH lines of a script, which end at its first command."""
    found = None
    for line in _head(script).decode(errors="replace").split("\n"):
        if line.strip() and not line.startswith("#"):
            break
        option = re.match(r"#SBATCH\s(?:.*\s)?--export[=\s]\s*(\S+)", line)
        found = option[1] if option else found
    return found


def _head(path: str) -> bytes:
    """Return the first MiB of a file; nothing of a pipe, as `<(...)` of a shell: the launcher itself must read it."""
    try:
        if not os.path.isfile(path):
            return b""
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except (OSError, ValueError):
        return b""


# MPI

_LIST = "OMPI_MCA_mca_base_env_list"
_HOSTS = ("-H", "--host", "--hostfile", "--machinefile", "--default-hostfile", "--app")
_LISTS = ("--am", "--tune", "--app")  # files that may name the list


def _mpirun(asked: Asked) -> Way:
    """Open MPI's agents on other hosts get what the list names; what is not for it, Hydra's among them, ignores it."""
    parts = _parts(asked)
    for part in parts:
        # Hydra passes all on, unless it is told not to.
        limited = [*_values(part, "--genvlist", "--envlist"), *([""] * _has(part, "--genvnone", "--envnone"))]
        if any(not _given(value.split(",")).keys() >= asked.ours.keys() for value in limited):
            return Way(doubt=_without(asked, "with these options"), elsewhere=True)
    exported = _given([value for part in parts for value in _values(part, "-x")])
    if not exported and not any(_has(part, *_LISTS) or _names_list(part) for part in parts) and not _configured(asked):
        merged = _merged(asked)
        if merged is not None:
            return Way({_LIST: merged}, elsewhere=True)
    arrives = exported.keys() >= asked.ours.keys() and not _differs(exported, asked)
    named = any(_has(part, *_HOSTS) for part in parts) or "OMPI_MCA_orte_default_hostfile" in asked.base
    if arrives or not (named or _differs(exported, asked)):
        return Way(elsewhere=True)
    return Way(doubt=_without(asked, "on other hosts"), elsewhere=True)


def _names_list(part: Sequence[str]) -> bool:
    return any(word.startswith(("mca_base_env_list", "mca_base_param_files", "mca_param_files")) for word in part)


def _configured(asked: Asked) -> bool:
    """Whether a file of Open MPI gives the list: the variable would take its place."""
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(asked.path)))
    files = [
        os.path.join(asked.base.get("HOME", ""), ".openmpi", "mca-params.conf"),
        "/etc/openmpi/openmpi-mca-params.conf",
        os.path.join(prefix, "etc", "openmpi-mca-params.conf"),
    ]
    for name in ("OMPI_MCA_mca_param_files", "OMPI_MCA_mca_base_param_files"):
        files += asked.base.get(name, "").replace(":", ",").split(",")
    lines = (line.lstrip() for file in files if file for line in _head(file).split(b"\n"))
    return any(b"mca_base_env_list" in line and not line.startswith(b"#") for line in lines)


def _merged(asked: Asked) -> str | None:
    """Merge the user's own list with ours, each variable with its value.

    mpirun 4.1 misreads, or dies of, a bare name whose value ends with =, as base64 does. None where a value cannot
    stand in the list."""
    delimiter = asked.base.get(f"{_LIST}_delimiter") or ";"
    theirs = [entry for entry in asked.base.get(_LIST, "").split(delimiter) if entry]
    kept = [entry for entry in theirs if entry.partition("=")[0] not in asked.ours]
    if any(delimiter in value for value in asked.ours.values()):
        return None
    return delimiter.join([*kept, *(f"{name}={value}" for name, value in sorted(asked.ours.items()))])


# A new environment on this machine


def _env(asked: Asked) -> Way:
    start = _program(asked.command, asked.base)
    own = asked.command[1:start]
    given = _given([word for word in own if "=" in word and not word.startswith("-")])
    unset = {*_values(own, "-u", "--unset")} & asked.ours.keys()
    new = _has(own, "-i", "--ignore-environment") or "-" in own
    if start < len(asked.command) and (new or unset or _differs(given, asked)):
        return Way(doubt=_without(asked, "with these words"))
    base = {**asked.base, **{name: value for name, value in given.items() if value is not None}}
    return _through(asked._replace(base=base))


def _sudo(asked: Asked) -> Way:
    # --preserve-env=NAME: that the names are these is the user's word.
    named = any(word.startswith("--preserve-env=") for word in asked.command)
    return Way() if named else Way(doubt=_without(asked, ""))


def _su(asked: Asked) -> Way:
    return Way(doubt=_without(asked, "for a login")) if _has(asked.command, "-", "-l", "--login") else Way()


def _through(asked: Asked) -> Way:
    """Of a program that becomes another one."""
    return look(asked._replace(command=asked.command[_program(asked.command, asked.base) :]))


def _salloc(asked: Asked) -> Way:
    """Look at salloc, which starts its program here, with this environment; the program may be an srun."""
    return _through(asked)._replace(elsewhere=True)


# Programs whose ranks start elsewhere, by means of their own


def _ssh(asked: Asked) -> Way:
    return Way(doubt=_without(asked, ""), elsewhere=True)


def _deepspeed(asked: Asked) -> Way:
    """Ranks on one host are its children; those of a list of hosts are started by pdsh."""
    script = next((index for index, word in enumerate(asked.command) if word.endswith(".py")), len(asked.command))
    own = asked.command[:script]
    file = ("/job/hostfile", *_values(own, "-H", "--hostfile"))[-1]
    hosts = sum(1 for line in _head(file).split(b"\n") if line.strip() and line.lstrip()[:1] != b"#")
    alone = hosts < 2 or _values(own, "--num_nodes")[-1:] == ["1"]
    chosen = ("-i", "--include", "-e", "--exclude", "--no_ssh")
    if "DS_ENV_FILE" in asked.base or _has(own, *chosen) or (alone and "--force_multi" not in own):
        return Way()
    instead = f"write {_printed(asked)} >overlap.env; export DS_ENV_FILE=$PWD/overlap.env"
    return Way(doubt=_without(asked, f"on the hosts of {file}", instead), elsewhere=True)


def _ray(asked: Asked) -> Way:
    verbs = [word for word in asked.command[1:3] if not word.startswith("-")]
    if verbs != ["job", "submit"] or any(word.startswith("--runtime-env") for word in asked.command):
        return Way()
    return Way(doubt=_without(asked, ""), elsewhere=True)


def _container(asked: Asked) -> Way:
    """Doubt a container: it lacks the environment or the library's folder, unless the user passes them."""
    name, verb = os.path.basename(asked.command[0]), (*asked.command[1:2], "")[0]
    folder = os.path.dirname(_library(asked.ours.get("LD_PRELOAD", "")))
    docker = name not in ("apptainer", "singularity")
    if not folder or verb not in (("run", "create", "exec") if docker else ("exec", "run", "shell")):
        return Way()
    passes = any(part in word for word in asked.command for part in ("LD_PRELOAD", "env-file"))
    if passes if docker else _is_bound(folder, asked):
        return Way()
    bind = f"--bind {folder}" if not docker else "" if verb == "exec" else f"-v {folder}:{folder}:ro"
    instead = f"write {_printed(asked)} >overlap.env; give {verb} {bind} --env-file overlap.env"
    return Way(doubt=f"{name} starts programs without the library: {' '.join(instead.split())}")


def _is_bound(folder: str, asked: Asked) -> bool:
    """Whether Apptainer binds the folder: it, one above it, the home folder, the working directory or /tmp."""
    bound = [value for key, value in asked.base.items() if key.endswith(("_BIND", "_BINDPATH"))]
    entries = [entry for word in [*asked.command, *bound] for entry in re.split("[,=:]", word)]
    entries += [asked.base.get("HOME", ""), asked.base.get("PWD", ""), "/tmp"]
    whole = f"{os.path.realpath(folder)}/"
    return any(os.path.isabs(entry) and whole.startswith(f"{os.path.realpath(entry)}/") for entry in entries)


# What the above have in common


# Options that are followed by a program of the launcher's own; so may the value of Open MPI's --mca NAME VALUE be.
_AGENTS = ("launch-agent", "launcher-exec", "rsh", "prolog", "epilog", "task-prolog", "task-epilog")


def _program(command: Sequence[str], base: Mapping[str, str]) -> int:
    """Return where the first word stands that is a program, behind the launcher's own; the end if none is."""
    from shutil import which  # which most starts need not import

    for index, word in enumerate(command[1:], 1):
        if command[index - 1].lstrip("-") in _AGENTS or command[max(index - 2, 0)].lstrip("-") in ("mca", "gmca"):
            continue
        if not word.startswith("-") and "=" not in word and which(word, path=base.get("PATH")):
            return index
    return len(command)


def _parts(asked: Asked) -> list[list[str]]:
    """Return the launcher's own words for each of several programs, which : parts."""
    parts: list[list[str]] = [[asked.command[0]]]
    for word in asked.command[1:]:
        if word == ":":
            parts.append([asked.command[0]])
        else:
            parts[-1].append(word)
    return [part[: _program(part, asked.base)] for part in parts]


def _values(words: Sequence[str], *names: str) -> list[str]:
    """Return the values of options: --name=value, --name value, -nvalue. Some write long names with one dash, too."""
    found = []
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        for wanted in names:
            if name in (wanted, wanted[1:] if len(wanted) > 2 else wanted):
                found.append(value if equals else "".join(words[index + 1 : index + 2]))
            elif len(wanted) == 2 and word.startswith(wanted) and not word.startswith("--"):
                found.append(word[2:])
    return found


def _has(words: Sequence[str], *names: str) -> bool:
    return any(
        word.partition("=")[0] in (name, name[1:] if len(name) > 2 else name) for word in words for name in names
    )


def _given(entries: Sequence[str]) -> dict[str, str | None]:
    """NAME and NAME=VALUE."""
    found: dict[str, str | None] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        found[name] = value if equals else None
    return found


def _differs(given: Mapping[str, str | None], asked: Asked) -> bool:
    """Whether something of ours is given another value on the way. Of other variables that is the user's word."""
    ours = {name: value for name, value in asked.ours.items() if name in _OURS or name == "LD_PRELOAD"}
    return any(value is not None and ours.get(name, value) != value for name, value in given.items())


def _library(value: str) -> str:
    """Ours in a value of LD_PRELOAD."""
    return next((entry for entry in preloaded(value) if os.path.basename(entry) == NAME), "")


def _without(asked: Asked, where: str, instead: str = "") -> str:
    name = os.path.basename(asked.command[0])
    return f"{name}{where and ' '}{where} starts programs without this environment: {instead or _instead(asked)}"


def _instead(asked: Asked) -> str:
    return f"write {_joined(asked.again)} in front of the program that it starts"


def _printed(asked: Asked) -> str:
    """`overlap env --format docker` with those of the options that it knows."""
    kept: list[str] = []
    options = list(asked.again[1:])
    while options:
        option = options.pop(0)
        name = option.partition("=")[0]
        if name in ("--policy", "--report", "--simulate"):
            value = [] if "=" in option else options[:1]
            del options[: len(value)]
            kept += [option, *value] if name != "--simulate" else []
    folder, _, name = asked.again[0].rpartition("/")
    overlap = f"{folder}/overlap" if folder and name == "overlap-run" else "overlap"
    return _joined([overlap, "env", *kept, "--format", "docker"])


def _joined(command: Sequence[str]) -> str:
    import shlex

    return " ".join(map(shlex.quote, command))


_KINDS: dict[str, Callable[[Asked], Way]] = {
    "srun": _srun,
    "sbatch": _sbatch,
    "salloc": _salloc,
    "mpirun": _mpirun,
    "env": _env,
    "sudo": _sudo,
    "su": _su,
    "ssh": _ssh,
    "deepspeed": _deepspeed,
    "ray": _ray,
    "container": _container,
    "through": _through,
}
