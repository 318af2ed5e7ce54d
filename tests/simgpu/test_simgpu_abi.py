"""Our ABI header against NVIDIA's cuda.h, where one is installed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"

STRUCTS = {
    "CUlaunchAttribute": ["id", "value"],
    "CUlaunchConfig": ["gridDimX", "blockDimX", "sharedMemBytes", "hStream", "attrs", "numAttrs"],
    "CUDA_KERNEL_NODE_PARAMS_v1": ["func", "sharedMemBytes", "kernelParams", "extra"],
    "CUDA_KERNEL_NODE_PARAMS": ["func", "sharedMemBytes", "kernelParams", "extra", "kern", "ctx"],
    "CUdevSmResource": ["smCount", "minSmPartitionSize", "smCoscheduledAlignment"],
    "CUdevResource": ["type"],
    "CUDA_LAUNCH_PARAMS": ["gridDimX", "blockDimX", "sharedMemBytes", "hStream", "kernelParams"],
    "CUDA_GRAPH_INSTANTIATE_PARAMS": ["flags", "hUploadStream", "hErrNode_out", "result_out"],
    "CUgraphExecUpdateResultInfo": ["result", "errorNode", "errorFromNode"],
    "CUgraphEdgeData": ["from_port", "to_port", "type"],
    "CUuuid": ["bytes"],
}


def layout(header: str, include: Path, folder: Path) -> str:
    lines = [f'P("{name} %zu\\n", sizeof({name}));' for name in STRUCTS]
    lines += [
        f'P("{name}.{field} %zu\\n", offsetof({name}, {field}));'
        for name, fields in STRUCTS.items()
        for field in fields
    ]
    source = folder / "layout.c"
    body = "\n".join(lines)
    top = f"#include <stddef.h>\n#include <stdio.h>\n#include <{header}>\n#define P printf\n"
    source.write_text(top + f"int main(void) {{\n{body}\nreturn 0; }}\n")
    program = folder / "layout"
    subprocess.run(
        [*shlex.split(os.environ.get("CC", "cc")), "-w", f"-I{include}", str(source), "-o", str(program)], check=True
    )
    return subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout


needs_cuda_h = pytest.mark.skipif(
    not (INCLUDE / "cuda.h").exists(), reason="needs cuda.h of a CUDA toolkit: set CUDA_HOME"
)


@needs_cuda_h
def test_layouts_are_those_of_cuda_h(tmp_path: Path) -> None:
    assert layout("cuda_abi.h", ROOT / "tools/simgpu", tmp_path) == layout("cuda.h", INCLUDE, tmp_path)


@needs_cuda_h
def test_numbers_are_those_of_cuda_h() -> None:
    real = {
        name: int(value, 0)
        for name, value in re.findall(r"\b(CUDA_ERROR_\w+|CUDA_SUCCESS)\s*=\s*(\d+)", (INCLUDE / "cuda.h").read_text())
    }
    ours = re.findall(r"\b(CUDA_ERROR_\w+|CUDA_SUCCESS)\s*=\s*(\d+)", (ROOT / "tools/simgpu/cuda_abi.h").read_text())
    assert len(ours) > 25
    assert {name: int(value) for name, value in ours} == {name: real[name] for name, _ in ours}
