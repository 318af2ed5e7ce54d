"""What one screen says besides the answer: where rules stand, and what limits a block."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyshim.explain.answer import Answer, Explainer, PolicyRule, with_usual
from pyshim.explain.request import Mistake, read

RULES = """policy: 1
name: mine
gpu: ["NVIDIA H100*"]
compute:
  - match: {kernel: "gemm*", waves: ">=4"}
    shape: {blocks_per_sm: 50%}
    when: always
  - match: {kernel: "other"}
    shape: leave
  - match: {kernel: [a, b, c, d, e, f, g, "*"], waves: ">=1.5", threads: [">=8", "<=240"]}
    shape: make_room
  - match: {resident_blocks: "<=9"}
    shape: make_room
    keep_at_least: 10%
"""

Whole = Callable[..., Answer]


@pytest.fixture
def whole(explainer: Explainer, request_of: Callable[..., dict[str, Any]]) -> Whole:
    def ask(**changes: Any) -> Answer:
        return explainer.look(read(request_of(**changes)))

    return ask


def rule_of(found: Answer) -> PolicyRule:
    assert found.rule
    return found.rule


def mine(folder: Path, text: str = RULES, name: str = "mine") -> str:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return str(path)


def test_a_rule_is_told_by_file_and_line(whole: Whole, tmp_path: Path) -> None:
    file = mine(tmp_path)
    rule = rule_of(whole(policy=file, kernel="gemm"))
    assert rule.place == f"{file}:5"
    rule = rule_of(whole(policy=file, kernel="x"))
    assert rule.place == f"{file}:10"
    assert (rule_of(whole(policy="h100-paper", kernel="gemm")).place or "").startswith("h100-paper.yaml:")


def test_a_rule_that_is_inherited_is_told_by_the_file_that_has_it(whole: Whole, tmp_path: Path) -> None:
    base = mine(tmp_path)
    own = mine(
        tmp_path, "policy: 1\nname: own\nextends: mine\ncompute:\n  - {match: {kernel: y}, shape: leave}\n", "own"
    )
    assert rule_of(whole(policy=own, kernel="y")).place == f"{own}:5"
    assert rule_of(whole(policy=own, kernel="gemm")).place == f"{base}:5"


def test_what_only_looks_like_a_kernel_of_a_set_is_spared_by_a_rule_in_no_file(whole: Whole, tmp_path: Path) -> None:
    policy = mine(tmp_path, "policy: 1\nname: own\ncompute:\n  - {match: {kernel: gemm}, shape: make_room}\n", "own")
    found = whole(policy=policy, kernel="kernel_gemm_all_gather")
    assert (found.decision.reason, rule_of(found).place) == ("rule_leave", None)


def test_the_gpu_may_be_the_policys_own(explainer: Explainer, request_of: Callable[..., dict[str, Any]]) -> None:
    assert explainer.answer(request_of(gpu=None, policy="h100", kernel="k"))["gpu"] == "h100"
    for policy in ("observe", "auto", "h100,a100"):
        with pytest.raises(Mistake) as caught:
            explainer.answer(request_of(gpu=None, policy=policy, kernel="k"))
        assert caught.value.missing == ("gpu",)


@pytest.mark.parametrize(
    ("gpu", "block", "name"),
    [("h100", (544, 96, 36800), "NCCL"), ("a100", (544, 96, 14144), "NCCL"), ("mi250x", (256, 360, 19808), "RCCL")],
)
def test_communication_that_nobody_told_is_the_newest(
    explainer: Explainer, gpu: str, block: tuple[int, int, int], name: str
) -> None:
    asked = read({"gpu": gpu, "threads": "128", "registers": "64", "kernel": "gemm"})
    request, usual = with_usual(asked, explainer)
    assert name in usual
    assert explainer.look(request).case.communication[:3] == block


def test_communication_that_is_told_in_part_is_a_mistake(explainer: Explainer) -> None:
    asked = read({"gpu": "h100", "threads": "128", "registers": "64", "comm_threads": "288"})
    assert with_usual(asked, explainer) == (asked, "")
    with pytest.raises(Mistake) as caught:
        explainer.look(asked)
    assert caught.value.missing == ("comm_registers",)
