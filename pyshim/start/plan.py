"""From what a user asks for to settings of the environment and the lines that must be said about them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.start.environment import (
    BUILT,
    DEFAULT_POLICY,
    GPU_MEANT,
    NAME,
    Chosen,
    PolicySettings,
    Settings,
    can_preload,
    checksum,
    environment,
    shipped,
    unquote,
    variables,
    without_table,
)
from pyshim.start.program import vendors

if TYPE_CHECKING:
    from pyshim.start.driver import SimulatedGpu

LIBRARY = os.path.join(BUILT, NAME)
SIMULATED_DRIVER = os.path.join(BUILT, "simgpu", "libcuda.so.1")
SIMULATED_RUNTIME = os.path.join(BUILT, "simgpu", "hip7", "libamdhip64.so.7")
SIMULATED_PROGRAMS = os.path.join(BUILT, "demo")
ETC = "/etc/nccl.conf"
CHOICE, OFF = "OVERLAP_POLICY", "off"  # where there is no --policy


class Request(NamedTuple):
    """The options; None: not given."""

    policy: str | None = None
    simulate: str | None = None
    report: str | None = None
    quiet: bool = False
    elsewhere: bool = False  # the program starts on another machine than this
    library: str | None = None  # where it is there


class Plan:
    """How a program is started.

    doubts: run as asked after saying so, or 125 under --strict. remarks: said, never refused. left: variables that are
    not set, and why, said to those who ask."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.doubts: list[str] = []
        self.remarks: list[str] = []
        self.left: list[str] = []
        self.own = False  # asked for in so many words, also inside of an overlap-run or a prolog
        self.policies: tuple[Mapping[str, str | None], ...] = ()
        self.simulate: str | None = None
        self.driver: bool | None = None  # whether there is a driver of a GPU; None: not looked for
        self.obstacle: tuple[str, str] | None = None  # in the program's file, and what to do
        self.around: str | None = None  # the folder of the run around this one, to which its own report belongs

    def readable(self, value: str) -> str:
        """Return the value of a variable as a person reads it."""
        return without_table(value, self.settings.table, [policy["name"] for policy in self.policies])


def switched_off(base: Mapping[str, str], policy: str | None = None) -> bool:
    """Return whether nothing is to be done. policy: of --policy, which overrules OVERLAP_POLICY."""
    return base.get("OVERLAP_RUN") == OFF or (policy is None and wanted(None, base) == OFF)


def wanted(policy: str | None, base: Mapping[str, str]) -> str | None:
    """Return the choice of --policy, of an outer overlap-run, or of OVERLAP_POLICY; None: the outer one's, or none."""
    if policy is not None or base.get("OVERLAP_TABLE"):
        return policy
    return base.get(CHOICE) or None


def make(request: Request, base: Mapping[str, str], library: str = LIBRARY) -> Plan:
    """Decide all but the program; nothing is made. Raises OverlapError with 125."""
    plan = Plan()
    if switched_off(base, request.policy):
        if request.simulate is not None:
            switch = "OVERLAP_RUN" if base.get("OVERLAP_RUN") == OFF else CHOICE
            plan.remarks.append(f"{switch}=off: --simulate does nothing; unset it")
        return plan
    value = base.get("OVERLAP_RUN")
    if value:
        plan.remarks.append(f"OVERLAP_RUN={value} is not known and does nothing: `off` turns everything off")
    gpu = _simulate(request, base, plan)
    _policies(request, base, gpu, plan)
    found = request.library or _library(library, plan)
    plan.settings = plan.settings._replace(library=found, quiet=request.quiet)
    if request.report is not None:
        _report(request.report, base, plan)
    return plan


def _report(directory: str, base: Mapping[str, str], plan: Plan) -> None:
    """Name the folder of the run that begins here, unless a run around this one has begun in the same report folder."""
    from pyshim.start import folder

    around = _around(base)
    if around is not None and os.path.dirname(around) == folder.absolute(directory):
        plan.around = around
    else:
        plan.settings = plan.settings._replace(report=folder.of_run(directory, base))


def _around(base: Mapping[str, str]) -> str | None:
    return unquote(base["OVERLAP_REPORT"]) if base.get("OVERLAP_TABLE") and base.get("OVERLAP_REPORT") else None


