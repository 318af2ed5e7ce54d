"""The simulated HIP runtimes show what the real ones show, and bind to themselves what the real ones do."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tools.simgpu.hip import names
from tools.simgpu.hip.code_object import Kernel, bundle, code_object

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HIP = ROOT / "tools/simgpu/hip"

CC = shlex.split(os.environ.get("CC", "cc"))


def readelf(*arguments: object) -> str:
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf: install binutils")
    return subprocess.run(["readelf", "-W", *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def shown(library: Path) -> list[str]:
    rows = [line.split() for line in readelf("--dyn-syms", library).splitlines()]
    return sorted(row[7].replace("@@", "@") for row in rows if len(row) == 8 and row[3] == "FUNC" and row[6] != "UND")


def test_names_and_version_nodes_are_those_of_the_real_one(runtimes: dict[int, Path], version: int) -> None:
    wanted = [f"{name}@{node}" for name, node in names.exported(version)]
    assert shown(runtimes[version]) == sorted(wanted)
    assert len(wanted) == {5: 441, 6: 484, 7: 525}[version]
    assert f"libamdhip64.so.{version}" in readelf("-d", runtimes[version])


def test_of_its_own_functions_only_launches_are_reached_by_name(runtimes: dict[int, Path], version: int) -> None:
    """hipLaunchByPtr calls hipModuleLaunchKernel so, as the real one does; the others SIMGPU_HIP_ITSELF names."""
    own = {name.split("@")[0] for name in shown(runtimes[version])}
    used = {match[1] for match in re.finditer(r"R_\S+\s+\S+\s+(\w+)", readelf("-r", runtimes[version]))}
    assert used & own == {"hipLaunchKernel", "hipLaunchKernel_spt", "hipExtLaunchKernel", "hipModuleLaunchKernel"}
    assert not [name for name in used if re.match(r"cu[A-Z]", name)]


def test_a_program_is_linked_with_it_and_runs(runtimes: dict[int, Path], version: int, tmp_path: Path) -> None:
    """As hipcc's: registered before main, launched by <<<>>>, symbols bound by their version nodes."""
    (tmp_path / "code.hipfb").write_bytes(bundle({"gfx90a": code_object([Kernel("_Z1kPf", arguments=[8])])}))
    program, log = tmp_path / "program", tmp_path / "launches"
    (tmp_path / "libamdhip64.so").symlink_to(runtimes[version])
    subprocess.run(
        [*CC, "-Wall", "-Wextra", "-Werror", HERE / "hip_program.c",
         f"-L{tmp_path}", "-lamdhip64", "-o", program],
        check=True,
    )  # fmt: skip
    assert re.search(r" hipLaunchKernel@hip_4.2 ", readelf("--dyn-syms", program))
    environment = {**os.environ, "LD_LIBRARY_PATH": str(runtimes[version].parent), "SIMGPU": "mi250x"}
    environment["SIMGPU_LAUNCHES"] = str(log)
    done = subprocess.run(
        [program, tmp_path / "code.hipfb"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 0 0\n", "")
    (row,) = map(json.loads, log.read_text().splitlines())
    assert (row["entry"], row["kernel"], row["blocks"], row["dynamic_shared"]) == ("hipLaunchKernel", "_Z1kPf", 6, 512)


def test_what_is_not_simulated_says_so_once(on_hip: Any, version: int) -> None:
    run = on_hip("answer([hip.code('hipMemPoolTrimTo', None, 0) for _ in range(3)])", version)
    assert run.answer == [801, 801, 801]
    line = "simgpu: hipMemPoolTrimTo is not simulated; it answers hipErrorNotSupported\n"
    assert run.stderr == line


def test_functions_by_name_are_the_librarys_own(on_hip: Any) -> None:
    run = on_hip("""
out, status = P(), C.c_int(7)
address = lambda name: C.cast(getattr(hip.library, name), P).value
def asked(call, name, *more):
    out.value, status.value = None, 7
    code = hip.code(call, name.encode(), C.byref(out), *more, C.byref(status))
    return [code, out.value, status.value]
zero = C.c_uint64(0)
answer([asked("hipGetProcAddress", "hipMalloc", 702, zero) == [0, address("hipMalloc"), 0],
        asked("hipGetProcAddress", "hipGetDeviceProperties", 702, zero)
            == [0, address("hipGetDevicePropertiesR0600"), 0],
        asked("hipGetProcAddress", "hipGetDeviceProperties", 507, zero) == [0, address("hipGetDeviceProperties"), 0],
        asked("hipGetProcAddress", "hipNoSuch", 702, zero),
        asked("hipGetDriverEntryPoint", "hipLaunchKernel", zero) == [0, address("hipLaunchKernel"), 0],
        asked("hipGetDriverEntryPoint_spt", "hipLaunchKernel", zero) == [0, address("hipLaunchKernel_spt"), 0],
        asked("hipGetDriverEntryPoint_spt", "hipMalloc", zero) == [0, address("hipMalloc"), 0]])
""")
    assert run.answer == [True, True, True, [1, None, 1], True, True, True]


def table_members(release: int) -> list[str]:
    """Of HipDispatchTable up to the steps of a release."""
    rows = re.findall(r"^MEMBER\((\w+),.*, (\d+)\)$", (HIP / "names.def").read_text(), re.M)
    return [name for name, step in rows if int(step) <= {6: 10, 7: 18}[release]]


REGISTER = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static int mine(void **address, size_t bytes) {
    (void)address;
    printf("replaced %zu\\n", bytes);
    fflush(stdout);
    return 77;
}
int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void), uint32_t version, void **tables,
                                           uint64_t count, uint64_t *identifier) {
    void **const table = tables[0];
    printf("%s %u %d %d %zu\\n", name, version, import() == version, (int)count, *(size_t *)table / sizeof(void *));
    fflush(stdout);
    *identifier = 1;
    if (strcmp(name, "hip") == 0)
        table[INDEX] = (void *)mine;
    return 0;
}
"""


@pytest.mark.parametrize("release", [6, 7])
def test_the_table_is_handed_out_once_and_what_stands_in_it_is_called(
    on_hip: Any, tmp_path: Path, release: int
) -> None:
    members = table_members(release)
    index = 1 + members.index("hipMalloc")
    (tmp_path / "register.c").write_text(REGISTER)
    library = tmp_path / "librocprofiler-register.so.0"
    subprocess.run(
        [*CC, "-w", "-shared", "-fPIC", f"-DINDEX={index}", tmp_path / "register.c", "-o", library], check=True
    )
    snippet = "p = P(); a = hip.code('hipMalloc', C.byref(p), C.c_size_t(5)); answer([a, hip.code('hipInit', 0)])"
    where = {"LD_LIBRARY_PATH": str(tmp_path)}
    run = on_hip(snippet, release, SIMGPU_HIP_TABLE="register", **where)
    number = {6: 60400, 7: 70200}[release]
    assert run.stdout.splitlines() == [
        f"hip {number} 1 1 {1 + len(members)}",
        f"hip_compiler {number} 1 1 10",
        "replaced 5",
    ]
    assert run.answer == [77, 0]
    assert on_hip(snippet, release, **where).answer == [0, 0]
    without = on_hip(snippet, release, SIMGPU_HIP_TABLE="register")
    assert without.answer == [0, 0]
    assert without.stderr == "simgpu: SIMGPU_HIP_TABLE: librocprofiler-register.so.0 cannot be loaded\n"
