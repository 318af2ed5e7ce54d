"""Small C programs on simulated HIP runtimes, with and without the library preloaded; as ../../programs/interposing.py.

`hip` runs one: hip(words, policy) with the library and a report, hip(words) without it. Every simulated GPU has ten
compute units, and BLOCKS workgroups of any kernel are several waves of them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import hip_runtimes
from interposing import Build, Done, report_of, run_program

from pyshim.start import plan
from pyshim.start.environment import environment
from tools.simgpu.hip.image import Kernel, image

ROOT = Path(__file__).resolve().parent.parent.parent.parent

VERSIONS = tuple(map(str, hip_runtimes.VERSIONS))
WAYS = {"symbol": "LINKED", "dlsym": "DLSYM", "proc_address": "PROC", "driver_entry": "ENTRY"}
BLOCKS, LDS, GRANULE, UNITS = 400, 65536, 512, 10
NCCL = "ncclDevKernel_Generic_2"
STATIC = {"s1": 1, "s40000": 40000, "s65536": 65536}


def kernels(**registers: Any) -> list[Kernel]:
    return [
        Kernel(name, arguments=[8, 4], static_shared=STATIC.get(name, 0), **registers)
        for name in ("k", "leave", "reads", *STATIC)
    ] + [Kernel(NCCL, vgprs=248, agprs=32, static_shared=19808, arguments=[8, 4])]


Hip = Callable[..., Done]


def smallest(blocks: int, static: int = 0) -> int:
    """The smallest dynamic size with at most so many workgroups on a compute unit, by LDS alone."""
    return next(size for size in range(LDS) if LDS // (-(-(size + static) // GRANULE) * GRANULE or 1) <= blocks)


def runtime(version: str) -> Path:
    return hip_runtimes.runtime(int(version))


class World:
    """Programs, kernels and environments, each made once."""

    def __init__(self, build: Build, clean: Mapping[str, str], folder: Path) -> None:
        self.build, self.clean, self.folder = build, clean, folder
        self.tables: dict[str, Mapping[str, str]] = {}
        self.fat, self.code = folder / "fat", folder / "code"
        self.fat.write_bytes(image(kernels()))
        # Of a module's kernels only those are shaped of which the runtime reports more than 256 registers.
        self.code.write_bytes(image(kernels(vgprs=256, agprs=8)))
        # As rocBLAS' assembly kernels: a wave takes 512 registers, the metadata say 256. Four blocks fit, not eight.
        self.hand_written = folder / "hand-written"
        self.hand_written.write_bytes(image([Kernel("k", vgprs=256, agprs=256, said=256, arguments=[8, 4])]))
        build.library("librocprofiler-register.so.0", "hip_register.c")

    def _flags(self, version: str, way: str) -> list[str]:
        return [f"-DWAY_{WAYS[way]}", f'-DRUNTIME="{runtime(version).name}"', f"-DVERSION={version}"]

    def client(self, version: str = "7", way: str = "symbol") -> Path:
        link = [runtime(version)] if way == "symbol" else []
        return self.build(f"hip-client-{version}-{way}", "hip_client.c", *self._flags(version, way), link=link)

    def plugin(self, version: str = "7", way: str = "symbol") -> Path:
        link = [runtime(version)] if way == "symbol" else []
        name = f"plugin-{version}-{way}.so"
        return self.build.library(name, "hip_client.c", "-Dmain=plugin_main", *self._flags(version, way), link=link)

    def host(self) -> Path:
        return self.build("plugin-host", "plugin_host.c")

    def comm(self, name: str = "librccl.so.1") -> Path:
        return self.build.library(name, "hip_comm.c", link=[runtime("7")])

    def words(self, *kernels: str) -> list[str]:
        """A module with kernels, as functions."""
        return [f"code={self.code}", *(f"function={kernel}" for kernel in kernels)]

    def hosts(self, *kernels: str) -> list[str]:
        """A fat binary with kernels, as functions of the program."""
        return [f"fat={self.fat}", *(f"host={kernel}" for kernel in kernels)]

    def table(self, policy: str) -> Mapping[str, str]:
        """policy: a shipped name, or the text of one, perhaps without its first lines."""
        if policy not in self.tables:
            asked = policy
            if "\n" in policy or ":" in policy:
                head = "" if policy.startswith("policy:") else 'policy: 1\nname: test\ngpu: ["AMD *"]\n'
                asked = str(self.folder / f"policy{len(self.tables)}.yaml")
                Path(asked).write_text(f"{head}{policy}\n", encoding="ascii")
            many = [",".join(asked.split("+"))]
            settings = plan.make(plan.Request(policy=many[0]), self.clean).settings
            self.tables[policy] = environment(self.clean, settings)
        return self.tables[policy]


def runner(world: World, folder: Path) -> Hip:
    numbers = itertools.count()

    def run(
        words: Sequence[Any] = (),
        policy: str | None = None,
        version: str = "7",
        way: str = "symbol",
        program: Any = None,
        gpu: str = "mi250x",
        env: Mapping[str, str | None] | None = None,
        preload: str = "{}",
    ) -> Done:
        number = next(numbers)
        log, pages = folder / f"{number}.launches", folder / f"report{number}"
        made = dict(world.clean if policy is None else world.table(policy))
        made |= {"SIMGPU": gpu, "SIMGPU_LAUNCHES": str(log), "SIMGPU_MULTIPROCESSORS": str(UNITS)}
        paths = [str(path.parent) for path in map(runtime, (version, *VERSIONS))]
        made["LD_LIBRARY_PATH"] = ":".join([*paths, str(world.build.folder)])
        if policy is not None:
            pages.mkdir()
            made |= {"OVERLAP_REPORT": str(pages)}
        made["LD_PRELOAD"] = preload.format(plan.LIBRARY if policy is not None else "")
        made |= {name: value for name, value in (env or {}).items() if value is not None}
        for name in [name for name, value in (env or {}).items() if value is None]:
            made.pop(name, None)
        done = run_program(program or world.client(version, way), words, made, log, {})
        if pages.is_dir() and any(pages.glob("*.page")):
            done.report = report_of(pages)
        return done

    return run


def by_kernel(done: Done) -> dict[str, list[int]]:
    """The dynamic sizes of a kernel's launches, in order."""
    found: dict[str, list[int]] = {}
    for launch in done.launches:
        found.setdefault(launch["kernel"], []).append(launch["dynamic_shared"])
    return found


# ---- The runtime's table of functions ----

PLACES = dict(re.findall(r"TABLE\((\w+), (\d+)\)", (ROOT / "shim/hip/dispatch_table.def").read_text(encoding="ascii")))


def places() -> list[str]:
    """Flags of hip_profiler.c."""
    wrapped = {"HOST": "hipLaunchKernel", "MODULE": "hipModuleLaunchKernel", "STREAM": "hipStreamCreateWithFlags"}
    return [f"-DPLACE_{what}={PLACES[call]}" for what, call in wrapped.items()]
