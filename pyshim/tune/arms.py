"""The arms of a search: a policy, or none, and variables; and the environment in which a program runs under each."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyshim.errors import USAGE, OverlapError
from pyshim.policy import files, values
from pyshim.policy.finding import quote
from pyshim.start import chosen, driver, folder, launchers, plan, program
from pyshim.start.environment import DEFAULT_POLICY, NAME, environment, line_ends, preloaded
from pyshim.tune.sets import SETS

Variables = tuple[tuple[str, str], ...]
POLICY_PATH = "OVERLAP_POLICY_PATH"
# They put a job into a queue and may wait there for hours; each arm would do so again.
_QUEUES = ("sbatch", "salloc", "qsub", "bsub")
_MPI = "OMPI_MCA_"  # a policy sets none, but `overlap tune` may


class Arm(NamedTuple):
    name: str
    policy: str | None = None  # None: the program runs without the library
    variables: Variables = ()


BARE = Arm("bare")


class ArmOptions(NamedTuple):
    """What is compared, as the command line says it."""

    arms: tuple[str, ...] = ()  # NAME=POLICY
    tries: tuple[str, ...] = ()  # VAR=V1,V2


class Platform(NamedTuple):
    gpu: str  # as the driver says it; empty where none was found
    architecture: str  # of a simulated GPU
    driver: str
    simulated: bool
    vendors: frozenset[str]

    @property
    def name(self) -> str:
        """The GPU and its driver, in words; of a job that is started from a host without a GPU, that."""
        gpu = f"{'simulated ' * self.simulated}{self.gpu or 'a host without a GPU'}"
        return f"{gpu}, driver {self.driver}" if self.driver else gpu


def machine(simulate: str | None, base: Mapping[str, str]) -> Platform:
    """Return what this machine has, by files alone: no driver is opened. Raises OverlapError for an unknown GPU."""
    if simulate is not None:
        gpu, _ = plan.simulated(simulate, base)
        return Platform(gpu.name, gpu.architecture, "", True, frozenset({gpu.vendor}))
    folder = "/proc/driver/nvidia/gpus"
    files = [driver.text(os.path.join(folder, name, "information")) for name in driver.names(folder)]
    models = [found[1].strip() for found in (re.search(r"Model:\s*(.+)", text) for text in files) if found]
    return Platform(next(iter(models), ""), "", driver.version() or "", False, program.vendors(base))


class Stage(NamedTuple):
    """Arms that are compared with each other. variables: tried on top of the best arm so far; or arms as they are."""

    arms: tuple[Arm, ...] = ()
    tried: tuple[Variables, ...] = ()

    def on(self, best: Arm) -> list[Arm]:
        return [*self.arms, *(_with(best, variables) for variables in self.tried)]


def _with(arm: Arm, variables: Variables) -> Arm:
    kept = {**dict(arm.variables), **dict(variables)}
    named = " ".join(f"{name}={value}" for name, value in kept.items())
    front = "" if arm.policy is None else arm.name.partition(" ")[0]
    return Arm(" ".join(filter(None, (front, named))), arm.policy, tuple(kept.items()))


def stages(
    options: ArmOptions, here: Platform, base: Mapping[str, str], why: str | None = None
) -> tuple[list[Stage], list[str]]:
    """Return the stages of a search, and what is to be said about them. Raises OverlapError for a wrong word.

    why: no policy can do anything for this program."""
    first = [] if why else _policies(options.arms, base)
    said: list[str] = []
    tried = []
    for word in options.tries:
        name, given = _try(word)
        own = base.get(name)
        if own is not None:
            said.append(f"{name} is set here: bare, and arms that do not try it, keep {own}")
        tried.append([((name, value),) for value in given if value != own])
    tried = [one for one in tried if one]
    found = [Stage(tuple(first)), *(Stage(tried=tuple(one)) for one in tried)]
    found = [stage for stage in found if stage.arms or stage.tried]
    if not found:
        sentence = f"there is nothing to compare{f': {why}' if why else ''}"
        gpu = "" if here.vendors else "a machine with a GPU, or --simulate GPU for a program that runs on it; "
        raise OverlapError(sentence, f"{gpu}--try VAR=V1,V2 or --set NAME", USAGE)
    return found, said


def _policies(words: Sequence[str], base: Mapping[str, str]) -> list[Arm]:
    arms = [Arm("default", DEFAULT_POLICY)]
    for word in words:
        name, equals, policy = word.partition("=")
        if not equals or not policy or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,30}", name):
            raise OverlapError(f"--arm {word}: not NAME=POLICY", "--arm mine=./my.yaml", USAGE)
        if "," in policy or policy == DEFAULT_POLICY:
            raise OverlapError(f"--arm {word}: an arm has one policy", "--arm mine=./my.yaml", USAGE)
        arms.append(Arm(name, os.path.abspath(policy) if _is_file(policy) else policy))
    for arm in arms:
        if [other.name for other in (BARE, *arms)].count(arm.name) > 1:
            raise OverlapError(f"--arm {arm.name}=...: there is an arm of that name", "choose another name", USAGE)
        chosen.load(arm.policy or DEFAULT_POLICY, base)
    return arms


def _is_file(policy: str) -> bool:
    return "/" in policy or (policy.endswith(".yaml") and os.path.isfile(policy))


def _try(word: str) -> tuple[str, list[str]]:
    name, _, listed = word.partition("=")
    given = listed.split(",")
    if not all(given):
        raise OverlapError(f"--try {word}: not VAR=V1,V2", "--try NCCL_MIN_CTAS=8,16", USAGE)
    try:
        if not name.startswith(_MPI):
            values.variable_name(name)
        for value in given:
            values.variable_value(value)
    except values.Bad as bad:
        if bad.code != "must-agree":  # all ranks get it: the whole job is started under each arm
            sentence = f"{quote(name)} is not tried" if bad.sentence.startswith("a policy") else bad.sentence
            raise OverlapError(f"--try {word}: {sentence}", bad.hint or None, USAGE) from bad
    return name, list(dict.fromkeys(given))


def of_set(name: str) -> list[str]:
    """Return the words of --try that --set NAME stands for."""
    found: dict[str, list[str]] = {}
    for setting in SETS[name]:
        found.setdefault(setting.variable, []).extend(setting.values)
    return [f"{variable}={','.join(given)}" for variable, given in found.items()]


# ---- the program under an arm ----


class TunedProgram(NamedTuple):
    command: tuple[str, ...]
    base: Mapping[str, str]  # the user's environment, without an overlap-run around us
    simulate: str | None = None

    def path(self) -> str:
        """Return the program's file. Raises OverlapError, also for a program that would queue jobs."""
        base = environment_of(BARE, self)
        name = os.path.basename(self.command[0])
        if "overlap-run" in map(os.path.basename, self.command):
            raise OverlapError("the command holds overlap-run, so no run would be bare", "leave overlap-run out", USAGE)
        queues = name == "srun" and not {"SLURM_JOB_ID", "SLURM_JOBID"} & base.keys()
        if name in _QUEUES or queues:
            sentence = (
                f"{name} {'outside of a job ' * queues}queues a job for every run, and a run would wait for its turn"
            )
            raise OverlapError(
                sentence, "run `overlap tune` inside of one job: salloc -N2 overlap tune -- srun ./app", USAGE
            )
        try:
            found = program.find(self.command[0], base, "overlap tune")
        except OverlapError as error:
            error.status = USAGE
            raise
        gone = program.missing(found, base)
        if gone:
            sentence = f"{self.command[0]}: {gone!r}, which its first line names, was not found"
            raise OverlapError(sentence, line_ends(found), USAGE)
        return found


