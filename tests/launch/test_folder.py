from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.start import folder

H100 = {"name": "h100", "hash": "ab", "file": None}
HIGH = {"TORCH_NCCL_HIGH_PRIORITY": "1"}
RUN = folder.Run("one", 1.5, ("python", "a b.py"), (H100,), "0.1.0", 4, None, HIGH)


def refused(path: Path | str) -> str:
    with pytest.raises(OverlapError) as caught:
        folder.make(folder.of_run(str(path), {}))
    assert caught.value.status == LAUNCHER_FAILED
    return caught.value.sentence


def test_folders_are_the_users_own_and_their_path_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = folder.of_run("a/b", {})
    assert not Path("a").exists(), "nothing is made before it is known that the program starts"
    folder.make(path)
    folder.make(path)  # as another rank does
    assert os.path.dirname(path) == str(tmp_path / "a" / "b")
    assert {stat.S_IMODE(os.stat(one).st_mode) for one in (path, tmp_path / "a" / "b")} == {0o700}


def test_a_folder_may_hold_other_files_which_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    folder.make(str(tmp_path / "one"))
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_a_folder_of_root_that_the_user_may_write_to_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a scratch folder that every user may write to."""
    if os.getuid():
        pytest.skip("only root can make one: run as root")
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    folder.make(str(tmp_path / "one"))
    os.chown(tmp_path, 1, 1)
    assert "belongs to another user" in refused(tmp_path)


def test_what_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is not a folder" in refused(tmp_path / "file")
    assert "cannot be made: Not a directory" in refused(tmp_path / "file" / "below")
    assert "cannot be made" in refused("/proc/nowhere/x")
    folder.make(str(tmp_path / "run"))
    (tmp_path / "run" / "run.json").write_text("{}")  # another program's
    folder.make(str(tmp_path / "run" / "another"))
    (tmp_path / "run" / "run.json").unlink()
    folder.write(str(tmp_path / "run"), RUN)
    assert "is a run, not a report folder" in refused(tmp_path / "run")
    assert "needs a name" in refused("")
    assert "too long" in refused("/tmp/" + "x" * 600)
    (tmp_path / "link").symlink_to("nowhere")
    assert "is not a folder" in refused(tmp_path / "link")


@pytest.mark.parametrize("planted", ["file", "link"])
def test_what_stands_where_the_run_belongs_is_refused(tmp_path: Path, planted: str) -> None:
    """A link would lead the pages elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    if planted == "file":
        (tmp_path / "one").write_text("")
    else:
        (tmp_path / "one").symlink_to("elsewhere")
    with pytest.raises(OverlapError, match="is not a folder"):
        folder.make(str(tmp_path / "one"))


def test_last_leads_to_the_latest_run(tmp_path: Path) -> None:
    for name in ("one", "two", "two"):
        folder.make(str(tmp_path / name))
        assert folder.link(str(tmp_path / name)) == ""
        assert os.readlink(tmp_path / "last") == name
    assert sorted(os.listdir(tmp_path)) == ["last", "one", "two"]


@pytest.mark.parametrize("kind", ["file", "folder", "link elsewhere", "link below"])
def test_a_last_that_is_not_ours_stays_as_it_is(tmp_path: Path, kind: str) -> None:
    last = tmp_path / "last"
    folder.make(str(tmp_path / "one"))
    if kind == "file":
        last.write_text("mine")
    elif kind == "folder":
        last.mkdir()
    else:
        last.symlink_to(tmp_path if kind == "link elsewhere" else "runs/one")
    before = os.lstat(last)  # without the time of the last access: a link is read
    said = folder.link(str(tmp_path / "one"))
    assert (
        said
        == f"{last} is no link of overlap-run and stays as it is; this run is read by: overlap report {tmp_path}/one"
    )
    after = os.lstat(last)
    assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (before.st_ino, before.st_mode, before.st_mtime_ns)
    assert sorted(os.listdir(tmp_path)) == ["last", "one"]


