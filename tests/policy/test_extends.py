"""`extends`: which policy is meant, what the two say together, and whose file a mistake is in."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyshim.errors import OverlapError
from pyshim.policy.finding import render
from pyshim.policy.model import Policy
from pyshim.policy.reader import read_file
from pyshim.start import chosen

BASE = """\
policy: 1
name: base
gpu: ["NVIDIA H100*"]
fixed_size: [staged]
streams: {raise: {share: 10%}, created_by: [nccl]}
environment: {KEPT: base, OVER: base}
communication:
  kernels: ["*base_reduce*"]
  libraries: [libbase.so]
compute:
  - {match: {kernel: first}, shape: leave, when: always}
  - {match: {kernel: second}, shape: leave}
"""


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(text if text.startswith("policy") else f"policy: 1\nname: {name}\n{text}", encoding="utf-8")
    return path


def read(path: Path, environment: dict[str, str] | None = None) -> Policy:
    reading = read_file(path, environment=environment)
    assert reading.policy is not None, render(str(path), reading.source, reading.findings)
    return reading.policy


def shown(path: Path, environment: dict[str, str] | None = None) -> str:
    reading = read_file(path, environment=environment)
    assert reading.policy is None
    return render(str(path), reading.source, reading.findings)


def kernels(policy: Policy) -> list[str]:
    return [rule.match.kernels[0] for rule in policy.rules]


def test_a_policy_that_says_nothing_is_the_other_under_its_own_name(tmp_path: Path) -> None:
    base = read(write(tmp_path, "base", BASE))
    child = read(write(tmp_path, "child", "extends: base\n"))
    assert child.name == "child"
    assert child == Policy(**{**vars(base), "name": "child"})


def test_own_rules_come_first_and_own_values_stand_over_the_others(tmp_path: Path) -> None:
    write(tmp_path, "base", BASE)
    child = read(
        write(
            tmp_path,
            "child",
            """\
extends: base
gpu: [sm_90]
fixed_size: [mine]
streams: {raise: off, created_by: libother.so}
environment: {OVER: child, NCCL_DEBUG: INFO}
communication:
  kernels: [mine]
  libraries: [libmine.so]
compute:
  - {match: {kernel: own}, shape: make_room, when: always}
""",
        )
    )
    assert kernels(child) == ["own", "first", "second"]
    assert [rule.when for rule in child.rules] == ["always", "always", "overlapping"]
    assert (child.gpus, child.raise_share) == (("sm_90",), 0)
    assert child.fixed_size == ("mine", "staged")
    assert (child.kernels, child.libraries) == (("mine", "*base_reduce*"), ("libmine.so", "libbase.so"))
    assert child.stream_creators == ("libother.so",)
    assert child.environment == {"KEPT": "base", "OVER": "child", "NCCL_DEBUG": "INFO"}


def test_chains(tmp_path: Path) -> None:
    for index in range(4):
        rule = f"compute: [{{match: {{kernel: k{index}}}, shape: leave}}]\n"
        write(tmp_path, f"p{index}", (f"extends: p{index - 1}\n" if index else "") + rule)
    assert kernels(read(tmp_path / "p3.yaml")) == ["k3", "k2", "k1", "k0"]


def test_a_chain_has_an_end(tmp_path: Path) -> None:
    for index in range(20):
        write(tmp_path, f"p{index}", f"extends: p{index + 1}\n")
    assert "more than 16 policies extend each other" in shown(tmp_path / "p0.yaml")


def test_where_the_other_policy_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the file, then as a --policy name: the user's folders, the shipped ones; never the working directory."""
    monkeypatch.chdir(tmp_path)
    rule = "compute: [{match: {kernel: %s}, shape: leave}]\n"
    write(tmp_path, "other", rule % "here")
    write(tmp_path / "user", "other", rule % "user")
    child = write(tmp_path / "folder", "child", "extends: other\n")
    user = {"OVERLAP_POLICY_PATH": str(tmp_path / "user")}
    assert kernels(read(child, user)) == ["user"]
    assert "there is no policy `other`" in shown(child)
    write(tmp_path / "folder", "other", rule % "beside")
    assert kernels(read(child, user)) == kernels(read(child)) == ["beside"]
    assert kernels(read(write(tmp_path / "folder", "path", "extends: ../other.yaml\n"))) == ["here"]
    assert kernels(read(write(tmp_path / "folder", "ending", "extends: other.yaml\n"))) == ["beside"]
    assert read(write(tmp_path / "folder", "shipped", "extends: h100-paper\n")).gpus == ("NVIDIA H100*",)


def test_a_name_that_nothing_has_is_guessed(tmp_path: Path) -> None:
    text = shown(write(tmp_path, "child", "extends: h100-papr\n"))
    assert f"{tmp_path}/child.yaml:3:10: error[missing-policy]: there is no policy `h100-papr`" in text
    assert "did you mean `h100-paper`?" in text
    assert text.count("error[") == 1


def test_a_circle_is_one_mistake_at_its_place(tmp_path: Path) -> None:
    write(tmp_path, "a", "extends: b\n")
    write(tmp_path, "b", "extends: c\n")
    write(tmp_path, "c", "extends: a\n")
    text = shown(tmp_path / "a.yaml")
    assert text.startswith(f"{tmp_path}/c.yaml:3:10: error[extends-itself]: `a` leads back to where it began")
    assert "a.yaml -> b.yaml -> c.yaml -> a.yaml" in text
    assert text.count("error[") == 1


def test_mistakes_in_the_other_file_bear_its_name_and_its_lines(
    tmp_path: Path, overlap: object, library: object
) -> None:
    write(tmp_path, "base", "wen: always\ngpu: NVIDIA Nothing\n")
    child = write(tmp_path, "child", "extends: base\ngpu: sm_90\n")
    text = shown(child)
    assert f"{tmp_path}/base.yaml:3:1: error[unknown-key]: unknown key `wen`\n  |\n3 | wen: always\n" in text
    assert "child.yaml" not in text
    done = overlap("policy", "check", str(child))  # type: ignore[operator]
    assert done.returncode == 1
    assert [line for line in (3, 4) if f"\n{tmp_path}/base.yaml:{line}:" in f"\n{done.stdout}"] == [3, 4]


def test_the_launcher_names_the_other_file_too(tmp_path: Path) -> None:
    write(tmp_path, "base", "wen: always\n")
    child = write(tmp_path, "child", "extends: base\n")
    with pytest.raises(OverlapError) as caught:
        chosen.load(str(child), {})
    assert caught.value.sentence == f"{tmp_path}/base.yaml:3:1: error[unknown-key]: unknown key `wen`"


def test_a_size_is_compared_with_the_gpus_that_the_other_names(tmp_path: Path, library: object) -> None:
    write(tmp_path, "base", "gpu: NVIDIA A40\n")
    size = "extends: base\ncompute: [{match: {kernel: gemm}, shape: {dynamic_shared_memory: 128KiB}}]\n"
    child = write(tmp_path, "child", size)
    assert [finding.code for finding in read_file(child).findings] == ["size"]
    assert [finding.code for finding in read_file(write(tmp_path, "own", size + "gpu: sm_90\n")).findings] == []
