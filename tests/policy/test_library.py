"""What a --policy value means, and the shipped policies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gpu_def import KEYS, ROOT

from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.policy import files, gpus
from pyshim.policy.gpus import matching
from pyshim.policy.model import HALF, OBSERVED, Match, Policy, Shape
from pyshim.policy.reader import read_file
from pyshim.policy.table import compile_table
from pyshim.policy.values import Range
from pyshim.start import chosen

SHIPPED = tuple(sorted(path.stem for path in (ROOT / "policies").glob("*.yaml")))
PAPER = ("a100", "a40", "h100", "h200", "mi250x")  # the GPUs of the published method, and one that is like one of them


@pytest.fixture(name="built")
def fixture_built(library: Any) -> Any:
    """The library's functions; a fixture of that name gives them."""
    return library


def write(path: Path, name: str, more: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"policy: 1\nname: {name}\n{more}", encoding="utf-8")
    return path


def names(value: str, path: str = "") -> list[str]:
    return [policy.name for policy in chosen.load(value, {"OVERLAP_POLICY_PATH": path})]


def refused(value: str, path: str = "") -> OverlapError:
    with pytest.raises(OverlapError) as caught:
        chosen.load(value, {"OVERLAP_POLICY_PATH": path})
    assert caught.value.status == LAUNCHER_FAILED
    return caught.value


@pytest.mark.parametrize("value", ["h100-paper", "h100-paper.yaml"])
def test_a_shipped_policy_is_found_anywhere(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert names(value) == ["h100-paper"]


def test_a_file_in_this_folder_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "h100-paper.yaml", "mine")
    assert names("h100-paper.yaml") == ["mine"]
    assert names("h100-paper") == ["h100-paper"], "without .yaml it is a name"


def test_a_value_with_a_slash_is_a_file_whatever_its_ending(tmp_path: Path) -> None:
    assert names(str(write(tmp_path / "mine.txt", "mine"))) == ["mine"]
    missing = refused(str(tmp_path / "observe"))
    assert missing.sentence == f"{tmp_path / 'observe'}: error[missing-file]: no such file"


def test_the_folders_of_the_user_go_before_the_shipped_ones_in_their_order(tmp_path: Path) -> None:
    write(tmp_path / "a" / "observe.yaml", "mine")
    write(tmp_path / "b" / "observe.yaml", "other")
    write(tmp_path / "b" / "second.yaml", "second", "gpu: NVIDIA A40\n")
    path = f"{tmp_path / 'a'}::{tmp_path / 'b'}:{tmp_path / 'none'}"
    assert names("observe", path) == ["mine"]
    assert names("second.yaml", path) == ["second"]
    assert files.names({"OVERLAP_POLICY_PATH": path}) == tuple(sorted({*SHIPPED, "second"}))


def test_a_name_is_looked_up_with_its_ending_only(tmp_path: Path) -> None:
    write(tmp_path / "observe", "mine")
    (tmp_path / "h100-paper.yaml").mkdir()
    assert names("observe", str(tmp_path)) == ["observe"]
    assert names("h100-paper", str(tmp_path)) == ["h100-paper"]


def test_an_unknown_name_is_answered_with_the_closest_or_with_all() -> None:
    error = refused("h100-papr.yaml")
    assert error.sentence == "there is no policy `h100-papr.yaml`"
    assert error.hint == "did you mean `h100-paper`?"
    assert refused("zebra").hint == f"write a file or one of: {', '.join(SHIPPED)}"


@pytest.mark.parametrize("value", ["", ",", "observe,", "observe,,observe"])
def test_an_empty_name_is_refused(value: str) -> None:
    assert "empty name" in refused(value).sentence


def test_a_wrong_file_is_answered_with_its_first_mistake_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.yaml", "bad", "strems: {}\ngpu: {}\n")
    error = refused(str(path))
    assert error.sentence == f"{path}:3:1: error[unknown-key]: unknown key `strems`"
    assert error.hint == f"did you mean `streams`?; for all 2 mistakes: overlap policy check {path}"


def test_warnings_stop_nothing(tmp_path: Path) -> None:
    assert names(str(write(tmp_path / "w.yaml", "w", "gpu: NVIDIA Nothing\n"))) == ["w"]


def test_several_policies_for_different_gpus_are_combined_in_their_order() -> None:
    assert names("h100-paper, a40-paper.yaml,a100-paper") == ["h100-paper", "a40-paper", "a100-paper"]


@pytest.mark.parametrize(
    ("some", "others"),
    [
        ("NVIDIA H100*", "NVIDIA H100*"),
        ("NVIDIA H*", "NVIDIA H200"),
        ("sm_90", "NVIDIA H200"),
        ("NVIDIA Future*", "NVIDIA Future 1"),
        ("[NVIDIA A40, sm_120]", "sm_120"),
    ],
)
def test_two_policies_for_one_gpu_are_refused(some: str, others: str, tmp_path: Path) -> None:
    first = write(tmp_path / "first.yaml", "first", f"gpu: {some}\n")
    second = write(tmp_path / "second.yaml", "second", f"gpu: {others}\n")
    assert "are both for" in refused(f"{first},{second}").sentence
    assert "are both for" in refused(f"{second},{first}").sentence


