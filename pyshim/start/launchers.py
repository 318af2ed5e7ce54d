"""Programs that start other programs elsewhere or anew: does the environment arrive there, and if not, what helps?

TABLE has a row for each: the words with which it loses the environment, and what to write instead. Open MPI is told by
a variable which environment to take along. Words are looked at up to the first one that is a program: what stands
behind it belongs to that.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyshim.start.environment import NAME, preloaded
from pyshim.start.program import LAUNCHER_KINDS

# What an overlap-run around this one may have set. OVERLAP_LAUNCHER_PID means nothing in another process.
_OURS = ("OVERLAP_TABLE", "OVERLAP_REPORT", "OVERLAP_QUIET")
_OWN = "OVERLAP_LAUNCHER_PID"


class LauncherCall(NamedTuple):
    command: Sequence[str]  # the launcher and its words
    base: Mapping[str, str]  # the environment around overlap-run
    ours: Mapping[str, str]  # what must arrive
    again: Sequence[str] = ("overlap-run",)  # overlap-run as it was called: its path and its options
    path: str = ""  # the launcher's file


class Route(NamedTuple):
    changes: Mapping[str, str] = {}  # what is to be set, too, so that it arrives
    doubt: str | None = None  # it does not arrive: what to write instead
    elsewhere: bool = False  # the program may start on other machines than this


_FRONT = "write {again} in front of the program that it starts"


class Launcher(NamedTuple):
    loses: str | None = None  # words of its own with which the environment is lost, a regular expression; None: none
    unless: str = r"(?!)"  # words anywhere by which the user takes care of it
    variable: str = ""  # as its --export where that is not given; of sbatch so are the lines of the script
    passed_by: str = ""  # a variable by which the user takes care of it
    instead: str = _FRONT  # what to write
    elsewhere: bool = True
    through: bool = False  # it becomes the program behind its words, which may be a launcher again


# The last one counts, and is lost without ALL. That ours may be in the list is looked at for every launcher.
_EXPORT = r"--export[= ](?!(?:\S*,)?all(?:[,= ]|$))\S*(?!.*--export[= ])"
_ENV_FILE = "write {env} >overlap.env; "
TABLE = {
    "srun": Launcher(_EXPORT, variable="SLURM_EXPORT_ENV"),
    "sbatch": Launcher(rf"--export-file|{_EXPORT}", variable="SBATCH_EXPORT"),
    "salloc": Launcher(through=True),
    # Hydra passes all on, unless it is told not to. Open MPI's agents on other hosts get what a list names.
    "mpirun": Launcher(r"--?g?env(?:none|list)\b|(?:-H|--?host|--?(?:default-)?hostfile|--?machinefile|--?app)\b"),
    "env": Launcher(
        r"(?:^| )(?:-i|-|--ignore-environment)(?= |$)|(?:-u ?|--unset[= ])(?:LD_PRELOAD|OVERLAP_\w+)",
        elsewhere=False,
        through=True,
    ),
    "sudo": Launcher("^", unless="--preserve-env=", elsewhere=False),
    "su": Launcher(r"(?:^| )(?:-|-l|--login)(?= |$)", elsewhere=False),
    "ssh": Launcher("^"),
    # Ranks of one host are its children; those of a list of hosts are started by pdsh.
    "deepspeed": Launcher(
        r"--force_multi|(?:--hostfile[= ]|-H )(?P<hosts>\S+)",
        unless=r"(?:^| )(?:-i|-e|--include|--exclude|--no_ssh|--num_nodes[= ]1)(?=[= ]|$)",
        passed_by="DS_ENV_FILE",
        instead=f"{_ENV_FILE}export DS_ENV_FILE=$PWD/overlap.env",
    ),
    "ray": Launcher("^job submit", unless="--runtime-env"),
    "docker": Launcher(
        "^(?:run|create|exec)",
        unless="LD_PRELOAD|env-file",
        instead=f"{_ENV_FILE}give {{verb}} {{mount}}--env-file overlap.env",
        elsewhere=False,
    ),
    # They pass the environment on, but the library's folder may not be there (_is_bound).
    "apptainer": Launcher(
        "^(?:exec|run|shell)",
        instead=f"{_ENV_FILE}give {{verb}} --bind {{folder}} --env-file overlap.env",
        elsewhere=False,
    ),
    "through": Launcher(elsewhere=False, through=True),
}


def look(asked: LauncherCall) -> Route:
    launcher = TABLE.get(LAUNCHER_KINDS.get(os.path.basename(asked.command[0]), "")) if asked.command else None
    if launcher is None:
        return Route()
    route = _look(asked, launcher)
    return route if asked.ours else Route(elsewhere=route.elsewhere)


def ours(base: Mapping[str, str], result: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that must arrive in the program: those added to `base`, and an outer overlap-run's."""
    found = {name: value for name, value in result.items() if base.get(name) != value or name in _OURS}
    if _library(result.get("LD_PRELOAD", "")):
        found["LD_PRELOAD"] = result["LD_PRELOAD"]
    found.pop(_OWN, None)
    return found


