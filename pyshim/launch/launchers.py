"""Programs that start other programs elsewhere or anew: does the environment arrive there, and if not, what helps?

Pure functions from words and variables to an answer, one for each kind of launcher; `KINDS` at the end is the table.
Where something can be set so that it arrives, that is set. Else one line says what to write instead. Where it cannot be
told, nothing is said: see words.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pyshim import preload
from pyshim.launch import words

# What an overlap-run around this one may have set. OVERLAP_LAUNCHER_PID means nothing in another process.
_OURS = ("OVERLAP_TABLE", "OVERLAP_REPORT", "OVERLAP_RUN_ID", "OVERLAP_QUIET")
_OWN = "OVERLAP_LAUNCHER_PID"


class Asked(NamedTuple):
    command: Sequence[str]  # the launcher and its words
    base: Mapping[str, str]  # the environment around overlap-run
    ours: Mapping[str, str]  # what must arrive
    again: Sequence[str] = ("overlap-run",)  # overlap-run as it was called: its path and its options
    path: str = ""  # the launcher's file
    before: Sequence[str] = ()  # words before the launcher's name: nohup, env NAME=VALUE


class Way(NamedTuple):
    changes: Mapping[str, str] = {}  # what is to be set, too, so that it arrives
    doubt: str | None = None  # it does not arrive: what to write instead
    elsewhere: bool = False  # the program may start on other machines than this
    unsure: str | None = None  # it may arrive at some ranks only: what to write instead


def look(asked: Asked) -> Way:
    kind = KINDS.get(os.path.basename(asked.command[0])) if asked.command else None
    way = kind(asked) if kind else Way()
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
    parts = [words.read(part, words.SRUN) for part in _parts(asked.command)]
    read = [part for part in parts if part is not None]
    generic = len(parts) > 1 or any(part.values("multi-prog") for part in read)
    instead = _inside(asked, len(asked.command) if generic or not read else read[0].rest)
    for part in read:
        way = _exported(asked, part, "SLURM_EXPORT_ENV", instead)
        if way.doubt:
            return way
    return Way(elsewhere=True, unsure=instead if len(read) < len(parts) and generic else None)


def _sbatch(asked: Asked) -> Way:
    read = words.read(asked.command, words.SBATCH)
    if read is None:
        return Way(elsewhere=True)
    script = asked.command[read.rest] if read.rest < len(asked.command) else ""
    written = None if read.values("wrap") else _directive(script)
    instead = f"write {_joined(asked.again)} in front of the programs in {script or 'the job'}, or sbatch --export=ALL"
    if read.values("export-file"):
        return Way(doubt=_without(asked, "with --export-file", instead), elsewhere=True)
    return _exported(asked, read, "SBATCH_EXPORT", instead, written)


def _exported(asked: Asked, read: words.Words, variable: str, instead: str, written: str | None = None) -> Way:
    """written: in the script. The command line stands over the variable, and that over the script."""
    options = read.values("export")
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
    return Way(doubt=_without(asked, where, instead), elsewhere=True)


def _directive(script: str) -> str | None:
    """--export in the #SBATCH lines of a script, which end at its first command."""
    found = None
    for line in _text(script).split("\n"):
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith("#SBATCH"):
            read = words.read(line.split(), words.SBATCH)
            found = read.values("export")[-1] if read and read.values("export") else found
    return found


def _text(script: str) -> str:
    """Return the head of a script; without a name that on stdin, if it can be read without being used up."""
    try:
        data = _head(script) if script else os.pread(0, 1 << 16, os.lseek(0, 0, os.SEEK_CUR))
    except (OSError, ValueError):
        return ""
    return data.decode(errors="replace")


def _head(path: str) -> bytes:
    """Return the first MiB of a file; nothing of a pipe, as `<(...)` of a shell: the launcher itself must read it."""
    try:
        if not os.path.isfile(path):
            return b""
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except (OSError, ValueError):
        return b""


def _salloc(asked: Asked) -> Way:
    """Look at salloc, which starts its program here, with this environment; the program may be an srun."""
    read = words.read(asked.command, words.SALLOC)
    inner = _through(asked, read.rest) if read else Way()
    return inner._replace(elsewhere=True)


# MPI

_LIST = "OMPI_MCA_mca_base_env_list"
_HOSTS = ("H", "host", "hostfile", "machinefile", "default-hostfile", "rf", "rankfile", "app")