def test_a_policy_for_every_gpu_stands_behind_those_for_some(tmp_path: Path) -> None:
    assert names("observe") == ["observe"]
    assert names("h100-paper,a40,observe") == ["h100-paper", "a40", "observe"]
    for value in ("observe,h100-paper", "h100,observe,a40", "observe,default", "mi250x,auto"):
        error = refused(value)
        assert "are both for" in error.sentence and "one for every GPU stands last" in str(error.hint)
    every = write(tmp_path / "every.yaml", "every")
    future = write(tmp_path / "future.yaml", "future", "gpu: NVIDIA Future\n")
    assert "are both for" in refused(f"{every},{future}").sentence
    assert names(f"{future},{every}") == ["future", "every"]


def test_auto_carries_the_default_of_every_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names("auto") == list(chosen.DEFAULTS)
    assert names("h100-paper,auto") == ["h100-paper", *chosen.DEFAULTS]
    monkeypatch.setattr(chosen, "DEFAULTS", ("a40-paper", "a100-paper"))
    assert names("auto") == ["a40-paper", "a100-paper"]


@pytest.mark.parametrize("name", ["b200", "l40s", "b200.yaml"])
def test_a_policy_that_is_shipped_no_more_says_what_to_take(name: str) -> None:
    error = refused(name)
    assert error.sentence == f"there is no policy `{name}`"
    assert error.hint == "`default`, which is for every GPU, does what this policy did"


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_policy_is_sound_and_named_as_its_file(name: str) -> None:
    reading = read_file(files.find(name, {}))
    assert reading.findings == ()
    assert reading.policy is not None
    assert reading.policy.name == name
    assert len(compile_table([reading.policy])) < 8192


def test_these_policies_are_shipped() -> None:
    of_gpus = {*KEYS} - {"b200", "l40s"}
    expected = {"default", "observe", *of_gpus, *(f"{key}-paper" for key in PAPER)}
    assert files.names({}) == SHIPPED == tuple(sorted(expected))
    assert set(chosen.DEFAULTS) <= expected


@pytest.mark.usefixtures("library")
def test_a_policy_with_the_name_of_a_gpu_is_the_default() -> None:
    (default,) = chosen.load("default", {})
    for gpu in (gpu for gpu in gpus.known() if gpu.key in SHIPPED):
        (own,) = chosen.load(gpu.key, {})
        assert matching(own.gpus) == (gpu,)
        if gpu.vendor == gpus.NVIDIA:
            assert replace(own, name="default", gpus=()) == default
        else:
            variables = {"TORCH_NCCL_HIGH_PRIORITY": "1"}
            assert own == replace(
                default, name=gpu.key, gpus=own.gpus, stream_creators=("librccl.so*",), environment=variables
            )


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", "default"),
        ("NVIDIA GH200 480GB", "default"),
        ("NVIDIA GB200", "default"),
        ("NVIDIA H800", "default"),
        ("NVIDIA GeForce RTX 4090", "default"),
        ("Tesla V100-SXM2-32GB", "default"),
        ("", "default"),
        ("AMD Instinct MI250X", "mi250x"),
        ("AMD Instinct MI250X/MI250", "mi250x"),
        ("AMD Instinct MI300X", "mi300x"),
        ("AMD Instinct MI210", "default"),
    ],
)
def test_auto_applies_on_every_gpu(built: Any, device: str, expected: str) -> None:
    policies = chosen.load("auto", {})
    index = built.overlap_policy_for(compile_table(policies), device.encode(), b"sm_00")
    assert policies[index].name == expected


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 PCIe", "h100"),
        ("NVIDIA H100 NVL", "h100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA H200 NVL", "h200"),
        ("NVIDIA A100-SXM4-40GB", "a100"),
        ("NVIDIA A100-PCIE-80GB", "a100"),
        ("NVIDIA A100 80GB PCIe", "a100"),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", "a100"),
        ("NVIDIA A40", "a40"),
        ("NVIDIA A4000", None),
        ("NVIDIA L40", None),
        ("NVIDIA L40S", None),
        ("NVIDIA B200", None),
        ("NVIDIA GH200 480GB", None),
        ("Tesla T4", None),
    ],
)
def test_a_policy_of_a_gpu_is_for_all_its_forms(built: Any, device: str, expected: str | None) -> None:
    policies = chosen.load("h100,h200,a100,a40", {})
    index = built.overlap_policy_for(compile_table(policies), device.encode(), b"sm_00")
    assert (None if index == 2**32 - 1 else policies[index].name) == expected


def test_default_raises_and_does_nothing_else_and_observe_changes_nothing() -> None:
    assert chosen.load("default", {}) == (Policy(name="default"),)
    assert chosen.load("observe", {}) == (Policy(name="observe", raise_share=OBSERVED),)


@pytest.mark.parametrize("key", ["h100", "a100", "a40"])
def test_a_paper_policy_is_the_published_method_on_its_gpu_alone(key: str) -> None:
    (policy,) = chosen.load(f"{key}-paper", {})
    assert [gpu.key for gpu in matching(policy.gpus)] == [key]
    assert policy.raise_share == HALF
    assert policy.stream_creators == ("libnccl.so*", "librccl.so*")
    (rule,) = policy.rules
    assert rule.match == Match(kernels=("*",), resident_blocks=Range(2), waves_percent=Range(200))
    assert (rule.shape, rule.when, rule.keep_at_least) == (Shape("percent", 50), "always", 0)