def _simulate(request: Request, base: Mapping[str, str], plan: Plan) -> SimulatedGpu | None:
    if request.simulate is None:
        return None
    from pyshim.start.driver import parse

    gpu = parse(request.simulate)
    if not os.path.exists(SIMULATED_DRIVER):
        raise OverlapError(
            "the simulated GPU is not installed", "install the package again: pip install .", LAUNCHER_FAILED
        )
    plan.simulate = gpu.value
    plan.settings = Settings(
        simulated_driver=os.path.dirname(SIMULATED_DRIVER),
        simulated_gpu=gpu.value,
        simulated_programs=SIMULATED_PROGRAMS,
    )
    number = f"{gpu.number} simulated " if gpu.number > 1 else "simulated "
    plan.remarks.append(f"{number}{gpu.name}")
    if gpu.vendor == "amd":
        plan.settings = plan.settings._replace(simulated_runtime=SIMULATED_RUNTIME)
    return gpu


def simulated(value: str, base: Mapping[str, str]) -> tuple[SimulatedGpu, dict[str, str]]:
    """Return the GPU of a --simulate value, and the environment for its driver. Raises OverlapError with 125."""
    plan = Plan()
    gpu = _simulate(Request(simulate=value), base, plan)
    assert gpu is not None
    return gpu, environment(base, plan.settings)


def _library(path: str, plan: Plan) -> str | None:
    if not os.path.exists(path):
        plan.doubts.append(f"the library {path} is missing: the program runs without it")
        return None
    if not os.access(path, os.R_OK):  # the loader would say so in every process
        plan.doubts.append(f"the library {path} cannot be read by this user: the program runs without it")
        return None
    if not can_preload(path):
        plan.doubts.append(f"LD_PRELOAD cannot hold the path {path}: the program runs without the library")
        return None
    return path


def _policies(request: Request, base: Mapping[str, str], gpu: SimulatedGpu | None, plan: Plan) -> None:
    policy = wanted(request.policy, base)
    if policy is None and base.get("OVERLAP_TABLE"):
        return  # inside another overlap-run: its word stands
    plan.own = request.policy is not None
    try:
        choice = choose(policy, base)
    except OverlapError as error:
        if request.policy is None and policy is not None:
            error.hint = "; ".join(filter(None, (f"{CHOICE} asks for it", error.hint)))
        raise
    plan.policies = choice.described
    plan.settings = plan.settings._replace(table=choice.table)
    plan.remarks += [f"policy {one['name']}: {one[GPU_MEANT]}" for one in choice.described if one.get(GPU_MEANT)]
    _variables(request, base, gpu, choice.asked, plan)
    if gpu is None:
        return
    from pyshim.start import chosen

    if not chosen.fits(choice.table, gpu):
        named = ", ".join(str(policy["name"]) for policy in choice.described)
        hint = f"--policy {shlex.quote(f'{policy},default')} falls back to the rule for every GPU"
        plan.doubts.append(f"no policy for this GPU ({gpu.name}) in {named}: observing; {hint}")
        # Said here, so the library need not say it again.
        plan.settings = plan.settings._replace(table=chosen.observing())


def choose(value: str | None, base: Mapping[str, str]) -> Chosen:
    """Return what the policies of --policy, or the default, compile to. Raises OverlapError with 125."""
    name = value or DEFAULT_POLICY
    kept = shipped(name, base)
    if kept is not None:
        return kept
    from pyshim.start.chosen import compiled

    return compiled(name, base)


def _variables(
    request: Request, base: Mapping[str, str], gpu: SimulatedGpu | None, asked: tuple[PolicySettings, ...], plan: Plan
) -> None:
    if any(item.environment for item in asked):
        here = None if gpu or request.elsewhere else vendors(base)
        everyone = asked
        asked = could_apply(asked, here, (gpu.name, gpu.architecture) if gpu else None)
        if not asked:
            names = ", ".join(item.policy for item in everyone)
            plan.left.append(f"no variable is set: nothing here is a GPU that {names} may be for")
        wanted, left = decide(asked, base)
        plan.settings = plan.settings._replace(defaults=wanted)
        plan.left += left


