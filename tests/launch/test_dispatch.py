"""Answers of `overlap probe` in the cache folder: what is believed, what is not, and that nothing in there can harm."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any, Callable

import pytest

from pyshim import _native
from pyshim.launch import dispatch, driver, policies
from pyshim.launch.dispatch import Found, Known
from pyshim.policy import layout
from pyshim.policy.model import Policy
from tests.launch.machine_files import VERSION, write_driver, write_gpu

H200 = Found("NVIDIA H200", "sm_90", VERSION, "hold", "2026-11-21")
Environment = dict[str, str]


@pytest.fixture
def here(tmp_path: Path) -> Environment:
    """A user with a cache folder, and a machine below tmp_path with a driver."""
    write_driver(tmp_path)
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def gpu(tmp_path: Path) -> Callable[[str, str], None]:
    return partial(write_gpu, tmp_path)


def rule(environment: Environment, root: Path, *patterns: str) -> str | None:
    found = Known(environment, str(root)).of(patterns)
    return found and found.rule


def test_what_is_kept_is_found(here: Environment, tmp_path: Path) -> None:
    assert dispatch.answers(here, str(tmp_path)) == ()
    file = Path(dispatch.keep(H200, {"trials": 20}, here))
    assert file == tmp_path / "cache/overlap-run/dispatch" / VERSION / "NVIDIA%20H200.json"
    assert json.loads(file.read_text())["trials"] == 20
    assert dispatch.answers(here, str(tmp_path)) == (H200,)
    assert [path.name for path in file.parent.iterdir()] == [file.name], "nothing is left over"
    later = H200._replace(date="2026-11-22")
    dispatch.keep(later, {}, here)
    assert dispatch.answers(here, str(tmp_path)) == (later,)


def test_two_gpus_of_one_name_that_contradict_each_other(here: Environment, tmp_path: Path) -> None:
    dispatch.keep(H200, {}, here)
    for again in ("drain", "drain", "hold"):  # also what was said first comes too late
        with pytest.raises(dispatch.Contradiction, match="answered otherwise before, under the same driver"):
            dispatch.keep(H200._replace(rule=again), {}, here)
        assert dispatch.answers(here, str(tmp_path)) == ()
    assert dispatch.forget(here) == 1
    dispatch.keep(H200._replace(rule="drain"), {}, here)
    assert rule(here, tmp_path, "NVIDIA H200") == "drain"


def test_whose_it_is(here: Environment, tmp_path: Path, gpu: Any) -> None:
    dispatch.keep(H200, {}, here)
    gpu("0000:00:06.0", "NVIDIA H200")
    for patterns in (("NVIDIA H200*",), ("sm_90",), (), ("NVIDIA A40", "NVIDIA H?00")):
        assert rule(here, tmp_path, *patterns) == "hold"
    for patterns in (("NVIDIA H100*",), ("sm_80",), ("nvidia h200",)):
        assert rule(here, tmp_path, *patterns) is None
    dispatch.keep(Found("NVIDIA H100 PCIe", "sm_90", VERSION, "backfill", "2026-11-21"), {}, here)
    assert rule(here, tmp_path, "sm_90") is None, "they disagree"
    assert rule(here, tmp_path, "NVIDIA H200*") == "hold"


def test_another_driver(here: Environment, tmp_path: Path) -> None:
    dispatch.keep(H200._replace(driver="570.1"), {}, here)
    assert rule(here, tmp_path, "NVIDIA H200") is None
    assert [found.driver for found in dispatch.of_other_drivers(here, str(tmp_path))] == ["570.1"]
    (tmp_path / driver.PROC[1:]).unlink()
    assert rule(here, tmp_path, "NVIDIA H200") is None, "no driver, or one that says nothing"


def test_simulated_drivers_are_one_for_each_rule(here: Environment, tmp_path: Path) -> None:
    assert driver.identity(here, str(tmp_path)) == VERSION
    for value, said in (("h100:drain,2", "drain"), ("h100", "hold"), ("", "hold"), ("h100+a40:backfill", "backfill")):
        assert driver.identity({**here, "SIMGPU": value}, str(tmp_path)) == f"simulated {said}"


def test_a_gpu_that_was_not_asked_keeps_others_from_its_rule(here: Environment, tmp_path: Path, gpu: Any) -> None:
    dispatch.keep(H200, {}, here)
    gpu("0000:00:06.0", "NVIDIA H200")
    assert rule(here, tmp_path, "sm_90") == "hold"
    gpu("0000:00:07.0", "NVIDIA A40")
    assert rule(here, tmp_path, "NVIDIA H200*") == "hold"
    for patterns in ((), ("sm_90",), ("NVIDIA *",), ("[s]m_90",), ("?m_*",), ("NVIDIA H200", "s*_86")):
        assert rule(here, tmp_path, *patterns) is None


def test_where_the_kernel_module_does_not_say_which_gpus_there_are(here: Environment, tmp_path: Path, gpu: Any) -> None:
    """Only what must be an answered GPU gets its answer."""
    dispatch.keep(H200, {}, here)

    def sure() -> None:
        assert driver.models(here, str(tmp_path)) is None
        assert rule(here, tmp_path, "NVIDIA H200") == rule(here, tmp_path, "NVIDIA H200*") == "hold"
        for patterns in ((), ("sm_90",), ("*",), ("NVIDIA *",), ("NVIDIA H200", "NVIDIA A40"), ("NVIDIA H20?",)):
            assert rule(here, tmp_path, *patterns) is None

    sure()  # no such folder
    (tmp_path / driver.GPUS[1:]).mkdir()
    sure()
    gpu("0000:00:06.0", "NVIDIA H200")
    assert rule(here, tmp_path, "sm_90") == "hold"
    (tmp_path / driver.GPUS[1:] / "0000:00:07.0").mkdir()  # nothing in it
    sure()
    assert driver.models({**here, "SIMGPU": "h200"}, str(tmp_path)) == {}


@pytest.mark.parametrize(("name", "answered"), [("NVIDIA H200 MIG 1g.18gb", None), ("NVIDIA H200 as a guest", "hold")])
def test_a_part_of_a_gpu_does_not_answer_for_it(
    name: str, answered: str | None, here: Environment, tmp_path: Path, gpu: Any
) -> None:
    gpu("0000:00:06.0", "NVIDIA H200")
    dispatch.keep(H200._replace(gpu=name, model="NVIDIA H200"), {}, here)
    assert rule(here, tmp_path, "NVIDIA H200*") == answered


def break_link(file: Path) -> None:
    copy = file.with_name("elsewhere")
    file.rename(copy)
    file.symlink_to(copy)


def break_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def break_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def write(text: bytes) -> Callable[[Path], Any]:
    return lambda file: file.write_bytes(text)


def say(**fields: object) -> Callable[[Path], Any]:
    return lambda file: file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


@pytest.mark.parametrize(
    "break_it",
    [
        write(b""),
        write(b"\xff\xfe{"),
        write(b"[" * 70_000),
        write(b"[]"),
        write(b"null"),
        write(b'{"version": 1}'),
        say(version=2),
        say(rule="fill"),
        say(rule="contradictory"),
        say(rule=["hold"]),
        say(gpu=7),
        say(gpu="NVIDIA H100"),
        say(gpu="NVIDIA H200\ud800"),
        say(model="\x1b[31m"),
        write(b'{"version": 1' + b"0" * 60_000 + b"}"),
        say(driver="570.1"),
        break_link,
        break_folder,
        break_pipe,
        lambda file: file.unlink(),
    ],
)
def test_what_is_wrong_with_a_file_counts_for_nothing(
    break_it: Callable[[Path], Any], here: Environment, tmp_path: Path
) -> None:
    file = Path(dispatch.keep(H200, {}, here))
    other = H200._replace(gpu="NVIDIA H200 NVL")
    dispatch.keep(other, {}, here)
    break_it(file)
    assert dispatch.answers(here, str(tmp_path)) == (other,)


HALF = b'{"version": 1, "gpu": "%s", "architecture": "sm_90", "driver": "580.159.04", "rule": "hold", "date": ""}'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"NVIDIA%20H200", HALF % rb"NVIDIA \ud800"),
        (b"%ED%A0%80", HALF % rb"\ud800"),
        (b"%FF", HALF % rb"\udcff"),  # what the name of a file can be, and nothing can print
        (b"\xff", HALF % rb"\udcff"),
        (b"%1B", HALF % rb"\u001b"),
        (b"%00", HALF % rb"\u0000"),
        (b"..", HALF % b".."),
    ],
)
def test_no_file_keeps_a_program_from_its_policy(
    name: bytes, text: bytes, here: Environment, tmp_path: Path, overlap_run: Any
) -> None:
    folder = tmp_path / "cache/overlap-run/dispatch"
    for identity in (VERSION, "simulated%20hold"):
        (folder / identity).mkdir(parents=True)
        path = os.path.join(os.fsencode(folder / identity), name + b".json")
        Path(os.fsdecode(path)).write_bytes(text.replace(VERSION.encode(), identity.replace("%20", " ").encode()))
    chosen = policies.choose("auto", {})
    dispatch.decided(chosen, here, str(tmp_path))
    list(dispatch.of_other_drivers(here, str(tmp_path)))
    done = overlap_run("--simulate", "h200", "--policy", "h200", "--dry-run", "true", env=here)
    assert (done.returncode, "Traceback" in done.stderr, "liboverlap.so" in done.stderr) == (0, False, True)


def test_a_file_of_another_user_counts_for_nothing(
    here: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatch.keep(H200, {}, here)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert dispatch.answers(here, str(tmp_path)) == ()
    with pytest.raises(OSError, match="is not a folder of yours"):
        dispatch.keep(H200, {}, here)


def test_a_link_in_place_of_a_file_is_replaced_and_of_a_folder_is_not_followed(
    here: Environment, tmp_path: Path
) -> None:
    file = Path(dispatch.keep(H200, {}, here))
    break_link(file)
    dispatch.keep(H200, {}, here)
    assert not file.is_symlink() and dispatch.answers(here, str(tmp_path)) == (H200,)
    elsewhere = tmp_path / "elsewhere"
    file.parent.rename(elsewhere)
    file.parent.symlink_to(elsewhere)
    before = sorted(elsewhere.iterdir())
    with pytest.raises(OSError, match="is not a folder of yours"):
        dispatch.keep(H200._replace(gpu="NVIDIA A40"), {}, here)
    assert dispatch.forget(here) == 0 and sorted(elsewhere.iterdir()) == before


def test_places(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert dispatch.folder(home) == f"{tmp_path}/.cache/overlap-run/dispatch"
    assert dispatch.folder({**home, "XDG_CACHE_HOME": "relative"}) == dispatch.folder(home)
    assert dispatch.folder({}) is None and dispatch.folder({"HOME": "~"}) is None
    assert dispatch.answers({}, str(tmp_path)) == () and dispatch.forget({}) == 0
    with pytest.raises(OSError, match="XDG_CACHE_HOME"):
        dispatch.keep(H200, {}, {})


def test_where_nothing_can_be_kept(here: Environment, tmp_path: Path, overlap: Any) -> None:
    (tmp_path / "file").write_text("")
    nowhere = {"XDG_CACHE_HOME": str(tmp_path / "file"), "SIMGPU_MULTIPROCESSORS": "16"}
    done = overlap("probe", "--simulate", "h100:drain", env=nowhere)
    assert done.returncode == 0
    assert "overlap: not kept: " in done.stderr and "write `dispatch: drain` into" in done.stderr


def test_names_with_slashes_stay_in_their_folder(here: Environment, tmp_path: Path) -> None:
    odd = H200._replace(gpu="../../NVIDIA/H200", driver=VERSION)
    file = Path(dispatch.keep(odd, {}, here))
    assert file.parent == tmp_path / "cache/overlap-run/dispatch" / VERSION
    assert dispatch.answers(here, str(tmp_path)) == (odd,)


def test_forget(here: Environment, tmp_path: Path) -> None:
    dispatch.keep(H200, {}, here)
    dispatch.keep(H200._replace(driver="570.1"), {}, here)
    assert dispatch.forget(here) == 2
    assert dispatch.answers(here, str(tmp_path)) == () == dispatch.of_other_drivers(here, str(tmp_path))


def test_what_a_probe_left_that_was_killed_is_forgotten(here: Environment, tmp_path: Path) -> None:
    folder = Path(dispatch.keep(H200, {}, here)).parent
    (folder / ".4711.00c0ffee").write_text("{")
    assert dispatch.forget(here) == 1
    assert not folder.exists()
    other = Path(dispatch.keep(H200, {}, here)).with_name("notes.txt")
    other.write_text("mine")
    assert dispatch.forget(here) == 1
    assert list(folder.iterdir()) == [other]


def test_a_policy_that_says_it_is_left_as_it_is(here: Environment, tmp_path: Path, monkeypatch: Any) -> None:
    dispatch.keep(H200, {}, here)
    monkeypatch.setattr(driver, "version", lambda root="/": VERSION)
    monkeypatch.setattr(driver, "models", lambda environment, root="/": {"0000:00:06.0": "NVIDIA H200"})
    unknown, says = Policy("unknown"), Policy("says", dispatch="backfill")
    (first, found), (second, nothing) = dispatch.filled_in([unknown, says], here)
    assert (first.dispatch, found, second, nothing) == ("hold", H200, says, None)


def test_only_the_policies_that_it_is_for_get_it(here: Environment, tmp_path: Path, library: Any) -> None:
    dispatch.keep(H200, {}, here)
    chosen = policies.choose("h100,h200,a100,mi250x", {})
    done, said = dispatch.decided(chosen, here, str(tmp_path))
    assert said == [("h200", H200)]
    data = layout.decode(done.table)
    assert library.overlap_table_check(data, len(data)) == _native.ffi.NULL
    start = _native.ffi.cast("uint8_t *", _native.ffi.from_buffer(data))
    found = _native.ffi.cast("struct overlap_policy *", start + _native.ffi.sizeof("struct overlap_table"))
    hold = library.OVERLAP_DISPATCH_HOLD
    names = [str(item["name"]) for item in done.described]
    assert [found[i].dispatch for i in range(len(names))] == [hold if name == "h200" else 0 for name in names]
    differ = [name for name, old, new in zip(names, chosen.described, done.described) if old["hash"] != new["hash"]]
    assert differ == ["h200"]
    strings = bytes(data)[len(data) - _native.ffi.cast("struct overlap_table *", start).string_size :]
    for index, item in enumerate(done.described):
        assert strings[found[index].hash :].split(b"\0")[0].decode() == item["hash"]


def test_nothing_known_is_nothing_changed(here: Environment, tmp_path: Path) -> None:
    chosen = policies.choose("auto", {})
    assert dispatch.decided(chosen, here, str(tmp_path)) == (chosen, [])