def environment_of(arm: Arm, started: TunedProgram, report: str | None = None) -> dict[str, str]:
    """Return the environment in which the program is started. Raises OverlapError if it would not reach all ranks.

    report: a folder for the pages of its processes, which is made."""
    base = dict(started.base)
    own = {**base, **dict(arm.variables)}
    if arm.policy is None:
        simulated = plan.simulated(started.simulate, own)[1] if started.simulate else own
        result = {**simulated}
    else:
        made = plan.make(plan.Request(arm.policy, started.simulate, report, quiet=True), own)
        if made.doubts:
            raise OverlapError(f"{arm.name}: {made.doubts[0]}", "overlap doctor says what is in the way")
        if made.settings.report:
            folder.make(made.settings.report)
        result = environment(own, made.settings)
    result.pop(POLICY_PATH, None)
    base.pop(POLICY_PATH, None)
    if os.path.basename(started.command[0]) in program.LAUNCHER_KINDS and result != base:
        path = program.find(started.command[0], base)
        way = launchers.look(launchers.LauncherCall(started.command, base, launchers.ours(base, result), path=path))
        if way.doubt:
            what = way.doubt.partition(" starts programs without")[0]
            hint = "leave out what drops the environment, or run `overlap tune` where the program itself starts"
            raise OverlapError(f"{what} starts programs without the environment, so all arms would be alike", hint)
        result.update(way.changes)
    return result


def own_environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return the user's environment: nothing of an overlap-run around us, but where policies are looked for."""
    if base.get("OVERLAP_RUN") == plan.OFF:
        raise OverlapError("OVERLAP_RUN=off turns everything off", "unset OVERLAP_RUN", USAGE)
    kept = {name: value for name, value in base.items() if name == POLICY_PATH or not name.startswith("OVERLAP_")}
    others = [entry for entry in preloaded(kept.pop("LD_PRELOAD", "")) if os.path.basename(entry) != NAME]
    return {**kept, **({"LD_PRELOAD": ":".join(others)} if others else {})}


def useless(started: TunedProgram, path: str, here: Platform) -> str | None:
    """Return why no policy can do anything for this program; None where one may."""
    found = program.obstacle(path, started.base)
    if found:
        return found.sentence
    if not here.vendors and os.path.basename(path) not in program.LAUNCHER_KINDS:
        return "no GPU driver on this machine"
    return None


def extends(arm: Arm, here: Platform, base: Mapping[str, str]) -> tuple[str, str]:
    """Return what tuned.yaml extends, and its `gpu`. mi250x and mi300x differ in nothing else."""
    if arm.policy == DEFAULT_POLICY and here.vendors == {"amd"}:
        return chosen.DEFAULTS[0], "AMD Instinct*"
    name = "default" if arm.policy == DEFAULT_POLICY else arm.policy or ""
    return (str(files.find(name, base).resolve()) if "/" in name else name), ""


def split(arm: Arm, base: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables that a policy may set here, and those that must be set where the job is started.

    The latter: on which all ranks must agree, those of Open MPI, and what the user has set."""
    from pyshim.start.chosen import without_users

    inside: dict[str, str] = {}
    outside: dict[str, str] = {}
    for name, value in arm.variables:
        try:
            values.variable_name(name)
            kept, _ = without_users({name: value}, base, plan.ETC)
        except values.Bad:
            kept = {}
        (inside if kept else outside)[name] = value
    return inside, outside
