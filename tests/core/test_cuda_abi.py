"""cuda_abi.h against NVIDIA's cuda.h where that is found, and against what cuda.h 13.0 said where it is not.

The prototypes of driver.def and api.def are compared too: a hook with one argument less corrupts a launch.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable

import pytest

ROOT = Path(__file__).resolve().parents[2]
ABI = ROOT / "shim/vendor/cuda/cuda_abi.h"
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
    (r"\bconst\b|\brestrict\b", ""),
    (r"\bunsigned int\b|\bcuuint32_t\b", "uint32_t"),
    (r"\bcuuint64_t\b|\bunsigned long long\b", "uint64_t"),
    (r"\b(CUdevice|CUresult|int32_t|CUjit_option|CUfunction_attribute|CUdevice_attribute)\b", "int"),
    (r"\b(CUstreamAttrID|CUkernelNodeAttrID|CUfunc_cache|CUgraphNodeType)\b", "int"),
    (r"\b(CUkernelNodeAttrValue|CUstreamAttrValue|CUlaunchAttributeValue)\b", "CUlaunchAttributeValue"),
    (r"\bCUDA_KERNEL_NODE_PARAMS_v1\b", "CUDA_KERNEL_NODE_PARAMS"),  # a prefix of the second
    (r"\b(CUstreamCaptureStatus|CUstreamCaptureMode|CUdriverProcAddressQueryResult)\b", "int"),
    (r"\bstruct\b|\benum\b", ""),
]


def plain(parameters: str) -> list[str]:
    for pattern, word in PLAIN:
        parameters = re.sub(pattern, word, parameters)
    kinds = []
    for parameter in parameters.split(","):
        stars = parameter.count("*") + parameter.count("[")
        words = re.findall(r"\w+", parameter)
        kind = words[0] if len(words) < 2 or words[0] != "unsigned" else " ".join(words[:2])
        kinds.append(kind + "*" * stars)
    return kinds


def rows() -> list[tuple[str, str]]:
    text = (ROOT / "shim/vendor/cuda/driver.def").read_text()
    shared = {
        name: re.sub(r"\\\n", " ", body)
        for name, body in re.findall(r"#define (\w+_PARAMETERS)((?:.*\\\n)*.*)\n", text)
    }
    found = re.findall(r"^DRIVER(?:_LAUNCH)?\((\w+), \w+, (\w+_PARAMETERS|\(.*?\)), ", text, re.M)
    found = [(name, shared.get(parameters, parameters)) for name, parameters in found]
    text = (ROOT / "shim/vendor/cuda/api.def").read_text()
    return found + re.findall(r"^CALL\((\w+), (\(.*\))\)$", text, re.M)


def test_prototypes_are_those_of_the_installed_header(cuda_headers: Path) -> None:
    header = re.sub(r"/\*.*?\*/", "", (cuda_headers / "cuda.h").read_text(errors="replace"), flags=re.S)
    pairs = re.findall(r"CUresult CUDAAPI (\w+)\s*\(([^;]*?)\);", header, re.S)
    theirs: dict[str, list[str]] = {}
    for name, parameters in pairs:
        theirs.setdefault(name, []).append(parameters)
    compared = 0
    for name, parameters in rows():
        declared = theirs.get(name) or theirs.get(re.sub(r"(_ptsz|_v2|WithFlags)$", "", name))
        if not declared:
            assert name in ("cuGetProcAddress", "cuDeviceGetUuid"), f"{name} is not in cuda.h"
            continue
        assert plain(parameters.strip("() ")) in [plain(text) for text in declared], name
        compared += 1
    assert compared >= 35