def _look(asked: LauncherCall, launcher: Launcher) -> Route:
    parts = _parts(asked)
    if launcher is TABLE["mpirun"] and not _names_list(parts) and not _configured(asked):
        merged = _merged(asked)
        if merged is not None and not any(re.search(r"--?g?env(?:none|list)\b", part) for part in parts):
            return Route({_LIST: merged}, elsewhere=True)
    start = _program(asked.command, asked.base)
    starts = start < len(asked.command) or not launcher.through
    lost = next((where for part in parts for where in [_loses(part, asked, launcher)] if where is not None), None)
    if lost is not None and starts:
        return Route(doubt=_doubt(lost, asked, launcher), elsewhere=launcher.elsewhere)
    if not launcher.through:
        return Route(elsewhere=launcher.elsewhere)
    given = dict(word.split("=", 1) for word in asked.command[1:start] if "=" in word and not word.startswith("-"))
    behind = look(asked._replace(command=asked.command[start:], base={**asked.base, **given}))
    return behind._replace(elsewhere=behind.elsewhere or launcher.elsewhere)


def _loses(words: str, asked: LauncherCall, launcher: Launcher) -> str | None:
    """Return the words with which the environment is lost; None: it is not."""
    if re.search(launcher.unless, " ".join(asked.command[1:])) or launcher.passed_by in asked.base:
        return None
    for name, value in re.findall(r"\b(\w+)=([^\s,;]*)", words):
        if launcher.loses is not None and _differs(name, value, asked):
            return f"{name}={value}"
    words = f"{_exported(asked, launcher, words)} {words}".strip()
    found = None if launcher.loses is None else re.search(launcher.loses, words, re.IGNORECASE)
    if found is None or all(re.search(rf"\b{name}\b", words) for name in asked.ours):
        return None
    if launcher is TABLE["apptainer"] and _is_bound(asked):
        return None
    hosts = found.groupdict().get("hosts")
    alone = (
        hosts and "--force_multi" not in words and len(re.findall(rb"^[ \t]*[^#\s]", _head(hosts), re.MULTILINE)) < 2
    )
    return None if alone else found[0].strip()


def _doubt(where: str, asked: LauncherCall, launcher: Launcher) -> str:
    name, (verb, *_) = os.path.basename(asked.command[0]), (*asked.command[1:2], "")
    folder = os.path.dirname(_library(asked.ours.get("LD_PRELOAD", "")))
    instead = launcher.instead.format(
        again=shlex.join(asked.again),
        env=_printed(asked),
        verb=verb,
        folder=folder,
        mount="" if verb == "exec" else f"-v {folder}:{folder}:ro ",
    )
    said = "" if (launcher.loses or "").startswith("^") else f" with {where}"
    return f"{name}{said} starts programs without this environment: {instead}"


def _differs(name: str, value: str, asked: LauncherCall) -> bool:
    """Whether a variable of ours is given another value on the way. Of other variables that is the user's word."""
    return (name in _OURS or name == "LD_PRELOAD") and asked.ours.get(name, value) != value


def _exported(asked: LauncherCall, launcher: Launcher, words: str) -> str:
    """Return --export as the variable has it, or the #SBATCH lines of a script, which end at its first command."""
    if launcher.variable in asked.base:
        return "" if "--export" in words else f"--export={asked.base[launcher.variable]}"
    if launcher is not TABLE["sbatch"] or "--wrap" in words:
        return ""
    script = next((word for word in asked.command[1:] if os.path.isfile(word)), "")
    head = re.match(r"(?:#.*\n|[ \t]*\n)*", _head(script).decode(errors="replace") + "\n")
    assert head is not None
    return " ".join(re.findall(r"^#SBATCH\s(?:.*\s)?(--export[=\s]\s*\S+)", head[0], re.MULTILINE))


