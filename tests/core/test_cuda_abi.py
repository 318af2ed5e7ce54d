"""cuda_abi.h against NVIDIA's cuda.h where that is found, and against what cuda.h 13.0 said where it is not.

The prototypes of driver.def and api.def are compared too: a hook with one argument less corrupts a launch.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest

from tools.checks import driver_table

ROOT = Path(__file__).resolve().parents[2]
ABI = ROOT / "shim/cuda/cuda_abi.h"
EXPECTED = Path(__file__).parent / "cuda" / "abi_13.0.txt"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cuda") / "cuda_names.h"
    found = re.findall(r"^ +(CU\w+|CUDA_\w+) = \d+,", ABI.read_text(), re.M)
    for line in re.findall(r"^enum \{ (.*) \};", ABI.read_text(), re.M):
        found += re.findall(r"(CU\w+) = \d+", line)
    assert len(found) > 25
    path.write_text("".join(f"CONSTANT({name})\n" for name in found))
    return path


@pytest.fixture(scope="module")
def ours(names: Path, compile_c: Any, run_program: Callable[..., str]) -> str:
    return run_program(compile_c("cuda_print.c", flags=(f'-DCUDA_NAMES="{names}"',), name="ours"))


def test_as_cuda_13_0_said(ours: str) -> None:
    assert ours == EXPECTED.read_text()


def test_as_the_installed_header_says(
    ours: str, names: Path, cuda_headers: Path, compile_c: Any, run_program: Callable[..., str]
) -> None:
    flags = (f'-DCUDA_NAMES="{names}"', "-DTHEIRS", "-isystem", str(cuda_headers))
    assert run_program(compile_c("cuda_print.c", flags=flags, name="theirs")) == ours


# Where ours says less: handles are void *, enums are int; both sides are brought to these words and then compared.
PLAIN = [
    (r"\bconst\b|\brestrict\b|\bstruct\b|\benum\b", ""),
    (r"\bunsigned int\b|\bcuuint32_t\b", "uint32_t"),
    (r"\bcuuint64_t\b|\bunsigned long long\b", "uint64_t"),
    (r"\bunsigned char\b", "uint8_t"),
    (r"\bunsigned short\b", "uint16_t"),
    (r"\b(CUdevice|CUresult|int32_t|CUjit_option|CUfunction_attribute|CUdevice_attribute)\b", "int"),
    (r"\b(CUstreamAttrID|CUkernelNodeAttrID|CUfunc_cache|CUgraphNodeType)\b", "int"),
    (r"\b(CUkernelNodeAttrValue|CUstreamAttrValue|CUlaunchAttributeValue)(_v1)?\b", "CUlaunchAttributeValue"),
    (r"\bCUDA_KERNEL_NODE_PARAMS_v[12]\b", "CUDA_KERNEL_NODE_PARAMS"),  # the first is a prefix of the second
    (r"\b(CUstreamCaptureStatus|CUstreamCaptureMode|CUdriverProcAddressQueryResult|CUgraphExecUpdateResult)\b", "int"),
]
# Theirs alone, where ours passes on what it does not look at: in the same registers, or as a pointer to whatever it is.
PASSED_ON = [
    (r"\bCUdeviceptr(_v2)?\b", "uint64_t"),
    (r"\bCUmemLocation(_v1)?\b", "uint64_t"),  # by value: two ints in one register
    (r"\b(CUhostFn|CUstreamCallback|CUgraphRecaptureCallback|CUarray|CUmemoryPool)\b", "void *"),
    (r"\bCUexternalSemaphore\b(?= *\*)", "void"),  # arrays of them
    (r"\bCUDA_EXTERNAL_SEMAPHORE_(WAIT|SIGNAL)_PARAMS(_v1)?\b", "void"),
    (r"\bCUDA_(MEMCPY2D|MEMCPY3D|MEMCPY3D_PEER|MEMCPY3D_BATCH_OP)(_v[12])?\b", "void"),
    (r"\bCUDA_(EXT_SEM_WAIT|BATCH_MEM_OP)_NODE_PARAMS(_v1)?\b", "void"),
    (r"\bCUmemcpyAttributes(_v1)?\b", "void"),
    (r"\b(CUgraphicsResource|CUarrayMapInfo(_v1)?|CUmemDecompressParams)\b(?= *\*)", "void"),
    (r"\bCUipcEventHandle(_v1)?\b(?= *\*)", "void"),
    (r"\b(CUexecAffinityParam|CUctxCreateParams)\b(?= *\*)", "void"),
    (r"\bCUdevResourceDesc\b", "void *"),
]


def plain(parameters: str, more: list[tuple[str, str]] | None = None) -> list[str]:
    for pattern, word in PLAIN + (more or []):
        parameters = re.sub(pattern, word, parameters)
    kinds = []
    for parameter in parameters.split(","):
        stars = parameter.count("*") + parameter.count("[")
        kinds.append(re.findall(r"\w+", parameter)[0] + "*" * stars)
    return kinds


@pytest.fixture(scope="module")
def declared(cuda_headers: Path) -> dict[str, set[str]]:
    """Name -> its parameters, of every form of every function: cuda.h renames them by what a program defines."""
    found: dict[str, set[str]] = {}
    compiler = shlex.split(os.environ.get("CC", "cc"))
    for form in ((), ("-D__CUDA_API_VERSION_INTERNAL",), ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",)):
        command = [*compiler, "-E", "-P", *form, "-x", "c", str(cuda_headers / "cuda.h")]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for name, parameters in re.findall(r"CUresult\s+(\w+)\s*\(([^;]*?)\)\s*;", text, re.S):
            found.setdefault(name, set()).add(parameters)
    return found


def test_prototypes_are_those_of_the_installed_header(declared: dict[str, set[str]]) -> None:
    """Of each name by itself: a form for per-thread default streams is not taken for another form."""
    api = (ROOT / "shim/cuda/api.def").read_text()
    rows = [(row.name, row.parameters) for row in driver_table.rows()]
    assert len(rows) > 100
    for name, parameters in rows + re.findall(r"^CALL\((\w+), (\(.*\))\)$", api, re.M):
        assert name in declared, f"{name} is not in cuda.h"
        for theirs in declared[name]:
            assert plain(parameters.strip("() ")) == plain(theirs, PASSED_ON), name


def test_rows_tell_the_newest_version_of_each_function(cuda_headers: Path) -> None:
    """Of a name of ours no version may come that has no row, up to the newest that lookup.c takes for known."""
    text = (cuda_headers / "cudaTypedefs.h").read_text()
    theirs: dict[str, set[int]] = {}
    for name, version in re.findall(r"\bPFN_(cu\w+?)_v(\d+)(?:_pts[zd])?\)", text):
        theirs.setdefault(name, set()).add(int(version))
    known = int(re.findall(r"KNOWN = (\d+)", (ROOT / "shim/cuda/lookup.c").read_text())[0])
    entries = re.findall(r"^ENTRY\((\w+), (\w+), (\d+), \d\)", (ROOT / "tools/simgpu/api.def").read_text(), re.M)
    hooked = {row.name for row in driver_table.rows()}
    newest: dict[str, int] = {}
    for symbol, name, version in entries:
        if symbol in hooked:
            newest[name] = max(newest.get(name, 0), int(version))
    assert len(newest) > 60 and newest.keys() <= theirs.keys()
    assert {name for name in newest if max(at for at in theirs[name] if at <= known) > newest[name]} == set()
    assert max(max(versions) for versions in theirs.values()) >= known, "which no header here says"


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ("uint64_t to, const void *from", "CUdeviceptr a, const CUDA_MEMCPY2D *b", True),
        ("void *function, uint64_t location", "CUhostFn f, CUmemLocation l", True),
        ("uint64_t *locations", "CUmemLocation *l", True),
        ("uint32_t to", "CUdeviceptr a", False),
        ("uint64_t to", "CUdeviceptr_v1 a", False),
        ("uint64_t function", "CUhostFn f", False),
        ("void *location", "CUmemLocation l", False),
        ("void *handle", "CUipcEventHandle handle", False),
        ("uint64_t handle", "CUipcEventHandle handle", False),
        ("CUstream stream", "CUevent event", False),
        ("uint64_t value", "cuuint32_t value", False),
        ("uint32_t value", "unsigned short value", False),
        ("void *stream", "CUstream stream", False),
        ("uint64_t to, size_t bytes", "CUdeviceptr a", False),
    ],
)
def test_what_counts_as_the_same(ours: str, theirs: str, same: bool) -> None:
    assert (plain(ours) == plain(theirs, PASSED_ON)) == same


def test_what_is_passed_by_value_has_the_size_of_ours(
    cuda_headers: Path, tmp_path: Path, compile_c: Any, run_program: Callable[..., str]
) -> None:
    source = tmp_path / "sizes.c"
    source.write_text(
        "#include <cuda.h>\n"
        '_Static_assert(sizeof(CUmemLocation) == 8 && sizeof(CUdeviceptr) == 8, "in one register");\n'
        '_Static_assert(sizeof(CUipcEventHandle) == 64, "on the stack");\n'
        "int main(void) { return 0; }\n"
    )
    run_program(compile_c(str(source), flags=("-isystem", str(cuda_headers)), name="sizes"))