def _mpirun(asked: Asked) -> Way:
    """Open MPI's agents on other hosts get what the list names; what is not for it, Hydra's among them, ignores it."""
    parts = [words.read(part, words.MPIRUN, single_dash=True) for part in _parts(asked.command)]
    read = [part for part in parts if part is not None]
    if len(read) < len(parts):
        return Way(elsewhere=True, unsure=_inside(asked, len(asked.command)))
    instead = _inside(asked, read[0].rest if len(read) == 1 else len(asked.command))
    for part in read:
        # Hydra passes all on, unless it is told not to.
        limited = [*part.values("genvlist", "envlist"), *([""] * len(part.values("genvnone", "envnone")))]
        if any(not _given(value.split(",")).keys() >= asked.ours.keys() for value in limited):
            return Way(doubt=_without(asked, "with these options", instead), elsewhere=True)
    exported = _given([value for part in read for value in part.values("x")])
    if not exported and not _lists(read, asked):
        merged = _merged(asked)
        if merged is not None:
            return Way({_LIST: merged}, elsewhere=True)
    arrives = exported.keys() >= asked.ours.keys() and not _differs(exported, asked)
    named = any(part.values(*_HOSTS) for part in read) or "OMPI_MCA_orte_default_hostfile" in asked.base
    if arrives or not (named or _differs(exported, asked)):
        return Way(elsewhere=True, unsure=None if arrives else instead)
    return Way(doubt=_without(asked, "on other hosts", instead), elsewhere=True)


def _lists(read: Sequence[words.Words], asked: Asked) -> bool:
    """Whether the list is given in another place: beside -x it is an error, and the variable takes a file's place."""
    if any(part.values("am", "tune", "app") for part in read):
        return True
    options = [value for part in read for value in part.values("mca", "gmca")]
    if any(value.startswith(("mca_base_env_list", "mca_base_param_files", "mca_param_files")) for value in options):
        return True
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(asked.path)))
    files = [
        os.path.join(asked.base.get("HOME", ""), ".openmpi", "mca-params.conf"),
        "/etc/openmpi/openmpi-mca-params.conf",
        os.path.join(prefix, "etc", "openmpi-mca-params.conf"),
    ]
    for name in ("OMPI_MCA_mca_param_files", "OMPI_MCA_mca_base_param_files"):
        files += asked.base.get(name, "").replace(":", ",").split(",")
    return any(_mentions(file, b"mca_base_env_list") for file in files if file)


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
    read = words.read(asked.command, words.ENV)
    if read is None:
        return Way()
    start = _behind_assignments(asked.command, read.rest)
    given = _given(asked.command[read.rest : start])
    new = read.values("i", "ignore-environment") or asked.command[read.rest : read.rest + 1] == ["-"]
    unset = {*read.values("u", "unset")} & asked.ours.keys()
    if start < len(asked.command) and (new or unset or _differs(given, asked)):
        return Way(doubt=_without(asked, "with these words", _inside(asked, start)))
    base = {**asked.base, **{name: value for name, value in given.items() if value is not None}}
    return _through(asked._replace(base=base), start)


def _sudo(asked: Asked) -> Way:
    known = words.DOAS if os.path.basename(asked.command[0]) == "doas" else words.SUDO
    read = words.read(asked.command, known)
    if read is None or any(read.values("preserve-env")):  # by name: that the names are these is the user's word
        return Way()
    start = _behind_assignments(asked.command, read.rest)
    return Way(doubt=_without(asked, "", _inside(asked, start)))


def _su(asked: Asked) -> Way:
    read = words.read(asked.command, words.SU)
    if read is None or not (read.values("l", "login") or "-" in asked.command[read.rest : read.rest + 1]):
        return Way()
    instead = f"write {_joined(asked.again)} in front of the program that it starts"
    return Way(doubt=_without(asked, "for a login", instead))


def _behind_assignments(command: Sequence[str], index: int) -> int:
    while index < len(command) and ("=" in command[index] or command[index] == "-"):
        index += 1
    return index


# Programs whose ranks start elsewhere, by means of their own


def _ssh(asked: Asked) -> Way:
    instead = f"write {_joined([asked.command[0], 'HOST', *asked.again])} PROGRAM"
    return Way(doubt=_without(asked, "", instead), elsewhere=True)


def _deepspeed(asked: Asked) -> Way:
    """Ranks on one host are its children; those of a list of hosts are started by pdsh."""
    read = words.read(asked.command, words.DEEPSPEED)
    if read is None or "DS_ENV_FILE" in asked.base or read.values("no_ssh", "i", "include", "e", "exclude"):
        return Way()
    file = ("/job/hostfile", *read.values("H", "hostfile"))[-1]
    if (_hosts(file) < 2 or read.values("num_nodes")[-1:] == ["1"]) and not read.values("force_multi"):
        return Way()
    command = _joined([*asked.before, *asked.command])
    instead = f"write {_printed(asked, 'docker')} >overlap.env; export DS_ENV_FILE=$PWD/overlap.env; {command}"
    return Way(doubt=_without(asked, f"on the hosts of {file}", instead), elsewhere=True)


def _hosts(file: str) -> int:
    """Lines of DeepSpeed's list of hosts."""
    return sum(1 for line in _head(file).split(b"\n") if line.strip() and line.lstrip()[:1] != b"#")


