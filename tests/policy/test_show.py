"""`overlap policy show`: what the library will see, as a policy that does the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from pyshim.policy import files
from pyshim.policy.model import as_text
from pyshim.policy.reader import Reading, read_bytes, read_file
from pyshim.policy.table import fingerprint
from tests.policy.random_policies import POLICIES

BASE = """\
policy: 1
name: base
gpu: ["NVIDIA H100*"]
streams: {raise: {share: 10%}, created_by: [nccl]}
communication:
  kernels: [nccl, "*theirs*", "*more*"]
environment: {KEPT: 1, OVER: 2}
compute:
  - {match: {kernel: gemm, waves: ">=2.5"}, shape: make_room, when: always}
"""
OWN = """\
policy: 1
name: own
extends: base
streams: {created_by: ["libmine.so*"]}
communication:
  kernels: ["a::b", "*theirs*"]
environment: {OVER: "true"}
compute:
  - match: {kernel: "*"}
    shape: {dynamic_shared_memory: 96KiB}
"""


def same(first: Reading, again: Reading) -> None:
    assert first.policy and again.policy, again.findings
    assert fingerprint(again.policy) == fingerprint(first.policy)
    assert again.policy.environment == first.policy.environment


@pytest.mark.parametrize("name", files.names({}))
def test_a_shipped_policy_reads_back_to_the_same_table(name: str, overlap: Any, library: object) -> None:
    first = read_file(files.find(name, {}))
    assert first.policy
    text = as_text(first.policy)
    same(first, read_bytes(text.encode(), "again.yaml"))


@settings(max_examples=100)
@given(POLICIES)
def test_any_policy_reads_back_to_the_same_table(values: dict[str, object]) -> None:
    first = read_bytes(yaml.safe_dump(values, allow_unicode=True).encode(), "first.yaml")
    if first.policy:
        text = as_text(first.policy)
        same(first, read_bytes(text.encode(), "again.yaml"))
        assert yaml.safe_load(text)["policy"] == 1


COMPARISONS = [">=1", ">0", ">=0", "<=1", "<2", "0", "1", "==2.5", "<=0.05", ">0.99", ">=999999999999999", "<1"]


@pytest.mark.parametrize("text", [*COMPARISONS, [">=1", "<=1"], [">0", "<2.25"], [">1", ">=3"]], ids=str)
def test_a_comparison_reads_back_to_the_same_range(text: object) -> None:
    rules = [{"match": {"waves": text}, "shape": "leave"}, {"match": {"kernel": "a", "waves": text}, "shape": "leave"}]
    first = read_bytes(json.dumps({"policy": 1, "name": "a", "compute": rules}).encode(), "first.yaml")
    assert first.policy
    same(first, read_bytes(as_text(first.policy).encode(), "again.yaml"))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")
    (tmp_path / "own.yaml").write_text(OWN, encoding="utf-8")
    return tmp_path


def test_what_it_extends_is_merged(site: Path, overlap: Any, library: object) -> None:
    first = read_file(site / "own.yaml")
    assert first.policy
    done = overlap("policy", "show", str(site / "own.yaml"))
    assert (done.returncode, done.stderr) == (0, "")
    heads = f"# own, as the library sees it; hash {fingerprint(first.policy)}\n# {site}/own.yaml\n"
    assert done.stdout.startswith(f"{heads}policy: 1\nname: own\ngpu: [NVIDIA H100*]\n")
    same(first, read_bytes(done.stdout.encode(), "again.yaml"))
    values = yaml.safe_load(done.stdout)
    assert values["communication"]["kernels"] == ["all", "*1a1b*", "*theirs*", "*more*"]
    assert values["environment"] == {"KEPT": "1", "OVER": "true"}
    assert [rule["when"] for rule in values["compute"]] == ["overlapping", "always"]
    assert values["compute"][1] == {
        "match": {"kernel": ["gemm"], "waves": ">=2.5"}, "shape": "make_room", "keep_at_least": "50%",
        "when": "always",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("gpu", "name"), [("h100", "default"), ("a40", "default"), ("mi250x", "mi250x"), ("mi300x", "mi300x")]
)
def test_auto_is_the_one_that_the_library_takes(gpu: str, name: str, overlap: Any, library: object) -> None:
    text = overlap("policy", "show", "auto", "--gpu", gpu).stdout
    assert re.match(rf"# {name} on (NVIDIA|AMD) .*, as the library sees it; hash [0-9a-f]{{16}}\n", text)
    assert f"\nname: {name}\n" in text


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["auto"], 2, "is several policies: mi250x, mi300x, default"),
        (["h100", "--gpu", "a40"], 1, "is not for NVIDIA A40"),
        (["h100", "--gpu", "h101"], 2, "no GPU is called `h101`"),
        (["h100-papr"], 1, "did you mean `h100-paper`?"),
        (["h100,"], 2, "has an empty name"),
        (["tests/policy/base/mistaken.yaml"], 1, "mistaken.yaml: 2 errors"),
    ],
)
def test_what_cannot_be_shown(arguments: list[str], status: int, said: str, overlap: Any, library: object) -> None:
    done = overlap("policy", "show", *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr and "Traceback" not in done.stderr
