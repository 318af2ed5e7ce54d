from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.launch import folder

ID = "0123456789abcdef"
H100 = {"name": "h100", "hash": "ab", "file": None}
HIGH = {"TORCH_NCCL_HIGH_PRIORITY": "1"}
RUN = folder.Run(ID, 1.5, ("python", "a b.py"), (H100,), "0.1.0", 4, None, HIGH)


def refused(directory: Path | str) -> str:
    with pytest.raises(OverlapError) as caught:
        folder.prepare(str(directory))
    assert caught.value.status == LAUNCHER_FAILED
    return caught.value.sentence


def test_a_new_folder_is_the_users_own_and_its_path_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder.prepare("a/b") == str(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


def test_an_empty_folder_and_an_earlier_report_are_taken(tmp_path: Path) -> None:
    folder.prepare(str(tmp_path))
    folder.write(str(tmp_path), RUN)
    (tmp_path / "host.1.0.page").write_bytes(b"")
    folder.prepare(str(tmp_path))


def test_a_rank_that_is_writing_its_file_right_now_does_not_stop_another(tmp_path: Path) -> None:
    (tmp_path / f".run-{ID}.host.1").write_text("{")
    folder.prepare(str(tmp_path))


def test_foreign_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    assert "holds other files" in refused(tmp_path)
    (tmp_path / f"run-{ID}.json").write_text('{"id": "something else"}')
    assert "holds other files" in refused(tmp_path)


def test_what_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is not a folder" in refused(tmp_path / "file")
    assert "cannot be made" in refused(tmp_path / "file" / "below")
    assert "cannot be made" in refused("/proc/nowhere/x")
    assert "needs a name" in refused("")
    assert "too long" in refused("/tmp/" + "x" * 600)
    (tmp_path / "link").symlink_to("nowhere")
    assert "is not a folder" in refused(tmp_path / "link")


def test_run_json_is_what_the_contract_says_and_comes_back(tmp_path: Path) -> None:
    folder.write(str(tmp_path), RUN)
    assert json.loads((tmp_path / f"run-{ID}.json").read_text()) == {
        "version": 1,
        "id": ID,
        "started": 1.5,
        "command": ["python", "a b.py"],
        "policies": [{"name": "h100", "hash": "ab", "file": None}],
        "overlap_run": "0.1.0",
        "expected_world_size": 4,
        "simulate": None,
        "environment": {"TORCH_NCCL_HIGH_PRIORITY": "1"},
        "host": "",
        "table": None,
        "outer": None,
    }
    assert folder.runs(str(tmp_path)) == [RUN]
    assert os.listdir(tmp_path) == [f"run-{ID}.json"]
    assert stat.S_IMODE((tmp_path / f"run-{ID}.json").stat().st_mode) == 0o600


def test_the_first_rank_of_a_step_writes_and_the_others_leave_it(tmp_path: Path) -> None:
    folder.write(str(tmp_path), RUN)
    folder.write(str(tmp_path), RUN._replace(started=99.0))
    assert folder.runs(str(tmp_path)) == [RUN]


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
    assert set(os.listdir(tmp_path)) == {f"run-{ID}.json", f"run-{ID}.{who}.json"}
    assert folder.runs(str(tmp_path)) == [RUN]
    assert folder.others(str(tmp_path)) == [(who, other)]
    folder.check(str(tmp_path))


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100000, f'{{"id": "{ID}", "version": 2}}', "\udcff"])
def test_a_damaged_run_file_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / f"run-{ID}.json").write_text(text, errors="surrogateescape")
    assert folder.runs(str(tmp_path)) == []


@pytest.mark.parametrize("strict", [True, False])
def test_what_others_put_where_a_run_file_belongs_stops_nobody(tmp_path: Path, strict: bool) -> None:
    """In a folder that is shared: a named pipe without a writer, a link to a file that is none of the folder's."""
    pipe, link = (f"{number:016x}" for number in (1, 2))
    (tmp_path / "elsewhere").mkdir()
    folder.write(str(tmp_path / "elsewhere"), RUN._replace(id=link))
    report = tmp_path / "report"
    report.mkdir()
    os.mkfifo(report / f"run-{pipe}.json")
    (report / f"run-{link}.json").symlink_to(tmp_path / "elsewhere" / f"run-{link}.json")
    for identifier in (pipe, link):
        folder.write(str(report), RUN._replace(id=identifier, table="other"), strict)
    assert folder.runs(str(report)) == []
    folder.write(str(report), RUN)
    assert folder.runs(str(report)) == [RUN]


def test_a_run_file_in_the_making_is_nothing_that_others_have_put_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, report = tmp_path / "mine", tmp_path / "report"
    report.mkdir()
    mine.write_text("mine")
    names: list[str] = []
    kept = os.open
    monkeypatch.setattr(os, "open", lambda path, *more: (names.append(path), kept(path, *more))[1])
    folder.write(str(report), RUN)
    folder.write(str(report), RUN._replace(id="f" * 16))
    assert names[0].replace(ID, "f" * 16) != names[-1], "nobody knows its name"
    monkeypatch.setattr(os, "urandom", bytes)
    os.link(mine, report / f".run-{'0' * 16}.{os.uname().nodename}.{os.getpid()}.{bytes(4).hex()}")
    with pytest.raises(OverlapError, match="cannot be written to"):
        folder.write(str(report), RUN._replace(id="0" * 16))
    assert mine.read_text() == "mine"


def test_a_command_that_is_not_text_is_kept(tmp_path: Path) -> None:
    run = RUN._replace(command=("./\udcff",))
    folder.write(str(tmp_path), run)
    assert folder.runs(str(tmp_path)) == [run]