def _ray(asked: Asked) -> Way:
    verbs = [word for word in asked.command[1:3] if not word.startswith("-")]
    if verbs != ["job", "submit"] or any(word.startswith("--runtime-env") for word in asked.command):
        return Way()
    variables = f'"{{\\"env_vars\\": $({_printed(asked, "json")})}}"'
    instead = f"write {_joined(asked.command[:3])} --runtime-env-json {variables} {_joined(asked.command[3:])}"
    return Way(doubt=_without(asked, "", instead), elsewhere=True)


def _container(asked: Asked) -> Way:
    """Doubt a container: it lacks the environment or the library's folder, unless the user passes them."""
    name, verb = os.path.basename(asked.command[0]), (*asked.command[1:2], "")[0]
    docker = name not in ("apptainer", "singularity")
    folder = os.path.dirname(_library(asked.ours.get("LD_PRELOAD", "")))
    bound = [value for key, value in asked.base.items() if key.endswith(("APPTAINER_BIND", "SINGULARITY_BIND"))]
    bound += [value for key, value in asked.base.items() if key.endswith("_BINDPATH")]
    thought_of = ("LD_PRELOAD", "env-file") if docker else (folder,)
    if verb not in (("run", "create", "exec") if docker else ("exec", "run", "shell")):
        return Way()
    if not folder or any(part in word for word in [*asked.command, *bound] for part in thought_of):
        return Way()
    file = "overlap.env"
    bind = f"--bind {folder}" if not docker else "" if verb == "exec" else f"-v {folder}:{folder}:ro "
    instead = f"write {_printed(asked, 'docker')} >{file}; {name} {verb} {bind.strip()}".rstrip()
    instead = f"{instead} --env-file {file} {_joined(asked.command[2:])}"
    return Way(doubt=f"{name} starts programs without the library: {instead}")


# What the above have in common


def _through(asked: Asked, start: int) -> Way:
    """Of a program that becomes another one."""
    before = [*asked.before, *asked.command[:start]]
    return look(asked._replace(command=asked.command[start:], before=before))


def _prefix(known: str, more: int = 0) -> Callable[[Asked], Way]:
    """more: words of its own behind its options."""

    def kind(asked: Asked) -> Way:
        read = words.read(asked.command, known)
        return _through(asked, read.rest + more) if read else Way()

    return kind


def _parts(command: Sequence[str]) -> list[Sequence[str]]:
    """Split a command of several programs, with : between them."""
    parts: list[list[str]] = [[]]
    for word in command:
        if word == ":":
            parts.append([command[0]])
        else:
            parts[-1].append(word)
    return list(parts)


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
    return next((entry for entry in preload.split(value) if os.path.basename(entry) == preload.NAME), "")


def _without(asked: Asked, where: str, instead: str) -> str:
    name = os.path.basename(asked.command[0])
    return f"{name}{where and ' '}{where} starts programs without this environment: {instead}"


def _inside(asked: Asked, program: int) -> str:
    """program: where it stands in the command."""
    if program >= len(asked.command):
        return f"write {_joined(asked.again)} in front of the program that it starts"
    words_ = [*asked.before, *asked.command[:program], *asked.again, *asked.command[program:]]
    return f"write {_joined(words_)}"


def _printed(asked: Asked, form: str) -> str:
    """`overlap env` with those of the options that it knows."""
    kept: list[str] = []
    options = list(asked.again[1:])
    while options:
        option = options.pop(0)
        name = option.partition("=")[0]
        if name in ("--policy", "--report", "--simulate"):
            value = [] if "=" in option else options[:1]
            del options[: len(value)]
            kept += [option, *value] if name != "--simulate" else []
        elif name == "--all-ranks":
            kept.append(option)
    folder, _, name = asked.again[0].rpartition("/")
    overlap = f"{folder}/overlap" if folder and name == "overlap-run" else "overlap"
    return _joined([overlap, "env", *kept, "--format", form])


def _joined(command: Sequence[str]) -> str:
    import shlex

    return " ".join(map(shlex.quote, command))


def _mentions(path: str, text: bytes) -> bool:
    return any(text in line and not line.lstrip().startswith(b"#") for line in _head(path).split(b"\n"))


KINDS: dict[str, Callable[[Asked], Way]] = {
    "srun": _srun,
    "sbatch": _sbatch,
    "salloc": _salloc,
    **dict.fromkeys(("mpirun", "mpiexec", "orterun", "prterun"), _mpirun),
    **dict.fromkeys(("mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich", "mpiexec.mpich", "mpiexec.hydra"), _mpirun),
    "env": _env,
    **dict.fromkeys(("sudo", "doas"), _sudo),
    **dict.fromkeys(("su", "runuser"), _su),
    **dict.fromkeys(("ssh", "rsh"), _ssh),
    "deepspeed": _deepspeed,
    "ray": _ray,
    **dict.fromkeys(("docker", "podman", "nerdctl", "apptainer", "singularity"), _container),
    "nohup": _prefix(""),
    "nice": _prefix(words.NICE),
    "timeout": _prefix(words.TIMEOUT, 1),
    "stdbuf": _prefix(words.STDBUF),
    "setsid": _prefix(words.SETSID),
}
