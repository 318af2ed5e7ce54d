"""What one screen says besides the answer: where rules stand, what they shadow, and what would do better."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyshim.explain import kernels
from pyshim.explain.answer import Explainer
from pyshim.explain.request import Mistake, read
from pyshim.policy.gpus import known

RULES = """policy: 1
name: mine
gpu: ["NVIDIA H100*"]
compute:
  - match: {kernel: "gemm*", blocks: ">=1000"}
    shape: {blocks_per_sm: 50%}
    when: always
  - match: {kernel: "other"}
    shape: leave
  - match: {kernel: [a, b, c, d, e, f, g, "*"], waves: ">=1.5", threads: 128, registers: [">=8", "<=240"]}
    shape: quick_entry
  - match: {resident_blocks: "<=9"}
    shape: make_room
    keep_at_least: 10%
"""

Whole = Callable[..., dict[str, Any]]


@pytest.fixture
def whole(explainer: Explainer, request_of: Callable[..., dict[str, Any]]) -> Whole:
    def ask(**changes: Any) -> dict[str, Any]:
        return explainer.explain(explainer.look(read(request_of(**changes)))).as_json()

    return ask


def mine(folder: Path, text: str = RULES, name: str = "mine") -> str:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return str(path)


def test_a_rule_is_told_by_file_and_line_and_what_it_matches(whole: Whole, tmp_path: Path) -> None:
    file = mine(tmp_path)
    rule = whole(policy=file, kernel="gemm")["rule"]
    assert (rule["place"], rule["match"]) == (f"{file}:5", "kernel gemm*, blocks >=1000")
    rule = whole(policy=file, kernel="x")["rule"]
    assert rule["place"] == f"{file}:10"
    assert rule["match"] == (
        "kernel a or b or c or d or e or 3 more, threads 128, registers >=8 and <=240, waves >=1.5"
    )
    assert whole(policy="h100-paper", kernel="gemm")["rule"]["place"].startswith("h100-paper.yaml:")


def test_a_rule_that_is_inherited_is_told_by_the_file_that_has_it(whole: Whole, tmp_path: Path) -> None:
    base = mine(tmp_path)
    own = mine(
        tmp_path, "policy: 1\nname: own\nextends: mine\ncompute:\n  - {match: {kernel: y}, shape: leave}\n", "own"
    )
    assert whole(policy=own, kernel="y")["rule"]["place"] == f"{own}:5"
    found = whole(policy=own, kernel="gemm")
    assert found["rule"]["place"] == f"{base}:5"
    assert [other["rule"]["place"] for other in found["shadowed"]] == [f"{base}:10", f"{base}:12"]


def test_shadowed_rules_say_what_they_would_say_alone(whole: Whole, tmp_path: Path) -> None:
    found = whole(policy=mine(tmp_path), kernel="gemm")
    assert [other["rule"]["line"] for other in found["shadowed"]] == [10, 12]
    head, *rules = re.split(r"(?m)^(?=  - )", RULES)
    for index, other in ((2, found["shadowed"][0]), (3, found["shadowed"][1])):
        alone = whole(policy=mine(tmp_path, head + rules[index], f"alone{index}"), kernel="gemm")
        for name in ("control", "reason", "dynamic_shared_memory", "blocks"):
            assert other[name] == alone[name]
        assert alone["shadowed"] == []
    assert whole()["shadowed"] == [], "no policy"
    assert whole(policy=mine(tmp_path), kernel="ncclDevKernel_X")["shadowed"] == [], "no rule decides it"


def test_what_only_looks_like_a_kernel_of_a_set_is_spared_by_a_rule_in_no_file(whole: Whole, tmp_path: Path) -> None:
    policy = mine(tmp_path, "policy: 1\nname: own\ncompute:\n  - {match: {kernel: gemm}, shape: make_room}\n", "own")
    found = whole(policy=policy, kernel="kernel_gemm_all_gather")
    assert (found["reason"], found["rule"]["place"]) == ("rule_leave", None)
    assert found["rule"]["match"] == "kernels that compute and communicate at once"


def test_outside_windows_and_costs(whole: Whole, tmp_path: Path) -> None:
    always, windowed = whole(policy=mine(tmp_path), kernel="gemm"), whole(policy="h100-paper", kernel="gemm")
    assert always["outside"] is None and windowed["rule"]["when"] == "always" and windowed["outside"] is None
    file = mine(tmp_path, RULES.replace("    when: always\n", ""), "overlapping")
    assert whole(policy=file, kernel="gemm")["outside"] == "not_overlapping"
    assert whole(policy=file, kernel="gemm", blocks=1)["outside"] is None, "left alone anyway"
    assert whole()["warps"] == {"as_asked": 8, "as_decided": 4, "most": 64}
    assert whole()["computation"]["limit"] == "registers"
    assert whole(threads=1024, registers=16, dynamic_smem=0)["computation"]["limit"] == "warps"


def test_the_gpu_may_be_the_policys_own(explainer: Explainer, request_of: Callable[..., dict[str, Any]]) -> None:
    assert explainer.answer(request_of(gpu=None, policy="h100", kernel="k"))["gpu"] == "h100"
    for policy in ("observe", "auto", "h100,a100"):
        with pytest.raises(Mistake) as caught:
            explainer.answer(request_of(gpu=None, policy=policy, kernel="k"))
        assert caught.value.missing == ("gpu",)


@pytest.mark.parametrize(
    ("gpu", "policy", "threads", "registers", "name"),
    [
        ("h100", None, 544, 96, "NCCL"),
        ("h100", "h100-small-comm", 288, 96, ", NCCL_NTHREADS=256"),
        ("mi250x", None, 256, 360, "RCCL"),
        ("mi250x", "mi250x-small-comm", 256, 280, ", RCCL_UNROLL_FACTOR=0"),
    ],
)
def test_communication_that_nobody_told_is_the_newest_as_the_policy_sets_it(
    explainer: Explainer, gpu: str, policy: str | None, threads: int, registers: int, name: str
) -> None:
    asked = read({"gpu": gpu, "threads": 128, "registers": 64, "policy": policy, "kernel": "gemm"})
    request, usual = kernels.with_usual(asked, explainer)
    assert name in usual
    assert explainer.look(request).case.communication[:2] == (threads, registers)
    (of_survey, *_) = kernels.newest_blocks(next(one for one in known() if one.key == gpu), asked, explainer)
    assert of_survey.takes[:2] == (threads, registers)


def test_communication_that_is_told_in_part_is_a_mistake(explainer: Explainer) -> None:
    asked = read({"gpu": "h100", "threads": 128, "registers": 64, "comm_threads": 288})
    assert kernels.with_usual(asked, explainer) == (asked, "")
    with pytest.raises(Mistake) as caught:
        explainer.look(asked)
    assert caught.value.missing == ("comm_registers",)


def test_every_change_does_what_it_says(
    explainer: Explainer, random_request: Callable[[random.Random], dict[str, Any]]
) -> None:
    """A request changed as it is told gets the control, size and blocks that were promised."""
    source, followed = random.Random(5), dict.fromkeys(("threads", "registers", "bytes", "keep", "shape", "NCCL"), 0)
    knobs = {
        "NCCL_NTHREADS=256 with NCCL_ALGO=Ring": ("comm_threads", 288),
        "NCCL_NTHREADS=128 with NCCL_ALGO=Ring": ("comm_threads", 160),
        "RCCL_UNROLL_FACTOR=0": ("comm_registers", 280),
    }
    for _ in range(1500):
        asked = random_request(source)
        asked.pop("blocks", None)
        for change in explainer.explain(explainer.look(read(asked))).changes:
            then = dict(asked)
            setting = change.setting
            if setting.startswith("shape: make_room, and "):
                setting, then["shape"] = setting.partition(", and ")[2], "make_room"
            number = int((re.findall(r"[\d,]+", setting) or ["0"])[0].replace(",", ""))
            if setting in knobs:
                kind, (name, value) = "NCCL", knobs[setting]
                then[name] = min(value, asked[name])
                assert change.all_ranks
            elif setting.startswith("keep_at_least"):
                kind, then["keep_at_least"] = "keep", number
            elif setting.startswith("shape"):
                kind, then["shape"] = "shape", setting.partition(": ")[2]
            else:
                kind, name = next(
                    pair
                    for pair in (("threads", "threads"), ("registers", "registers"), ("bytes", "dynamic_smem"))
                    if pair[0] in setting
                )
                then[name] = number
            new = explainer.answer(then)
            said = re.fullmatch(r"(\w+) with ([\d,]+) bytes; (\d+) of (\d+) blocks stay", change.does)
            if said:
                numbers = (new["dynamic_shared_memory"], new["blocks"], new["native_blocks"])
                assert numbers == tuple(int(part.replace(",", "")) for part in said.groups()[1:]), (asked, change)
                assert (new["control"], new["reason"]) == ("cap" if said[1] == "room" else said[1], "shaped")
            elif "as launched" in change.does:
                assert new["control"] == "room_already", (asked, change)
            elif "one block has ended" in change.does:
                assert new["control"] == "entry_already", (asked, change)
            else:
                assert new["control"] == "priority", (asked, change)
            followed[kind] += 1
    assert all(count > 10 for count in followed.values()), followed