def test_where_no_link_can_be_made_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", refuse)  # as vfat does
    assert "cannot be made (Operation not permitted); this run is read by: " in folder.link(str(tmp_path / "one"))


def test_of_many_that_link_at_once_one_is_the_last(tmp_path: Path) -> None:
    names = [f"run{number}" for number in range(16)]
    with ThreadPoolExecutor(16) as pool:
        for said in pool.map(lambda name: folder.link(str(tmp_path / name)), names * 8):
            assert said == ""
    assert os.listdir(tmp_path) == ["last"]
    assert os.readlink(tmp_path / "last") in names


def files(path: Path) -> dict[str, folder.Run | None]:
    return {name: folder.read_run(str(path / name)) for name in sorted(os.listdir(path))}


def test_run_json_is_what_the_contract_says_and_comes_back(tmp_path: Path) -> None:
    folder.write(str(tmp_path), RUN)
    assert json.loads((tmp_path / "run.json").read_text()) == {
        "version": 1,
        "id": "one",
        "started": 1.5,
        "command": ["python", "a b.py"],
        "policies": [{"name": "h100", "hash": "ab", "file": None}],
        "overlap_run": "0.1.0",
        "expected_world_size": 4,
        "simulate": None,
        "environment": {"TORCH_NCCL_HIGH_PRIORITY": "1"},
        "host": "",
        "pid": None,
        "table": None,
        "driver": None,
        "obstacle": None,
    }
    assert files(tmp_path) == {"run.json": RUN}
    assert stat.S_IMODE((tmp_path / "run.json").stat().st_mode) == 0o600


def test_the_first_rank_of_a_step_writes_and_the_others_leave_it(tmp_path: Path) -> None:
    folder.write(str(tmp_path), RUN)
    folder.write(str(tmp_path), RUN._replace(started=99.0))
    assert files(tmp_path) == {"run.json": RUN}


@pytest.mark.parametrize("links", [True, False])
def test_a_rank_that_was_started_otherwise_says_so_in_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no hard links here")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    other = RUN._replace(environment={})
    folder.write(str(tmp_path), RUN)
    folder.write(str(tmp_path), other)
    who = f"{os.uname().nodename}.{os.getpid()}"
    assert files(tmp_path) == {"run.json": RUN, f"run@{who}.json": other}


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100000, '{"id": "one", "version": 2}', "\udcff"])
def test_a_damaged_run_file_counts_for_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text, errors="surrogateescape")
    assert files(tmp_path) == {"run.json": None}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_others_put_where_a_run_file_belongs_stops_nobody(tmp_path: Path, kind: str, strict: bool) -> None:
    """In a folder that is shared: a named pipe without a writer, a link to a file that is none of the folder's."""
    elsewhere, report = tmp_path / "elsewhere", tmp_path / "report"
    elsewhere.mkdir()
    report.mkdir()
    folder.write(str(elsewhere), RUN)
    if kind == "pipe":
        os.mkfifo(report / "run.json")
    else:
        (report / "run.json").symlink_to(elsewhere / "run.json")
    folder.write(str(report), RUN._replace(table="other"), strict)
    assert files(report) == {"run.json": None}
    assert files(elsewhere) == {"run.json": RUN}


def test_a_run_file_in_the_making_is_nothing_that_others_have_put_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, report = tmp_path / "mine", tmp_path / "report"
    report.mkdir()
    mine.write_text("mine")
    monkeypatch.setattr(os, "urandom", bytes)
    os.link(mine, report / f"run@{os.uname().nodename}.{os.getpid()}.json.{bytes(4).hex()}")
    with pytest.raises(OverlapError, match="cannot be written to"):
        folder.write(str(report), RUN)
    assert mine.read_text() == "mine"
    assert len(os.listdir(report)) == 1, "nor is it removed"


def test_a_command_that_is_not_text_is_kept(tmp_path: Path) -> None:
    run = RUN._replace(command=("./\udcff",))
    folder.write(str(tmp_path), run)
    assert files(tmp_path) == {"run.json": run}
