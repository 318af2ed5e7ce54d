from __future__ import annotations

from pathlib import Path

import pytest

from pyshim.launch import driver, plan, policies
from pyshim.launch.variables import Asked, could_apply, decide, nccl_files

NONE = "/nonexistent"


def asked(policy: str, environment: dict[str, str], all_ranks: dict[str, str] | None = None, **more: object) -> Asked:
    base = {"gpus": ("NVIDIA H100*",), "vendors": ("nvidia",), **more}
    return Asked(policy, environment=environment, all_ranks_environment=all_ranks or {}, **base)  # type: ignore[arg-type]


def test_nothing_asked_for_is_nothing_set_and_nothing_said() -> None:
    assert decide([asked("a", {})], {}, True, NONE) == decide([], {}, False, NONE)
    assert not any(decide([asked("a", {})], {}, True, NONE))


def test_what_must_be_equal_on_all_ranks_waits_for_the_users_word() -> None:
    policy = asked("a", {"NCCL_DEBUG": "INFO"}, {"NCCL_ALGO": "Ring"})
    without = decide([policy], {}, False, NONE)
    assert (without.own, without.all_ranks) == ({"NCCL_DEBUG": "INFO"}, {})
    assert without.left == ("NCCL_ALGO=Ring waits for --all-ranks",)
    with_it = decide([policy], {}, True, NONE)
    assert (with_it.own, with_it.all_ranks, with_it.left) == ({"NCCL_DEBUG": "INFO"}, {"NCCL_ALGO": "Ring"}, ())


@pytest.mark.parametrize("all_ranks", [False, True])
@pytest.mark.parametrize("value", ["Tree", ""])
def test_the_users_variable_stands_even_where_it_is_empty(all_ranks: bool, value: str) -> None:
    policy = asked("a", {"NCCL_DEBUG": "INFO"}, {"NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple"})
    base = {"NCCL_ALGO": value, "NCCL_DEBUG": "WARN"}
    decided = decide([policy], base, all_ranks, NONE)
    assert decided.own == {}
    assert decided.all_ranks == ({"NCCL_PROTO": "Simple"} if all_ranks else {})
    said = decided.left + decided.left_of_all_ranks
    assert "NCCL_DEBUG is left as it is set: WARN" in said
    assert f"NCCL_ALGO is left as it is set: {value}" in said


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
    policy = asked("a", {"NCCL_DEBUG": "INFO"}, {"NCCL_ALGO": "Ring", "NCCL_NTHREADS": "256", "NCCL_PROTO": "LL"})
    decided = decide([policy], base, True, str(etc))
    assert (decided.own, decided.all_ranks) == ({}, {"NCCL_PROTO": "LL"})
    assert decided.left == (f"NCCL_DEBUG is left to {etc}, which sets it",)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe=1\n", b"=\n", b"A" * 100])
def test_an_odd_file_is_no_obstacle(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "conf"
    path.write_bytes(content)
    nccl_files({"NCCL_CONF_FILE": str(path)}, str(tmp_path))
    nccl_files({"NCCL_CONF_FILE": "a\0b"}, NONE)


def test_several_policies_set_only_what_all_of_them_ask_for() -> None:
    policies = [
        asked("a", {"SAME": "1", "OTHER": "1", "ONE": "1"}, {"NCCL_ALGO": "Ring"}),
        asked("b", {"SAME": "1", "OTHER": "2"}),
    ]
    decided = decide(policies, {}, True, NONE)
    assert (decided.own, decided.all_ranks) == ({"SAME": "1"}, {})
    why = "is not set, because it is not known yet which policy will apply"
    assert decided.left == (f"OTHER {why}: OTHER=1 in a; OTHER=2 in b", f"ONE {why}: ONE=1 in a; not in b")
    assert decided.left_of_all_ranks == (f"NCCL_ALGO {why}: NCCL_ALGO=Ring in a; not in b",)


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
    assert driver.vendors({}, str(tmp_path)) == frozenset()
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kfd").touch()
    assert driver.vendors({}, str(tmp_path)) == {"amd"}
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64" / "libcuda.so.1").touch()
    assert driver.vendors({}, str(tmp_path)) == {"amd", "nvidia"}


def test_ranks_do_not_differ_because_one_of_them_has_no_library(tmp_path: Path, library: object) -> None:
    (tmp_path / "p.yaml").write_text(
        "policy: 1\nname: p\nenvironment: {A: 1}\ncommunication: {all_ranks_environment: {NCCL_ALGO: Ring}}\n"
    )
    request = plan.Request(policy=str(tmp_path / "p.yaml"), all_ranks=True)
    made = plan.make(request, {"HOME": str(tmp_path)}, str(tmp_path / "missing.so"))
    from pyshim.launch.environment import environment, variables

    assert environment({}, made.settings) == {"NCCL_ALGO": "Ring"}
    assert variables({}, made.settings) == {"NCCL_ALGO": "Ring"}


@pytest.mark.parametrize(
    ("vendors", "own"),
    [({"amd"}, {"TORCH_NCCL_HIGH_PRIORITY": "1"}), ({"nvidia"}, {}), ({"amd", "nvidia"}, {}), (set(), {})],
)
def test_without_a_policy_pytorch_is_asked_for_streams_of_high_priority_on_amd(vendors: set[str], own: object) -> None:
    chosen = policies.choose(None, {})
    assert decide(could_apply(chosen.asked, frozenset(vendors), None), {}, False, NONE).own == own
