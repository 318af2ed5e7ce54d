"""--from: what is counted, for which GPU, beside what. Kernels are those of files made by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from footprint_files import bundle, code_object, compressed, cubin, fatbin

from pyshim.errors import OverlapError
from pyshim.explain import kernels
from pyshim.explain import survey as surveys
from pyshim.explain.answer import Explainer
from pyshim.explain.policies import rule_text
from pyshim.explain.screen import Table
from pyshim.explain.survey import Question, Survey, survey
from pyshim.footprints import collectives
from pyshim.policy.gpus import known

AMD = "hipv4-amdgcn-amd-amdhsa--"
# Beside RCCL with unroll 4 (360 registers, 19,808 bytes): name, registers, AGPR offset, more of the metadata.
ROOM = ("room", 64, 64, {".group_segment_fixed_size": 22000})
WINDOW = ("Cijk_window", 128, 128, {".group_segment_fixed_size": 30000})
FEW = ("Cijk_few", 64, 64, {".group_segment_fixed_size": 1024})
NEVER = ("Cijk_never", 256, 128, {})
RCCL = [(f"_Z23ncclDevKernel_Generic_{n}v", registers, 248, {}) for n, registers in ((1, 280), (2, 280), (4, 360))]
RCCL_942 = [(f"_Z23ncclDevKernel_Generic_{n}v", registers, 248, {}) for n, registers in ((1, 280), (2, 320), (4, 512))]

Ask = Callable[..., Survey]


@pytest.fixture
def ask(explainer: Explainer) -> Ask:
    def asked(*files: Path, gpu: str | None = None, values: Mapping[str, object] | None = None, **more: Any) -> Survey:
        gpus = [one for one in known() if gpu in (None, one.key)]
        return survey(Question([str(file) for file in files], gpus, values or {}, **more), explainer)

    return asked


@pytest.fixture
def blas(tmp_path: Path) -> Path:
    path = tmp_path / "blas.co"
    path.write_bytes(compressed(bundle({f"{AMD}gfx90a": code_object([ROOM, WINDOW, FEW, NEVER])})))
    return path


@pytest.fixture
def rccl(tmp_path: Path) -> Path:
    path = tmp_path / "librccl.so"
    images = {f"{AMD}gfx90a": code_object(RCCL), f"{AMD}gfx942": code_object(RCCL_942, flags=0x4C)}
    path.write_bytes(compressed(bundle(images)))
    return path


def reasons(found: Survey) -> dict[tuple[str, str], dict[str, int]]:
    return {(group.gpu.key, group.beside.name): dict(group.reasons()) for group in found.groups}


def test_the_answers_are_those_of_single_requests(ask: Ask, blas: Path, explainer: Explainer) -> None:
    """Both ways in which RCCL is launched: with 32,832 bytes more no size makes room."""
    found = ask(blas)
    ext, plain = "RCCL 7.2.4 unroll 4 by hipExtLaunchKernel", "RCCL 7.2.4 unroll 4 by hipLaunchKernel"
    assert reasons(found) == {
        ("mi250x", ext): {"room_already": 1, "shaped": 1, "below_keep": 1, "no_room_registers": 1},
        ("mi250x", plain): {"priority": 1, "no_room_shared_memory": 2, "no_room_registers": 1},
    }
    assert [group.beside.takes for group in found.groups] == [
        (256, 360, 19808, 0, 0, 106),
        (256, 360, 19808, 32832, 0, 106),
    ]
    for group in found.groups:
        for answer in group.answers:
            footprint, beside = answer.kernel.footprint, group.beside.takes
            single = explainer.answer(
                {
                    "gpu": "mi250x",
                    "threads": 256,
                    "registers": footprint.registers,
                    "static_smem": footprint.static_shared_memory,
                    "sgprs": 106,
                    **dict(zip(("comm_threads", "comm_registers", "comm_static_smem", "comm_dynamic_smem"), beside)),
                    "comm_sgprs": 106,
                }
            )
            assert (answer.decision.reason, answer.decision.dynamic) == (
                single["reason"],
                single["dynamic_shared_memory"],
            )
            assert (answer.decision.control, answer.decision.blocks) == (single["control"], single["blocks"])


def test_sets_and_what_is_left_out(ask: Ask, blas: Path, rccl: Path) -> None:
    found = ask(blas, rccl)
    first = found.groups[0]
    assert first.sets() == [("gemm", 3), ("other", 1)]
    assert sum(first.reasons("gemm").values()) == 3
    assert first.left_out("communication") == 3
    assert [group.gpu.key for group in found.groups] == ["mi250x", "mi250x", "mi300x", "mi300x"]
    assert not found.groups[2].reasons(), "its only kernels communicate"


def test_communication_of_a_file(ask: Ask, blas: Path, rccl: Path) -> None:
    """The unroll factor that RCCL takes by itself differs by GPU."""
    found = ask(blas, rccl, comm_file=str(rccl))
    assert [(group.gpu.key, group.beside.name, group.beside.takes[1]) for group in found.groups] == [
        ("mi250x", "librccl.so unroll 4 by hipExtLaunchKernel", 360),
        ("mi250x", "librccl.so unroll 4 by hipLaunchKernel", 360),
        ("mi300x", "librccl.so unroll 2 by hipExtLaunchKernel", 320),
        ("mi300x", "librccl.so unroll 2 by hipLaunchKernel", 320),
    ]
    (other,) = ask(blas, comm_file=str(rccl), comm_pattern="*Generic_[12]*").groups
    assert other.beside.takes == (256, 280, 19808, 0, 0, 106)
    values = {"comm_threads": 512, "comm_dynamic_smem": 100}
    (told,) = ask(blas, comm_file=str(rccl), comm_pattern="*Generic_[12]*", values=values).groups
    assert told.beside.takes == (512, 280, 19808, 100, 0, 106)


def test_communication_as_told(ask: Ask, blas: Path) -> None:
    (group,) = ask(blas, values={"comm_threads": 64, "comm_registers": 8}).groups
    assert (group.beside.name, group.beside.takes) == ("as told", (64, 8, 0, 0, 0, 0))


def test_communication_as_the_policy_says(ask: Ask, blas: Path, tmp_path: Path) -> None:
    policy = tmp_path / "mine.yaml"
    footprint = "{threads: 128, registers: 40, static_shared_memory: 5, dynamic_shared_memory: 6}"
    policy.write_text(f"policy: 1\nname: mine\ngpu: gfx90a\ncommunication: {{footprint: {footprint}}}\n")
    (group,) = ask(blas, values={"policy": str(policy)}).groups
    assert (group.beside.name, group.beside.takes) == (f"as {policy} says", (128, 40, 5, 6, 0, 0))
    other = tmp_path / "other.yaml"
    other.write_text(policy.read_text().replace("gfx90a", "gfx942"))
    assert len(ask(blas, values={"policy": str(other)}).groups) == 2, "it is for another GPU"


def test_a_pattern_and_a_rule(ask: Ask, blas: Path) -> None:
    assert {a.kernel.footprint.kernel for a in ask(blas, pattern="gemm").groups[0].answers} == {
        "Cijk_window",
        "Cijk_few",
        "Cijk_never",
    }
    (few,) = ask(blas, pattern="*few", values={"keep_at_least": 0}).groups[0].answers
    assert (few.decision.control, few.decision.reason) == ("make_room", "shaped")
    found = ask(blas, pattern="*few", values={"policy": "mi250x"})
    assert rule_text(found.request) == "the first of mi250x that matches"
    assert found.groups[0].answers[0].decision.reason == "no_rule", "it shapes nothing"


def test_one_kernel_on_one_gpu_is_a_request_of_its_own(ask: Ask, blas: Path, explainer: Explainer) -> None:
    """Beside the first block of communication; what is said beside the others is told."""
    found = ask(blas, pattern="*window", gpu="mi250x")
    only = found.only()
    assert only is not None
    request, others = only
    assert (request.gpu, request.kernel, request.computation.registers) == ("mi250x", "Cijk_window", 128)
    assert explainer.look(request).decision.reason == found.groups[0].answers[0].decision.reason == "shaped"
    assert others == "beside RCCL 7.2.4 unroll 4 by hipLaunchKernel: no_room_shared_memory"
    assert ask(blas, pattern="gemm", gpu="mi250x").only() is None
    assert ask(blas, pattern="gemm").told() == "3 kernels on 1 GPU"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("sgemm_128x64_nn", "sgemm_128x64_nn"),
        ("_Z4gemmPf", "gemm"),
        ("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
         "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
        ("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_",
         "at::native::vectorized_elementwise_kernel<CUDAFunctor_add>"),
        ("_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiEEENS1_13CollectiveMmaEEEEEvT_",
         "cutlass::device_kernel<GemmUniversal, CollectiveMma>"),
        ("_ZN8internal5gemvx6kernelIiiLi9ELb0E18cublasGemvTensorEEvT_", "internal::gemvx::kernel"),
        ("_Z", ""),
        ("_Z99x", "_Z99x"),
    ],
)  # fmt: skip
def test_names_for_people(name: str, shown: str) -> None:
    assert kernels.readable(name) == (shown or name)


def test_rows_are_told_once_and_counted(ask: Ask, tmp_path: Path) -> None:
    """Many kernels alike are one row; what is more than fits is counted."""
    path = tmp_path / "many.co"
    alike = [(f"_ZN1a{len(name)}{name}EPf", 64, 64, {}) for name in ("kernel",)]
    others = [(f"k{index}", 8 + 8 * index, 8 + 8 * index, {}) for index in range(30)]
    path.write_bytes(bundle({f"{AMD}gfx90a": code_object([*alike, *others], apart=True)}))
    values = {"comm_threads": 64, "comm_registers": 8}
    parts = list(surveys.screen(ask(path, gpu="mi250x", values=values)))
    tables = [part for part in parts if isinstance(part, Table) and "kernel" in part.heads]
    assert len(tables) == 1 and len(tables[0].rows) == 12
    assert any(getattr(part, "text", "").startswith("... and 19 more such rows") for part in parts)
    parts = list(surveys.screen(ask(path, gpu="mi250x", pattern="k*", values=values)))
    (table,) = (part for part in parts if isinstance(part, Table) and "kernel" in part.heads)
    assert len(table.rows) == 24


def test_launch_bounds(ask: Ask, tmp_path: Path) -> None:
    """A kernel without one is not planned until --threads says what it is launched with."""
    path = tmp_path / "k.cubin"
    path.write_bytes(cubin(0))
    silent = ask(path, gpu="h100").groups[0]
    assert (silent.left_out("no_threads"), dict(silent.reasons())) == (1, {})
    (answer,) = ask(path, gpu="h100", values={"threads": 128}).groups[0].answers
    assert (answer.threads, answer.planned) == (128, True)


def test_the_image_for_the_very_chip_is_taken(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "k.fatbin"
    path.write_bytes(
        fatbin(
            [
                (2, 80, 0x11, cubin(0, architecture=80, registers=10), 0),
                (2, 90, 0x11, cubin(0, registers=20), 0),
                (2, 90, 0x100011, cubin(0, registers=30), 0),
            ]
        )
    )
    found = ask(path, values={"threads": 128})
    taken = {group.gpu.key: [a.kernel.footprint.registers for a in group.answers] for group in found.groups}
    assert taken == {"a40": [10], "l40s": [10], "a100": [10], "h100": [30], "h200": [30]}
    assert found.other_images == []
    assert ask(path, gpu="a100", values={"threads": 128}).other_images == ["sm_90", "sm_90a"]


def test_the_usual_mode_is_taken(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "k.co"
    more = ("only", 32, 32, {})
    images = {f"{AMD}gfx90a:xnack+": code_object([FEW, more]), f"{AMD}gfx90a:xnack-": code_object([FEW])}
    path.write_bytes(bundle(images))
    answers = ask(path).groups[0].answers
    assert {(a.kernel.footprint.kernel, a.kernel.footprint.architecture) for a in answers} == {
        ("Cijk_few", "gfx90a"),
        ("only", "gfx90a:xnack+"),
    }


def test_a_folder(ask: Ask, blas: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no GPU code")
    found = ask(tmp_path)
    assert found.files == [str(blas)]
    (tmp_path / "inside").mkdir()
    with pytest.raises(OverlapError, match=r"inside: this folder has no \*.co, "):
        ask(tmp_path / "inside")


def test_what_cannot_be_asked(ask: Ask, blas: Path, rccl: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.co"
    other.write_bytes(bundle({f"{AMD}gfx1100": code_object([FEW], target="gfx1100")}))
    for error, asked in (
        (r"no kernel in it runs on a GPU that is known: its images are for gfx1100$", lambda: ask(other)),
        (r"runs on mi300x \(gfx942\): its images are for gfx90a$", lambda: ask(blas, gpu="mi300x")),
        (r"^no kernel in it is called like nix$", lambda: ask(blas, pattern="nix")),
        (
            r"librccl.so: no kernel in it is called like nix$",
            lambda: ask(blas, comm_file=str(rccl), comm_pattern="nix"),
        ),
        (r"blas.co: no collective of NCCL or RCCL that mi250x runs$", lambda: ask(blas, comm_file=str(blas))),
        (r"nothing.so: cannot be read: No such file", lambda: ask(tmp_path / "nothing.so")),
    ):
        with pytest.raises(OverlapError, match=error) as caught:
            asked()
        assert caught.value.status == 2


def test_a_missing_package_is_one_error_with_the_command(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "k.fatbin"
    path.write_bytes(fatbin([(2, 90, 0x8011, b"packed", 100)]))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(OverlapError, match=r"its images are compressed$") as caught:
        ask(path)
    assert (caught.value.hint, caught.value.status) == ("pip install zstandard", 2)


def test_json_holds_every_kernel(ask: Ask, blas: Path) -> None:
    found = surveys.as_json(ask(blas))
    assert list(found["communication"]) == ["A", "B"]
    assert found["communication"]["B"]["dynamic_shared_memory"] == 32832
    first = found["groups"][0]
    assert (first["gpu"], first["beside"], first["kernels"], len(first["answers"])) == ("mi250x", "A", 4, 4)
    assert sum(first["reasons"].values()) == 4
    answer = {a["kernel"]: a for a in first["answers"]}["Cijk_never"]
    assert (answer["registers"], answer["threads"], answer["reason"]) == (256, 256, "no_room_registers")


def test_tables_add_up(ask: Ask, blas: Path) -> None:
    found = ask(blas)
    heads, rows = surveys.counts(found)
    assert heads[:3] == ("GPU", "beside", "kernels")
    for row in rows:
        assert int(row[2]) == sum(map(int, row[3:])) == 4
    for row in surveys.sets(found):
        assert int(row[3]) == sum(map(int, row[4:]))


@pytest.mark.parametrize("gpu", known(), ids=lambda gpu: gpu.key)
def test_every_gpu_has_a_usual_collective(gpu: Any) -> None:
    """RCCL's on both ways in which it is launched."""
    usual = [one for one in collectives.newest(gpu.architecture) if one.usual]
    assert [one.path for one in usual] == (["hipExtLaunchKernel", "hipLaunchKernel"] if gpu.vendor == "amd" else [""])
    assert all(one.threads and one.registers and one.static for one in usual)
