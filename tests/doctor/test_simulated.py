"""What the simulated GPU refuses of a program: `overlap doctor --simulate` says it before `overlap-run --simulate`."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any, Callable

import pytest
from doctoring import Compile

from pyshim.doctor import ask_code

ROOT = Path(__file__).resolve().parents[2]
PTX, CUBIN, COMPRESSED = 1, 2, 0x2000
TEXT = b".version 8.0 .visible .entry k() { }\0"
# As a program does it that links CUDA's runtime: it asks for the driver's table, or hands over its fat binary.
SOURCE = """
#include <dlfcn.h>
#include <stdio.h>
typedef int call(void *, const void *);
static const unsigned char __attribute__((aligned(8), used)) data[] = {%s};
int main(void) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context = 0, *made = 0;
    int (*init)(unsigned) = dlsym(cuda, "cuInit"), (*current)(void *) = dlsym(cuda, "cuCtxSetCurrent");
    int (*retain)(void **, int) = dlsym(cuda, "cuDevicePrimaryCtxRetain");
    init(0);
    retain(&context, 0);
    current(context);
    printf("%%d\\n", ((call *)dlsym(cuda, "%s"))(&made, data));
}
"""


def _fatbin(kind: int, architecture: int, flags: int = 0) -> bytes:
    entry = struct.pack("<HHIQ12xI8xQ", kind, 1, 48, len(TEXT), architecture, flags) + TEXT
    return struct.pack("<IHHQ", *ask_code.FATBIN, len(entry)) + entry


@pytest.fixture
def program(compiled: Compile) -> Callable[..., str]:
    """Return a program that has these bytes in it, and hands them to a function of the driver."""

    def make(data: bytes, call: str = "cuModuleLoadData") -> str:
        return str(compiled("program", SOURCE % (", ".join(map(str, data)), call)))

    return make


def test_the_name_of_the_table_is_that_of_the_simulated_driver() -> None:
    source = (ROOT / "tools/simgpu/lookup.c").read_text()
    (found,) = re.findall(r"RUNTIME_TABLE\[16\] = \{([^}]*)\}", source)
    assert bytes(int(byte, 16) for byte in found.split(",")) == ask_code.RUNTIME_TABLE


@pytest.mark.parametrize(
    ("data", "call"),
    [
        pytest.param(ask_code.RUNTIME_TABLE, "cuGetExportTable", id="NVIDIA's runtime inside it, nvcc's default"),
        pytest.param(_fatbin(PTX, 80, COMPRESSED), "cuModuleLoadData", id="compressed, the default of CUDA 13"),
    ],
)
def test_the_doctor_says_what_the_run_will_say(
    overlap: Any, overlap_run: Any, library: Any, program: Callable[..., str], data: bytes, call: str
) -> None:
    path = program(data, call)
    (said,) = [line for line in overlap_run("--simulate", "h100", path).stderr.splitlines() if "simgpu: " in line]
    done = overlap("doctor", "--simulate", "h100", path, env={"COLUMNS": ""})
    sentence = said.removeprefix("simgpu: ").partition("; ")[0]
    assert done.returncode == 1
    assert done.stdout.startswith(f"in the way: program does not run on the simulated GPU: {sentence}\n")
    assert "-cudart shared -no-compress" in " ".join(done.stdout.split())


def test_code_for_another_gpu_alone(overlap: Any, overlap_run: Any, library: Any, program: Callable[..., str]) -> None:
    path = program(_fatbin(CUBIN, 100))
    assert overlap_run("--simulate", "h100", path).stdout == "209\n"  # CUDA_ERROR_NO_BINARY_FOR_GPU
    done = overlap("doctor", "--simulate", "h100", path)
    assert done.stdout.startswith("in the way: program has no code for sm_90, which the simulated NVIDIA H100")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(_fatbin(PTX, 80), id="PTX"),
        pytest.param(_fatbin(CUBIN, 75) + _fatbin(PTX, 80), id="the empty one that nvcc links, for its oldest GPU"),
        pytest.param(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 62), id="longer than the file"),
        pytest.param(struct.pack("<IHHQ", 0xBA55ED50, 7, 7, 8), id="of no version that is known"),
    ],
)
def test_what_runs_is_not_called_refused(overlap: Any, library: Any, program: Callable[..., str], data: bytes) -> None:
    done = overlap("doctor", "--simulate", "h100", program(data))
    assert done.stdout.startswith("nothing is in the way\n"), done.stdout


def test_a_library_of_the_program_is_looked_at_too(overlap: Any, library: Any, compiled: Compile) -> None:
    data = ", ".join(map(str, ask_code.RUNTIME_TABLE))
    code = compiled(
        "libcode.so", f"const unsigned char data[] = {{{data}}};", "-shared", "-fPIC", "-Wl,-soname,libcode.so"
    )
    flags = ("-Wl,--no-as-needed", str(code), f"-Wl,-rpath,{code.parent}")
    path = compiled("linked", "int main(void) { return 0; }", *flags)
    done = overlap("doctor", "--simulate", "h100", path)
    assert done.stdout.startswith("in the way: libcode.so does not run on the simulated GPU: "), done.stdout
    assert overlap("doctor", "--simulate", "mi250x", path).stdout.startswith("nothing is in the way\n")
