from __future__ import annotations

from pathlib import Path

import pytest

from pyshim.start import plan, program
from pyshim.start.chosen import nccl_files
from pyshim.start.environment import PolicySettings
from pyshim.start.plan import could_apply, decide

NONE = "/nonexistent"


def asked(policy: str, environment: dict[str, str], **more: object) -> PolicySettings:
    base = {"gpus": ("NVIDIA H100*",), "vendors": ("nvidia",), **more}
    return PolicySettings(policy, environment=environment, **base)  # type: ignore[arg-type]


def test_nothing_asked_for_is_nothing_set_and_nothing_said() -> None:
    assert decide([asked("a", {})], {}, NONE) == decide([], {}, NONE) == ({}, [])


@pytest.mark.parametrize("value", ["WARN", ""])
def test_the_users_variable_stands_even_where_it_is_empty(value: str) -> None:
    wanted, left = decide([asked("a", {"NCCL_DEBUG": "INFO", "OTHER": "1"})], {"NCCL_DEBUG": value}, NONE)
    assert wanted == {"OTHER": "1"}
    assert left == [f"NCCL_DEBUG is left as it is set: {value}"]


def test_a_file_of_nccls_is_the_users_word_too(tmp_path: Path) -> None:
    home, conf, etc = tmp_path / "home", tmp_path / "my.conf", tmp_path / "etc.conf"
    home.mkdir()
    (home / ".nccl.conf").write_text("# NCCL_PROTO=LL\nNCCL_ALGO=Tree\nodd line\n")
    conf.write_text("NCCL_NTHREADS=512")
    etc.write_text("NCCL_DEBUG=WARN\nNCCL_ALGO=Ring\n")
    base = {"HOME": str(home), "NCCL_CONF_FILE": str(conf)}
    files = nccl_files(base, str(etc))
    assert {name: files[name] for name in ("NCCL_ALGO", "NCCL_NTHREADS", "NCCL_DEBUG")} == {
        "NCCL_ALGO": str(home / ".nccl.conf"),
        "NCCL_NTHREADS": str(conf),
        "NCCL_DEBUG": str(etc),
    }
    assert "NCCL_PROTO" not in files and "# NCCL_PROTO" not in files
    wanted, left = decide([asked("a", {"NCCL_DEBUG": "INFO", "OTHER": "1"})], base, str(etc))
    assert wanted == {"OTHER": "1"}
    assert left == [f"NCCL_DEBUG is left to {etc}, which sets it"]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe=1\n", b"=\n", b"A" * 100])
def test_an_odd_file_is_no_obstacle(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "conf"
    path.write_bytes(content)
    nccl_files({"NCCL_CONF_FILE": str(path)}, str(tmp_path))
    nccl_files({"NCCL_CONF_FILE": "a\0b"}, NONE)


def test_several_policies_set_only_what_all_of_them_ask_for() -> None:
    policies = [
        asked("a", {"SAME": "1", "OTHER": "1", "ONE": "1"}),
        asked("b", {"SAME": "1", "OTHER": "2"}),
    ]
    wanted, left = decide(policies, {}, NONE)
    assert wanted == {"SAME": "1"}
    why = "is not set, because it is not known yet which policy will apply"
    assert left == [f"OTHER {why}: OTHER=1 in a; OTHER=2 in b", f"ONE {why}: ONE=1 in a; not in b"]


def test_only_policies_that_could_apply_here_count() -> None:
    nvidia = asked("h100", {})
    amd = asked("mi250x", {"HIGH": "1"}, gpus=("AMD Instinct MI250X*",), vendors=("amd",))
    every = asked("every", {}, gpus=(), vendors=("amd", "nvidia"))
    three = [nvidia, amd, every]

    def names(vendors: frozenset[str] | None, gpu: tuple[str, str] | None = None) -> list[str]:
        return [item.policy for item in could_apply(three, vendors, gpu)]

    assert names(frozenset({"nvidia"})) == ["h100", "every"]
    assert names(frozenset({"amd"})) == ["mi250x"], "of AMD, where `default` stands behind"
    assert names(frozenset({"amd", "nvidia"})) == names(frozenset()) == names(None) == ["h100", "mi250x", "every"]
    assert names(None, ("NVIDIA H100 80GB HBM3", "sm_90")) == ["h100"]
    assert names(None, ("NVIDIA A40", "sm_86")) == ["every"]


def test_whose_drivers_are_here(tmp_path: Path) -> None:
    assert program.vendors({}, str(tmp_path)) == frozenset()
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kfd").touch()
    assert program.vendors({}, str(tmp_path)) == {"amd"}
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64" / "libcuda.so.1").touch()
    assert program.vendors({}, str(tmp_path)) == {"amd", "nvidia"}


@pytest.mark.parametrize(
    ("vendors", "own"),
    [({"amd"}, {"TORCH_NCCL_HIGH_PRIORITY": "1"}), ({"nvidia"}, {}), ({"amd", "nvidia"}, {}), (set(), {})],
)
def test_without_a_policy_pytorch_is_asked_for_streams_of_high_priority_on_amd(vendors: set[str], own: object) -> None:
    chosen = plan.choose(None, {})
    assert decide(could_apply(chosen.asked, frozenset(vendors), None), {}, NONE)[0] == own
