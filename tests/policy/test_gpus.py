"""The one list of known GPUs, and what a policy's `gpu` means by it."""

from __future__ import annotations

from typing import Any

import pytest
from gpu_def import KEYS

from pyshim import _native
from pyshim.errors import OverlapError
from pyshim.policy import gpus
from pyshim.policy.reader import read_bytes


def codes(text: str) -> list[str]:
    return [finding.code for finding in read_bytes(f"policy: 1\nname: mine\n{text}".encode(), "mine.yaml").findings]


def test_all_of_the_librarys_gpus_are_known_with_their_own_architecture(library: Any) -> None:
    found = {gpu.key: gpu for gpu in gpus.known()}
    assert list(found) == KEYS and {"a40", "h100", "mi250x"} < {*KEYS}
    architectures = {key: gpu.architecture for key, gpu in found.items()}
    assert architectures["h200"] == "sm_90" and architectures["b200"] == "sm_100"
    assert (architectures["mi250x"], architectures["mi300x"]) == ("gfx90a", "gfx942")
    assert found["h100"].shared_memory_per_block == 227 * 1024
    assert found["mi250x"].shared_memory == 65536


def test_gpus_of_both_vendors_are_simulated(library: Any) -> None:
    assert {gpu.vendor for gpu in gpus.known() if gpu.simulated} == {"nvidia", "amd"}
    assert not gpus.known()[0]._replace(vendor="another").simulated


@pytest.mark.parametrize(
    ("patterns", "keys"),
    [
        (["gfx90a"], ["mi250x"]),
        (["AMD Instinct MI250X*"], ["mi250x"]),
        (["AMD Instinct*"], ["mi250x", "mi300x"]),
        (["sm_90"], ["h100", "h200"]),
        (["NVIDIA H200"], ["h200"]),
    ],
)
def test_a_policy_names_gpus_by_name_or_architecture(library: Any, patterns: list[str], keys: list[str]) -> None:
    assert [gpu.key for gpu in gpus.matching(patterns)] == keys
    assert codes(f"gpu: {patterns}\n") == []


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ((), {"nvidia", "amd"}),
        (("NVIDIA H100*",), {"nvidia"}),
        (("NVIDIA Future",), {"nvidia"}),
        (("sm_120",), {"nvidia"}),
        (("gfx1100",), {"amd"}),
        (("AMD Instinct MI250X*", "sm_90"), {"nvidia", "amd"}),
        (("*",), {"nvidia", "amd"}),
        (("Something",), {"nvidia", "amd"}),
    ],
)
def test_whose_gpus_a_policy_may_be_for(library: Any, patterns: tuple[str, ...], expected: set[str]) -> None:
    assert gpus.vendors(patterns) == expected


def test_without_the_library_the_rest_of_a_file_is_still_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise OverlapError("not built")

    monkeypatch.setattr(_native, "library", missing)
    gpus.known.cache_clear()
    try:
        text = "gpu: Nothing\nwen: always\ncompute: [{match: {kernel: a}, shape: {dynamic_shared_memory: 1MiB}}]\n"
        assert codes(text) == ["unknown-key"]
    finally:
        gpus.known.cache_clear()
