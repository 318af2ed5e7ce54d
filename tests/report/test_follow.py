"""overlap report --follow: beside real processes that launch, on a simulated GPU."""

from __future__ import annotations

import errno
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools.bench import job

SECONDS = 300.0
LINE = re.compile(
    r"overlap: \d\d:\d\d:\d\d (\d+) process(?:es)?(?: \((\d+) ended\))?, ([\d,]+) launches(?:, ([\d,]+)/s)?, "
    r"shaped ([\d,]+), raised ([\d,]+), refused 0"
)


@contextmanager
def rank(program: Path, report: Path, launches: int, host: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """Run a process of this host that launches, and kill it at the end."""
    place = {"HOST": host or os.uname().nodename, "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    env = {**job.surroundings(report, 1), **place}
    process = subprocess.Popen([str(program), str(launches)], env=env, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


FOREVER = 2_000_000_000


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "report"
    path.mkdir()
    return path


@pytest.fixture
def follow(clean_environment):
    """Start the command, follow(folder, ...), which is killed when the test ends."""
    started = []

    def start(folder: Path, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "pyshim", "report", str(folder), "--follow", "--interval", "0.1", *more]
        process = subprocess.Popen(
            command, env=clean_environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def lines_until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    """Return the lines up to one that matches the expression."""
    said: list[str] = []
    end = time.monotonic() + SECONDS
    while not said or not re.search(wanted, said[-1]):
        assert time.monotonic() < end, said
        line = process.stdout.readline()
        assert line, said
        said.append(line.rstrip("\n"))
    return said


def rest(process: subprocess.Popen[str]) -> list[str]:
    """Return the remaining lines once the process has ended by itself."""
    said = process.stdout.read().splitlines()
    process.wait(SECONDS)
    return said


def numbers(line: str) -> list[int]:
    match = LINE.match(line)
    assert match, line
    return [int((group or "0").replace(",", "")) for group in match.groups()]


def test_it_waits_for_the_folder_and_the_first_process(rank_program, folder, follow):
    folder.rmdir()
    process = follow(folder)
    (first,) = lines_until(process, "")
    assert first.endswith(f"waiting for the first process that uses a GPU; the report folder {folder} cannot be read: "
                          "No such file or directory")  # fmt: skip
    folder.mkdir()
    assert lines_until(process, "waiting for the first process that uses a GPU$")
    with rank(rank_program, folder, 4) as program:
        assert program.wait(SECONDS) == 0
    said = rest(process)
    assert process.returncode == 0
    *_, last = [line for line in said if LINE.match(line)]
    assert numbers(last)[:3] == [1, 1, 6]
    # Then the whole report, once.
    assert sum("policy h100-paper, used by 1 process" in line for line in said) == 1
    assert sum(line.startswith("done: ") for line in said) == 1


def test_a_program_after_a_program_is_waited_for(rank_program, folder, follow):
    """At the first look at which all have ended the next one may be about to start."""
    with rank(rank_program, folder, 4) as program:
        program.wait(SECONDS)
    process = follow(folder, "--interval", "1.5")
    lines_until(process, "1 ended")
    with rank(rank_program, folder, 4) as program:
        program.wait(SECONDS)
    assert any(numbers(line)[0] == 2 for line in rest(process) if LINE.match(line))


def test_it_counts_while_the_program_runs(rank_program, folder, follow):
    with rank(rank_program, folder, FOREVER):
        process = follow(folder)
        lines_until(process, r" launches, [1-9][\d,]*/s")
        said = [numbers(process.stdout.readline()) for _ in range(3)]
        assert [line[0] for line in said] == [1, 1, 1]
        launches = [line[2] for line in said]
        assert launches[0] < launches[1] < launches[2]
        assert all(line[3] > 0 for line in said)
        assert said[2][4] > said[0][4]
    # Killed, and its page does not say so: this host knows.
    last = rest(process)
    assert process.returncode == 0
    assert any("did not exit normally" in line for line in last)


def test_ctrl_c_ends_it_with_the_report(rank_program, folder, follow):
    with rank(rank_program, folder, FOREVER):
        process = follow(folder)
        lines_until(process, LINE.pattern)
        process.send_signal(signal.SIGINT)
        said = rest(process)
        assert process.returncode == 0
        assert any(line.startswith("done: ") for line in said)
        assert any(line.endswith("killed, or still running") for line in said)
        assert not any("Traceback" in line for line in said)


def test_ctrl_c_before_anything_was_there(folder, follow):
    process = follow(folder)
    lines_until(process, "waiting")
    process.send_signal(signal.SIGINT)
    said = rest(process)
    assert process.returncode == 1
    assert said[-2].startswith(f"overlap: error: {folder} holds no report of overlap-run")


def test_what_vanishes_does_not_stop_it(rank_program, folder, follow):
    with rank(rank_program, folder, FOREVER):
        process = follow(folder)
        lines_until(process, LINE.pattern)
        (page,) = folder.glob("*.page")
        data = page.read_bytes()
        page.unlink()
        lines_until(process, "waiting for the first process")
        page.write_bytes(data[:100])
        lines_until(process, "waiting for the first process")
        page.write_bytes(data)
        assert numbers(lines_until(process, LINE.pattern)[-1])[0] == 1
        shutil.rmtree(folder)
        seen = [numbers(process.stdout.readline())[2] for _ in range(3)]
        assert seen[1] == seen[2] > 0
    assert "Traceback" not in "\n".join(rest(process))
    assert process.returncode == 0


def test_a_process_of_another_host_is_over_when_it_says_so(rank_program, folder, follow):
    """Whether a process of another host still runs cannot be known here."""
    with rank(rank_program, folder, FOREVER, host="elsewhere"):
        process = follow(folder)
        lines_until(process, LINE.pattern)
    stood = [numbers(line)[3] for line in lines_until(process, r"launches, 0/s") if LINE.match(line)]
    assert stood[-1] == 0
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    rest(process)
    assert process.returncode == 0


def test_new_warnings_are_said_once(follow, write_page, report):
    for pid, version in ((7, "0.1.0"), (8, "0.0.9")):
        write_page({("symbol", "no_rule"): 1}, pid=pid, rank=pid - 7, library=version, flags=1, host="elsewhere")
    process = follow(report, "--check")
    said = lines_until(process, "launches, 0/s")
    assert [line.count("the version of the library differs") for line in said] == [1, *(len(said) - 1) * [0]]
    assert all("1 warning" in line for line in said)
    process.send_signal(signal.SIGINT)
    rest(process)
    assert process.returncode == 1


def test_a_warning_whose_numbers_grow_is_said_once(follow, write_page, report, library):
    """Two that are new at one look are said in two lines."""

    def count(launches: int) -> None:
        scratch = report / "scratch"
        counters = {library.OVERLAP_COUNTER_REFUSED: launches}
        apart = {"times": launches, "names": [b"libfoo.so"]}
        of = {("symbol", "refused"): 2 * launches}
        write_page(of, host="elsewhere", flags=1, counters=counters, opened_apart=apart, path=scratch)
        scratch.rename(report / "node1.100.0.page")

    count(3)
    process = follow(report)
    said = lines_until(process, " 6 launches.* 2 warnings$")
    count(4_000)
    said += lines_until(process, "8,000 launches") + [process.stdout.readline() for _ in range(3)]
    for words in ("the driver refused", "called dlmopen for libfoo.so"):
        assert sum(words in line for line in said) == 1


@contextmanager
def under_overlap_run(report: Path, policy: Path, *program: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program by overlap-run on a simulated GPU, and kill it at the end."""
    words = ("--simulate", "h100", "--policy", str(policy), "--report", str(report), *program)
    env = {**job.surroundings(report, 1), "HOST": os.uname().nodename}
    env = {name: value for name, value in env.items() if not name.startswith(("OVERLAP_", "LD_PRELOAD"))}
    process = subprocess.Popen(
        [sys.executable, "-m", "pyshim.cli.run", *words], env=env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_program_that_never_comes_to_a_gpu_is_waited_for_while_it_lives(folder, follow):
    with under_overlap_run(folder, Path("observe"), "sleep", "600") as program:
        process = follow(folder)
        for _ in range(12):
            lines_until(process, "waiting for the first process")
        program.kill()
        program.wait()
        said = rest(process)
    assert process.returncode == 0
    assert any(line.startswith("done: nothing: no process of sleep opened a GPU") for line in said)


def test_a_child_of_a_run_is_waited_for(folder, follow, tmp_path):
    """The program itself may have ended."""
    os.mkfifo(tmp_path / "end")  # the child ends when somebody opens it
    child = f"timeout 300 cat {tmp_path}/end &"
    with under_overlap_run(folder, Path("observe"), "sh", "-c", child) as program:
        assert program.wait(SECONDS) == 0
        process = follow(folder)
        for _ in range(8):
            lines_until(process, "waiting for the first process")
        (tmp_path / "end").write_text("")
        assert any(line.startswith("done: nothing: no process of sh opened") for line in rest(process))
    assert process.returncode == 0


def test_nobody_knows_of_a_run_on_another_host(folder, follow):
    from pyshim.launch import folder as reports

    reports.write(str(folder), reports.Run("0123456789abcdef", 1.0, ("x",), host="elsewhere"))
    process = follow(folder)
    for _ in range(12):
        lines_until(process, "waiting for the first process")
    assert process.poll() is None


def test_a_low_terminal_shows_what_matters_first(rank_program, folder, clean_environment):
    """Of 24 rows rich shows 23 and three dots: the verdict and the run are among them."""
    main, theirs = pty.openpty()
    command = [sys.executable, "-m", "pyshim", "report", str(folder), "--follow", "--interval", "0.1"]
    env = {**clean_environment, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    with rank(rank_program, folder, FOREVER):
        process = subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        seen = terminal_until(main, lambda text: len(re.findall(r"launches, [1-9][\d,]*/s", text)) > 3)
        process.kill()
        process.wait()
    os.close(main)
    plain = re.sub(r"\x1b\[[\d;?]*m", "", seen)
    frame = re.split(r"launches, [1-9][\d,]*/s", plain)[2]
    assert (
        frame.index("done: ") < frame.index("gain: ") < frame.index("next: ") < frame.index("NVIDIA H100 80GB HBM3: ")
    )


def test_on_a_terminal_it_is_redrawn(rank_program, folder, clean_environment):
    """Frames take each other's place; at the end the whole report stays."""
    main, theirs = pty.openpty()
    command = [sys.executable, "-m", "pyshim", "report", str(folder), "--follow", "--interval", "0.1"]
    env = {**clean_environment, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "50"}
    with rank(rank_program, folder, FOREVER) as program:
        process = subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        seen = terminal_until(main, lambda text: len(re.findall(r"launches, [1-9][\d,]*/s", text)) > 3)
        program.kill()
    seen += terminal_until(main, lambda text: False)
    assert process.wait(SECONDS) == 0
    os.close(main)
    assert "\x1b[1A" in seen  # the cursor goes up again
    assert seen.count("\x1b[?25l") == seen.count("\x1b[?25h") == 1  # and is there at the end
    assert len(re.findall(r"policy h100-paper, used by 1 process", seen)) > 3
    after = seen.rsplit("\x1b[?25h", 1)[1]
    assert after.count("\x1b[1A\x1b[2K") > 5  # the last frame goes, too
    assert after.count("policy h100-paper, used by 1 process") == 1 and "killed, or still running" in after
    frame = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "\n", seen)
    assert max(map(len, re.split(r"[\r\n]+", frame.replace(after, "")))) <= 80


def terminal_until(descriptor: int, enough) -> str:
    """Return the terminal's output until it is enough, or until its last process has ended."""
    text, end = b"", time.monotonic() + SECONDS
    while time.monotonic() < end:
        if select.select([descriptor], [], [], 0.2)[0]:
            try:
                text += os.read(descriptor, 1 << 16)
            except OSError as error:
                assert error.errno == errno.EIO
                break
        if enough(text.decode(errors="replace")):
            break
    return text.decode(errors="replace")
