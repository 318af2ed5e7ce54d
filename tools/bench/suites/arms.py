"""One run of one program: a process of its own, so that nothing of an earlier one is known to the library."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyshim import _native
from pyshim.demo.arms import clean, read_counters
from pyshim.errors import USAGE, OverlapError
from pyshim.policy.gpus import KnownGpu
from pyshim.start import plan
from pyshim.start.environment import Settings, environment
from tools.bench.suites import kernels
from tools.bench.suites.programs import Program, words
from tools.checks import shim_build

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
DEMO = ROOT / "tools" / "demo"
# The first steps are reported apart: the library asks about kernels, which takes virtual host time, and what it has not
# learnt yet may be wrong.
FIRST, STEADY = 3, 3
STENCIL_ARMS = {"priority": "raise"}  # the words of stencil.c; others are the same
TIME_LIMIT = 120


@dataclass(frozen=True)
class Outcome:
    first_ms: float  # mean of the first steps
    steady_ms: float  # of the others
    launches: int = 0
    shaped: int = 0
    raised: int = 0


def built() -> None:
    """Raise OverlapError if the library to measure is not built."""
    for path in (_native.SHIM, _native.SIMULATED_DRIVER):
        if not path.exists():
            raise OverlapError(f"{path.name} was not built", "make setup", USAGE)


class Bench:
    """The programs built once, cubins for each GPU, an environment for each policy. `folder` is ours."""

    def __init__(self, folder: Path, base: Mapping[str, str]) -> None:
        self.folder = folder
        # What the user has set for NCCL is about other runs: the programs here read it.
        kept = {name: value for name, value in clean(base).items() if not name.startswith(("NCCL_", "CUDA_"))}
        self.base = kept
        self._settings: dict[tuple[str, str, str], Settings] = {}
        built()
        _compile(HERE / "program.c", self.folder / "suite-program")
        _compile(DEMO / "stencil.c", self.folder / "stencil")

    def prepare(self, gpu: KnownGpu) -> None:
        kernels.write_cubin(self._cubin(gpu), gpu)
        kernels.write_stencil_cubin(self._cubin(gpu, "stencil-"), gpu)
        # The first row that matches a kernel wins.
        files = [HERE / "costs_pcie.yaml"] * (gpu.key in kernels.PCIE) + [HERE / "costs.yaml"]
        self._costs(gpu).write_text("".join(file.read_text(encoding="utf-8") for file in files), encoding="utf-8")

    def _costs(self, gpu: KnownGpu) -> Path:
        return self.folder / f"{gpu.key}.yaml"

    def _cubin(self, gpu: KnownGpu, prefix: str = "") -> Path:
        return self.folder / f"{prefix}{gpu.key}.cubin"

    def _command(self, program: Program, gpu: KnownGpu, arm: str) -> list[str]:
        steps = str(FIRST + STEADY)
        if program.stencil:
            cubin = self._cubin(gpu, "stencil-")
            return [str(self.folder / "stencil"), str(cubin), STENCIL_ARMS.get(arm, arm), steps, program.name]
        kind = "graph" if program.captured else "stream"
        return [str(self.folder / "suite-program"), str(self._cubin(gpu)), arm, steps, kind, *words(program, gpu)]

    def settings(self, policy: str, gpu: KnownGpu, rule: str) -> Settings:
        """As overlap-run --policy POLICY --simulate GPU has them, under a dispatch rule."""
        key = (policy, gpu.key, rule)
        if key not in self._settings:
            asked = plan.Request(policy=policy, simulate=gpu.key, quiet=True)
            made = plan.make(asked, self.base).settings
            self._settings[key] = made._replace(simulated_gpu=f"{gpu.key}:{rule}")
        return self._settings[key]

    def bare(self, program: Program, gpu: KnownGpu, rule: str, arm: str) -> Outcome:
        settings = Settings(simulated_driver=str(_native.SIMULATED_DRIVER.parent), simulated_gpu=f"{gpu.key}:{rule},1")
        return self._run(program, gpu, arm, settings)

    def under(
        self, policy: str, program: Program, gpu: KnownGpu, rule: str, variables: Mapping[str, str] | None = None
    ) -> Outcome:
        """Run the arm `plain` with the library in front of the driver. variables: of NCCL, as program.c reads them."""
        with tempfile.TemporaryDirectory(dir=self.folder) as report:
            settings = self.settings(policy, gpu, rule)._replace(report=report)
            outcome = self._run(program, gpu, "plain", settings, variables)
            page = read_counters(Path(report))
        return Outcome(outcome.first_ms, outcome.steady_ms, page.launches, page.shaped, page.raised)

    def _run(
        self,
        program: Program,
        gpu: KnownGpu,
        arm: str,
        settings: Settings,
        variables: Mapping[str, str] | None = None,
    ) -> Outcome:
        costs = DEMO / "costs.yaml" if program.stencil else self._costs(gpu)
        names = {**environment(self.base, settings), **(variables or {}), "SIMGPU_COSTS": str(costs)}
        command = self._command(program, gpu, arm)
        try:
            done = subprocess.run(
                command, env=names, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIME_LIMIT
            )
        except subprocess.TimeoutExpired as error:
            raise OverlapError(f"{program.name} on {gpu.key}, {arm}: no end within {TIME_LIMIT} seconds") from error
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise OverlapError(f"{program.name} on {gpu.key}, {arm}: {said[-1] if said else done.returncode}")
        steps = [float(json.loads(line)["milliseconds"]) for line in done.stdout.splitlines()]
        return Outcome(_mean(steps[:FIRST]), _mean(steps[FIRST:]))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _compile(source: Path, target: Path) -> None:
    command = [*shim_build.load().compiler(), "-std=c11", "-D_GNU_SOURCE", "-O2", str(source)]
    if subprocess.run([*command, "-o", str(target), "-ldl", "-pthread"], check=False).returncode:
        raise OverlapError(f"{source.name} of the suite does not compile", "make setup")
