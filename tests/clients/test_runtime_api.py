"""Our libcudart.so.12 and .13 against NVIDIA's: names, versions, layouts, parameters, errors."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from nvidia_packages import runtime_headers, runtime_library

from pyshim.launch import plan
from tools.lint import check_exports

RUNTIME = Path(__file__).resolve().parents[2] / "tools" / "simgpu" / "runtime"
VERSIONS = (12, 13)

STRUCTS = {
    "dim3": ["x", "y", "z"],
    "cudaLaunchConfig_t": ["gridDim", "blockDim", "dynamicSmemBytes", "stream", "attrs", "numAttrs"],
    "cudaLaunchAttribute": ["id"],
    "cudaLaunchAttributeValue": [],
    "struct cudaKernelNodeParams": ["func", "gridDim", "blockDim", "sharedMemBytes", "kernelParams", "extra"],
    "struct cudaFuncAttributes": [
        "sharedSizeBytes", "constSizeBytes", "localSizeBytes", "maxThreadsPerBlock", "numRegs", "ptxVersion",
        "binaryVersion", "cacheModeCA", "maxDynamicSharedSizeBytes", "preferredShmemCarveout", "clusterDimMustBeSet",
        "requiredClusterWidth", "requiredClusterHeight", "requiredClusterDepth", "clusterSchedulingPolicyPreference",
        "nonPortableClusterSizeAllowed",
    ],
    "struct cudaPointerAttributes": ["type", "device", "devicePointer", "hostPointer"],
}  # fmt: skip
CONSTANTS = [
    "cudaErrorInvalidValue", "cudaErrorInvalidConfiguration", "cudaErrorInvalidSymbol", "cudaErrorMissingConfiguration",
    "cudaErrorInvalidMemcpyDirection", "cudaErrorInsufficientDriver", "cudaErrorInvalidDeviceFunction",
    "cudaErrorInvalidDevice", "cudaErrorNotSupported", "cudaMemcpyHostToHost", "cudaMemcpyHostToDevice",
    "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice", "cudaMemcpyDefault",
]  # fmt: skip
# What a package of the runtime's headers wants of the compiler's own.
HOST_DEFINES = """
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define __host__
#define __device__
#define __CUDA_DEPRECATED
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
"""


class Name(NamedTuple):
    name: str
    suffix: str  # of the form for per-thread default streams; empty: there is none
    parameters: int


def names_of(version: int) -> list[Name]:
    """Those of one of the two libraries, from api.def."""
    found, here = [], True
    for line in (RUNTIME / "api.def").read_text(encoding="ascii").splitlines():
        if line.startswith(("#if RUNTIME == ", "#endif")):
            here = line in (f"#if RUNTIME == {version}", "#endif")
        elif here and (row := re.match(r"(?:OWN|BODY|DRIVER)(?:_STREAM)?\((\w+), (_pt\w+)?", line)):
            inside = line.split("(", 2)[2].split(")")[0]
            found.append(Name(row[1], row[2] or "", 0 if inside == "void" else inside.count(",") + 1))
    return found


def exported(version: int) -> set[str]:
    return {name.name + suffix for name in names_of(version) for suffix in ("", name.suffix)}


def symbols(path: Path) -> dict[str, str]:
    """name -> version, of everything that is exported."""
    elf = check_exports.Reader(path.read_bytes()).read()
    return {symbol.name: symbol.version for symbol in elf.symbols if symbol.defined}


def ours(version: int) -> Path:
    return Path(plan.SIMULATED_DRIVER).parent / f"libcudart.so.{version}"


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_exported_is_what_the_table_says(version: int) -> None:
    node = f"libcudart.so.{version}"
    found = symbols(ours(version))
    found.pop(node, None)  # the node itself
    assert found == dict.fromkeys(exported(version), node)
    assert b"\0" + node.encode() + b"\0" in ours(version).read_bytes()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_real_library_has_every_name_under_the_same_version(version: int) -> None:
    real = symbols(runtime_library(version))
    assert {name: real.get(name) for name in exported(version)} == dict.fromkeys(
        exported(version), f"libcudart.so.{version}"
    )
    # A form for per-thread default streams that is missing would run on the wrong stream without a word.
    forms = {name for name in real if re.search(r"_pt[sd][sz]$", name)}
    missing = {form for form in forms if form[:-5] in exported(version)} - exported(version)
    assert missing == set()


def fields_of_properties() -> list[str]:
    rows = re.findall(r"^PROP\((\w+)", (RUNTIME / "props.def").read_text(), re.M)
    return ["name", "uuid", "totalGlobalMem", *dict.fromkeys(rows), "reserved"]


def layout(includes: list[Path], header: str, version: int, folder: Path) -> str:
    """Sizes, offsets and numbers, by the compiler."""
    wanted = {**STRUCTS, "struct cudaDeviceProp": []}
    lines = [f'P("{name} %zu\\n", sizeof({name}));' for name in wanted]
    lines += [f'P("{n}.{f} %zu\\n", offsetof({n}, {f}));' for n, fields in STRUCTS.items() for f in fields]
    lines += [f'P("{name} %d\\n", (int){name});' for name in CONSTANTS]
    only = set(re.findall(r"\w+", sizes_only(version)))
    for name in fields_of_properties():
        if name not in only:
            at = f"offsetof(struct cudaDeviceProp, {name})"
            lines.append(f'P("{name} %zu %zu\\n", {at}, sizeof(((struct cudaDeviceProp *)0)->{name}));')
    source, program = folder / "layout.c", folder / "layout"
    body = "\n".join(lines)
    top = f"#include <stddef.h>\n#include <stdio.h>\n#include <{header}>\n#define P printf\n"
    source.write_text(f"{top}int main(void) {{\n{body}\n}}\n")
    command = [*shlex.split(os.environ.get("CC", "cc")), "-w", f"-DRUNTIME={version}"]
    command += [f"-I{path}" for path in includes]
    subprocess.run([*command, str(source), "-o", str(program)], check=True)
    return subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout


def sizes_only(version: int) -> str:
    """The rows of props.def that this version does not have."""
    return "" if version == 12 else (RUNTIME / "props.def").read_text().split("#if RUNTIME == 12")[1]


@pytest.mark.parametrize("version", VERSIONS)
def test_layouts_are_those_of_the_headers(version: int, tmp_path: Path) -> None:
    (tmp_path / "crt").mkdir()
    (tmp_path / "crt" / "host_defines.h").write_text(HOST_DEFINES)
    real = layout([tmp_path, runtime_headers(version)], "driver_types.h", version, tmp_path)
    made = layout([RUNTIME], "runtime_abi.h", version, tmp_path)
    assert made.splitlines() == real.splitlines()
