"""Files and folders that somebody else has laid out: report folders, links, pages, and the current folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from interposing import Build, Runner

from pyshim.errors import OverlapError
from pyshim.start import folder, plan

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SOMEBODY, ANOTHER, NOBODY = 65532, 65533, 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users: run as root")
WORDS = ["ptx=k", "launch=k,4000,256,1000", "launch=k,4000,256,1000"]


@dataclass
class Place:
    """A folder that every user may look into, with a program, a driver and the library."""

    path: Path
    variables: Mapping[str, str]

    def report(self, owner: int, mode: int) -> Path:
        made = self.path / f"report-{owner}-{mode:o}"
        made.mkdir()
        made.chmod(mode)
        os.chown(made, owner, owner)
        return made

    def run(self, report: Path, user: int) -> subprocess.CompletedProcess[str]:
        env = {**self.variables, "OVERLAP_REPORT": str(report), "LD_PRELOAD": str(self.path / "liboverlap.so")}
        env["LD_LIBRARY_PATH"] = str(self.path)
        become = {"user": user, "group": user, "extra_groups": []} if user else {}
        command = [str(self.path / "client"), *WORDS]
        return subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, check=False, **become)


@pytest.fixture
def place(build: Build, table_of: Callable[[str], Mapping[str, str]]) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="overlap-", dir="/var/tmp") as made:
        path = Path(made)
        path.chmod(0o755)
        for source, name in (
            (plan.LIBRARY, "liboverlap.so"),
            (plan.SIMULATED_DRIVER, "libcuda.so.1"),
            (build.client("dlsym"), "client"),
        ):
            shutil.copy(source, path / name)
            (path / name).chmod(0o755)
        yield Place(path, table_of("observe"))


@AS_ROOT
def test_a_report_folder_of_another_user_is_not_written_to(place: Place) -> None:
    report = place.report(ANOTHER, 0o777)
    done = place.run(report, SOMEBODY)
    said = f"overlap: no statistics in {report}: it is another user's\n"
    assert (done.returncode, done.stderr) == (0, said)
    assert list(report.iterdir()) == []


@AS_ROOT
@pytest.mark.parametrize(
    ("owner", "mode", "user"),
    [(SOMEBODY, 0o700, SOMEBODY), (0, 0o1777, SOMEBODY), (SOMEBODY, 0o700, 0), (NOBODY, 0o777, SOMEBODY)],
)
def test_ones_own_folder_roots_nobodys_and_everybodys_for_root_are(
    place: Place, owner: int, mode: int, user: int
) -> None:
    """Everybody's for root, as in containers, where root is a user; nobody's, as on file servers that know no users."""
    report = place.report(owner, mode)
    done = place.run(report, user)
    assert (done.returncode, done.stderr) == (0, "")
    (page,) = report.iterdir()
    assert (page.stat().st_uid, stat.S_IMODE(page.stat().st_mode)) == (user, 0o600)


def test_overlap_run_refuses_a_report_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "report").mkdir()
    owner = (tmp_path / "report").stat().st_uid
    if owner == 0:
        os.chown(tmp_path / "report", SOMEBODY, SOMEBODY)
    monkeypatch.setattr(os, "geteuid", lambda: ANOTHER)
    with pytest.raises(OverlapError, match="belongs to another user") as refused:
        folder.make(str(tmp_path / "report" / "run"))
    assert refused.value.status == 125


@AS_ROOT
def test_a_planted_link_on_the_way_to_the_report_folder_is_not_followed(overlap_run: Run, tmp_path: Path) -> None:
    everybodys, precious = tmp_path / "tmp", tmp_path / "precious"
    everybodys.mkdir()
    everybodys.chmod(0o1777)
    precious.mkdir()
    (everybodys / "link").symlink_to(precious)
    words = ["--simulate", "h100", "--report", str(everybodys / "link" / "report"), "true"]
    assert overlap_run(*words).returncode == 0, "one's own link is"
    shutil.rmtree(precious / "report")
    os.chown(everybodys / "link", SOMEBODY, SOMEBODY, follow_symlinks=False)
    done = overlap_run(*words)
    assert done.returncode == 125
    assert f"{everybodys / 'link'}, on the way to the report folder, is another user's link" in done.stderr
    assert list(precious.iterdir()) == []


def test_a_new_report_folder_is_for_the_user_only_and_one_for_everybody_is_said(
    overlap_run: Run, tmp_path: Path
) -> None:
    words = ["--simulate", "h100", "--report", str(tmp_path / "report"), "true"]
    done = overlap_run(*words, umask=0)
    assert "may exchange" not in done.stderr
    run = tmp_path / "report" / "last"
    assert {stat.S_IMODE(path.stat().st_mode) for path in run.iterdir()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (run, run.parent)} == {0o700}
    (tmp_path / "report").chmod(0o777)
    done = overlap_run(*words)
    said = f"everybody may exchange what is in the report folder {tmp_path / 'report'} (chmod o-w)"
    assert (done.returncode, said in done.stderr) == (0, True)


@AS_ROOT
@pytest.mark.parametrize("kind", ["page", "json"])
def test_what_another_user_has_put_into_the_report_folder_counts_for_nothing(
    kind: str, overlap: Run, preloaded: Runner, tmp_path: Path
) -> None:
    report = tmp_path / "report"
    report.mkdir()
    for _ in range(2):
        done = preloaded(" ".join(WORDS), report=report)
    (report / "run.json").write_text(json.dumps({"id": "x", "version": 1, "command": ["theirs"]}))
    assert [process["launches"] for process in done.report["processes"]] == [2, 2]
    theirs = sorted(report.glob(f"*.{kind}"))[0]
    os.chown(theirs, SOMEBODY, SOMEBODY)
    told = overlap("report", str(report), "--json")
    answer = json.loads(told.stdout)
    if kind == "page":
        assert answer["totals"]["launches"] == 2
        assert theirs.name in told.stderr + told.stdout
        assert "it belongs to another user" in told.stderr + told.stdout
    else:
        assert "theirs" not in told.stdout


def test_nobody_can_guess_what_a_page_that_waits_in_dev_shm_is_called(
    build: Build, preloaded: Runner, tmp_path: Path
) -> None:
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm here")
    fake, numbers, before = build.library("libfakenfs.so", "fake_nfs.c"), set(), {*Path("/dev/shm").glob("overlap-*")}
    for count in range(4):
        report = tmp_path / f"network{count}"
        report.mkdir()
        done = preloaded([*WORDS, "kill"], report=report, preload=f"{{}}:{fake}")
        assert done.status == -9
        (waits,) = (path for path in {*Path("/dev/shm").glob("overlap-*")} - before if str(report) in text_of(path))
        assert stat.S_IMODE(waits.stat().st_mode) == 0o600
        numbers.add(waits.name.split(".")[-2])
        waits.unlink()
    assert len(numbers) == 4


def text_of(path: Path) -> str:
    """A page names the folder that it waits for."""
    return path.read_bytes().decode("latin-1")


PLANTED = {
    **{f"{name}.py": "open({mark!r}, 'a').write({name!r})" for name in ("yaml", "cffi", "json", "psutil", "rich")},
    "pyshim/__init__.py": "open({mark!r}, 'a').write('pyshim')",
    **dict.fromkeys(("liboverlap.so", "libcuda.so.1", "libamdhip64.so", "libc.so.6"), "not a library"),
    **{f"{name}.yaml": "policy: 1\nname: theirs\n" for name in ("h100", "auto", "observe", "base")},
    "run.json": "{{}}",
    "last": "",
}


@pytest.mark.parametrize(
    "words",
    [
        ["overlap-run", "--policy", "observe", "--simulate", "h100", "--report", "{report}", "{client}", *WORDS],
        ["overlap-run", "{client}", *WORDS],
        ["overlap", "env", "--policy", "h100"],
        ["overlap", "policy", "show", "h100"],
        ["overlap", "policy", "list"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_nothing_is_taken_from_the_current_folder(
    words: list[str], build: Build, clean_environment: Mapping[str, str], tmp_path: Path
) -> None:
    command = Path(sys.executable).parent / words[0]
    if not command.exists():
        pytest.skip("the commands are not installed beside this Python: make setup")
    hostile, empty, mark = tmp_path / "hostile", tmp_path / "empty", tmp_path / "mark"
    empty.mkdir()
    for name, text in PLANTED.items():
        path = hostile / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(mark=str(mark), name=name))
    env = {name: value for name, value in clean_environment.items() if name != "PYTHONPATH"}
    env["LD_LIBRARY_PATH"] = str(Path(plan.SIMULATED_DRIVER).parent)
    done = []
    for here in (empty, hostile):
        given = [word.format(report=tmp_path / "report", client=build.client("dlsym")) for word in words[1:]]
        done.append(
            subprocess.run(
                [command, *given], cwd=here, env=env, capture_output=True, text=True, check=False, timeout=300
            )
        )
        shutil.rmtree(tmp_path / "report", ignore_errors=True)
    said = [(one.returncode, one.stdout, re.sub(r"[0-9]{8}-[0-9]{6}-[0-9]+", "RUN", one.stderr)) for one in done]
    assert said[0] == said[1]
    assert done[0].returncode == 0, done[0].stderr
    assert not mark.exists(), mark.read_text()


@AS_ROOT
@pytest.mark.parametrize(("owner", "taken"), [(SOMEBODY, False), (0, True)])
def test_what_a_policy_extends_is_no_file_of_another_user(
    owner: int, taken: bool, overlap: Run, tmp_path: Path
) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "mine.yaml").write_text("policy: 1\nname: mine\nextends: h100-paper\n")
    theirs = tmp_path / "h100-paper.yaml"
    theirs.write_text('policy: 1\nname: h100-paper\ngpu: ["NVIDIA H100*"]\nenvironment: {NCCL_DEBUG: "theirs"}\n')
    os.chown(theirs, owner, owner)
    done = overlap("policy", "show", str(tmp_path / "mine.yaml"))
    assert (done.returncode, "theirs" in done.stdout) == (0, taken)