def decide(
    asked: Iterable[PolicySettings], base: Mapping[str, str], etc: str = ETC
) -> tuple[dict[str, str], list[str]]:
    """Return the variables to be set, and a sentence for each that is not. asked: by the policies that could apply.

    A variable is set for the whole process, before it is known on which GPU it will run. So where several policies are
    carried, it is set only if each of them that could apply asks for the same value. What the user has set stands."""
    wanted, left = _agreed([(item.policy, item.environment) for item in asked])
    if not wanted:
        return wanted, left
    from pyshim.start.chosen import without_users

    wanted, users = without_users(wanted, base, etc)
    return wanted, left + users


def could_apply(
    asked: Iterable[PolicySettings], vendors: frozenset[str] | None, gpu: tuple[str, str] | None
) -> tuple[PolicySettings, ...]:
    """Return those for a GPU here: of the vendors with a driver (None: not known), or of the only GPU.

    Where AMD's driver is alone, a policy for every GPU does not count behind others: `default` has no say in what
    `auto` sets for AMD."""
    from fnmatch import fnmatchcase

    found = []
    for item in asked:
        if gpu is not None and item.gpus and not any(fnmatchcase(word, glob) for word in gpu for glob in item.gpus):
            continue
        if gpu is None and vendors and not vendors & set(item.vendors):
            continue
        found.append(item)
    if gpu is not None:
        return tuple(found[:1])
    special = [item for item in found if item.gpus] if vendors == frozenset({"amd"}) else []
    return tuple(special or found)


def _agreed(policies: list[tuple[str, Mapping[str, str]]]) -> tuple[dict[str, str], list[str]]:
    """Return what all policies say, and a sentence for each variable about which they differ."""
    same: dict[str, str] = {}
    differ: list[str] = []
    for name in dict.fromkeys(name for _, values in policies for name in values):
        answers: dict[str | None, list[str]] = {}
        for policy, values in policies:
            answers.setdefault(values.get(name), []).append(policy)
        if len(answers) == 1:
            same[name] = policies[0][1][name]
            continue
        wanted = "; ".join(
            f"{f'{name}={value}' if value is not None else 'not'} in {', '.join(names)}"
            for value, names in sorted(answers.items(), key=lambda item: (item[0] is None, str(item[0])))
        )
        differ.append(f"{name} is not set, because it is not known yet which policy will apply: {wanted}")
    return same, differ


def begin(plan: Plan, base: Mapping[str, str], command: list[str] | None, strict: bool = False) -> None:
    """Make the folder of the run, and run.json and `last` with it.

    Inside of another overlap-run a policy of one's own is noted in the folder of that run. strict: raises OverlapError
    with 125 where the first rank of the same step was started otherwise."""
    from pyshim import __version__
    from pyshim.start import folder

    around = None if plan.settings.report else plan.around or (_around(base) if strict else None)
    path = plan.settings.report or around
    if path is None:
        if (folder.world_size(base) or 1) > 1:
            plan.remarks.append("--strict compares ranks with each other only with --report DIR")
        return
    if around and not plan.own:
        if strict and (folder.world_size(base) or 1) > 1:
            plan.remarks.append(
                "--strict compares nothing here: the policy comes from around this command; `overlap report --check` "
                "compares afterwards"
            )
        return
    folder.make(path)
    if folder.open_to_everybody(os.path.dirname(path)):
        plan.remarks.append(f"everybody may exchange what is in the report folder {os.path.dirname(path)} (chmod o-w)")
    run = folder.Run(
        id=os.path.basename(path),
        started=folder.now(),
        command=None if command is None else tuple(command),
        policies=plan.policies,
        overlap_run=__version__,
        expected_world_size=folder.world_size(base),
        simulate=plan.simulate,
        environment=variables(base, plan.settings),
        host=os.uname().nodename,
        pid=None if command is None else os.getpid(),
        table=checksum(plan.settings.table or base.get("OVERLAP_TABLE", "")),
        driver=plan.driver,
        obstacle=plan.obstacle,
    )
    folder.write(path, run, strict, folder.name(base) if around else folder.OUTERMOST)
    if not around and command is not None and folder.step(base):
        folder.begin(path, base)
    why_not = "" if around else folder.link(path)
    if why_not:
        plan.remarks.append(why_not)