def _head(path: str) -> bytes:
    """Return the first MiB of a file; nothing of a pipe, as `<(...)` of a shell: the launcher itself must read it."""
    try:
        if not os.path.isfile(path):
            return b""
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except (OSError, ValueError):
        return b""


# Open MPI's list

_LIST = "OMPI_MCA_mca_base_env_list"


def _names_list(parts: Sequence[str]) -> bool:
    """Whether the user names variables himself, or a file that may."""
    named = re.compile(r"(?:^| )(?:-x|--?am|--?tune|--?app|--?g?mca mca_(?:base_)?(?:env_list|param_files))(?= |$)")
    return any(named.search(part) for part in parts)


def _configured(asked: LauncherCall) -> bool:
    """Whether a file of Open MPI gives the list: the variable would take its place."""
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(asked.path)))
    files = [
        os.path.join(asked.base.get("HOME", ""), ".openmpi", "mca-params.conf"),
        "/etc/openmpi/openmpi-mca-params.conf",
        os.path.join(prefix, "etc", "openmpi-mca-params.conf"),
    ]
    for name in ("OMPI_MCA_mca_param_files", "OMPI_MCA_mca_base_param_files"):
        files += asked.base.get(name, "").replace(":", ",").split(",")
    return any(re.search(rb"^\s*[^#\s]*mca_base_env_list", _head(file), re.MULTILINE) for file in files if file)


def _merged(asked: LauncherCall) -> str | None:
    """Merge the user's own list with ours, each variable with its value.

    mpirun 4.1 misreads, or dies of, a bare name whose value ends with =, as base64 does. None where a value cannot
    stand in the list."""
    delimiter = asked.base.get(f"{_LIST}_delimiter") or ";"
    theirs = [entry for entry in asked.base.get(_LIST, "").split(delimiter) if entry]
    kept = [entry for entry in theirs if entry.partition("=")[0] not in asked.ours]
    if any(delimiter in value for value in asked.ours.values()):
        return None
    return delimiter.join([*kept, *(f"{name}={value}" for name, value in sorted(asked.ours.items()))])


# Words


def _is_bound(asked: LauncherCall) -> bool:
    """Whether Apptainer binds the library's folder: it, one above it, home, the working directory or /tmp."""
    folder = os.path.dirname(_library(asked.ours.get("LD_PRELOAD", "")))
    bound = [value for key, value in asked.base.items() if key.endswith(("_BIND", "_BINDPATH"))]
    entries = [entry for word in [*asked.command, *bound] for entry in re.split("[,=:]", word)]
    entries += [asked.base.get("HOME", ""), asked.base.get("PWD", ""), "/tmp"]
    whole = f"{os.path.realpath(folder)}/"
    return any(os.path.isabs(entry) and whole.startswith(f"{os.path.realpath(entry)}/") for entry in entries)


# Options that are followed by a program of the launcher's own; so may the value of Open MPI's --mca NAME VALUE be.
_AGENTS = ("launch-agent", "launcher-exec", "rsh", "prolog", "epilog", "task-prolog", "task-epilog")


def _program(command: Sequence[str], base: Mapping[str, str]) -> int:
    """Return where the first word stands that is a program, behind the launcher's own; the end if none is."""
    from shutil import which  # which most starts need not import

    for index, word in enumerate(command[1:], 1):
        if command[index - 1].lstrip("-") in _AGENTS or command[max(index - 2, 0)].lstrip("-") in ("mca", "gmca"):
            continue
        if word.endswith(".py") or (
            not word.startswith("-") and "=" not in word and which(word, path=base.get("PATH"))
        ):
            return index
    return len(command)


def _parts(asked: LauncherCall) -> list[str]:
    """Return the launcher's own words for each of several programs, which : parts."""
    parts: list[list[str]] = [[asked.command[0]]]
    for word in asked.command[1:]:
        if word == ":":
            parts.append([asked.command[0]])
        else:
            parts[-1].append(word)
    return [" ".join(part[1 : _program(part, asked.base)]) for part in parts]


def _library(value: str) -> str:
    """Ours in a value of LD_PRELOAD."""
    return next((entry for entry in preloaded(value) if os.path.basename(entry) == NAME), "")


def _printed(asked: LauncherCall) -> str:
    """Return `overlap env --format docker` with those of the options that it knows."""
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
    return shlex.join([overlap, "env", *kept, "--format", "docker"])
