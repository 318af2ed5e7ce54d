"""From what a user asks for to settings of the environment and the lines that must be said about them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from pyshim import preload
from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.launch import driver, folder, rank, variables
from pyshim.launch.environment import Settings, environment, quote, without_table
from pyshim.launch.environment import variables as set_by_policies
from pyshim.policy.layout import checksum

if TYPE_CHECKING:
    from pyshim.launch.simulate import Gpu
    from pyshim.launch.variables import Asked

_BUILT = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "_lib")
LIBRARY = os.path.join(_BUILT, preload.NAME)
SIMULATED_DRIVER = os.path.join(_BUILT, "simgpu", "libcuda.so.1")
SIMULATED_RUNTIMES = tuple(
    os.path.join(_BUILT, "simgpu", f"hip{version}", f"libamdhip64.so.{version}") for version in (5, 6, 7)
)
SIMULATED_PROGRAMS = os.path.join(_BUILT, "demo")
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
    not set, and why, said to those who ask. carried: what makes a launcher pass the settings on."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.doubts: list[str] = []
        self.remarks: list[str] = []
        self.left: list[str] = []
        self.own = False  # asked for in so many words, also inside of an overlap-run or a prolog
        self.carried: Mapping[str, str] = {}
        self.policies: tuple[Mapping[str, str | None], ...] = ()
        self.simulate: str | None = None

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
    """Decide all but the program and the report folder. Raises OverlapError with 125."""
    plan = Plan()
    if switched_off(base, request.policy):
        return plan
    gpu = _simulate(request, base, plan)
    _policies(request, base, gpu, plan)
    found = request.library or _library(library, plan)
    plan.settings = plan.settings._replace(library=found, quiet=request.quiet)
    return plan


def _simulate(request: Request, base: Mapping[str, str], plan: Plan) -> Gpu | None:
    if request.simulate is None:
        return None
    from pyshim.launch import simulate

    gpu = simulate.parse(request.simulate)
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
    plan.remarks.append(f"{number}{gpu.name}, rule {gpu.rule}")
    if gpu.vendor == "amd":
        plan.settings = plan.settings._replace(simulated_runtimes=SIMULATED_RUNTIMES)
    return gpu


def simulated(value: str, base: Mapping[str, str]) -> tuple[Gpu, dict[str, str]]:
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
    if not preload.can_hold(path):
        plan.doubts.append(f"LD_PRELOAD cannot hold the path {path}: the program runs without the library")
        return None
    return path


def _policies(request: Request, base: Mapping[str, str], gpu: Gpu | None, plan: Plan) -> None:
    policy = wanted(request.policy, base)
    if policy is None and base.get("OVERLAP_TABLE"):
        return  # inside another overlap-run: its word stands
    plan.own = request.policy is not None
    from pyshim.launch import policies

    try:
        chosen = policies.choose(policy, base)
    except OverlapError as error:
        if request.policy is None and policy is not None:
            error.hint = "; ".join(filter(None, (f"{CHOICE} asks for it", error.hint)))
        raise
    plan.policies = chosen.described
    plan.settings = plan.settings._replace(table=chosen.table)
    _variables(request, base, gpu, chosen.asked, plan)
    if gpu and not chosen.fits(gpu):
        named = ", ".join(str(policy["name"]) for policy in chosen.described)
        plan.doubts.append(f"no policy for this GPU ({gpu.name}) in {named or 'auto'}: observing")
        # Said here, so the library need not say it again.
        plan.settings = plan.settings._replace(table=policies.observing())


def _variables(
    request: Request, base: Mapping[str, str], gpu: Gpu | None, asked: tuple[Asked, ...], plan: Plan
) -> None:
    if any(item.environment for item in asked):
        here = None if gpu or request.elsewhere else driver.vendors(base)
        everyone = asked
        asked = variables.could_apply(asked, here, (gpu.name, gpu.architecture) if gpu else None)
        if not asked:
            names = ", ".join(item.policy for item in everyone)
            plan.left.append(f"no variable is set: nothing here is a GPU that {names} may be for")
        wanted, left = variables.decide(asked, base)
        plan.settings = plan.settings._replace(defaults=wanted)
        plan.left += left


# Why ranks cannot be compared when they start.
_BY_POLICY = "the policy comes from around this command; `overlap report --check` compares afterwards"
_BY_LAUNCHER = "this launcher gives its ranks no name in common; give all the same OVERLAP_RUN_ID"


def open_report(
    directory: str, plan: Plan, base: Mapping[str, str], command: list[str] | None, strict: bool = False
) -> None:
    """Make the report folder and write run-ID.json, except where an outer overlap-run has chosen it for this one, too.

    strict: raises OverlapError with 125 where the first rank of the same step was started otherwise."""
    from pyshim import __version__

    path = folder.prepare(directory)
    if folder.open_to_everybody(path):
        plan.remarks.append(f"everybody may exchange what is in the report folder {path} (chmod o-w)")
    named = base.get("OVERLAP_RUN_ID") or None
    if base.get("OVERLAP_TABLE") and base.get("OVERLAP_REPORT"):  # by an overlap-run or a prolog around this one
        outer, given = named if base["OVERLAP_REPORT"] == quote(path) else None, None
    else:  # by hand, for starts that belong together
        outer, given = None, named if rank.is_id(named or "") else None
        if named and not given:
            plan.remarks.append("OVERLAP_RUN_ID is left out: it needs 16 of the digits 0-9 and a-f")
    common = rank.inner(outer, base) if outer else given or rank.job(base)
    if strict and (rank.world_size(base) or 1) > 1 and (not common or (outer and not plan.own)):
        plan.remarks.append(f"--strict compares nothing here: {_BY_POLICY if outer else _BY_LAUNCHER}")
    if outer and not plan.own:
        return
    run = folder.Run(
        id=common or os.urandom(8).hex(),
        outer=outer,
        started=folder.now(),
        command=None if command is None else tuple(command),
        policies=plan.policies,
        overlap_run=__version__,
        expected_world_size=rank.world_size(base),
        simulate=plan.simulate,
        environment=set_by_policies(base, plan.settings),
        host=os.uname().nodename,
        table=checksum(plan.settings.table or base.get("OVERLAP_TABLE", "")),
    )
    # Ranks that have no name in common take each other's runs for earlier ones.
    earlier = 0 if outer or ((run.expected_world_size or 1) > 1 and not common) else folder.earlier(path, run.id)
    if earlier:
        number = "an earlier run" if earlier == 1 else f"{earlier:,} earlier runs"
        plan.remarks.append(
            f"the report folder {path} holds {number}: `overlap report` shows this one, {run.id}; --run ID shows others"
        )
    folder.write(path, run, strict)
    plan.settings = plan.settings._replace(report=path, run_id=run.id)
