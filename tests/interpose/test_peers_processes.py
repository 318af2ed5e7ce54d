"""Processes of other libraries' users that hung, ran without their policy or fought each other, by what they saw."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from interposing import BLOCKS, ONE, Build, Runner, report_of, same

WORDS = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0"
# What strips an environment, and keeps what the system itself sets: as /etc/ld.so.preload does, or a container's.
KEPT = ("LD_PRELOAD", "LD_LIBRARY_PATH", "SIMGPU")
STRIPPED = {
    "env -i": ["env", "-i", *(f"{name}={{{name}}}" for name in KEPT)],
    "su -": ["su", "-s", "/bin/sh", "-w", ",".join(KEPT), "-", "root", "-c"],
    "setpriv --reset-env": ["setpriv", "--reset-env", "env", *(f"{name}={{{name}}}" for name in KEPT)],
}


@pytest.mark.parametrize("by", STRIPPED)
def test_su_keeps_the_preload_and_loses_the_policy(
    by: str, build: Build, table_of: Callable[[str], Mapping[str, str]], bare: Runner, tmp_path: Path
) -> None:
    """The program runs as it does alone, in silence."""
    if by == "su -" and os.geteuid() != 0:
        pytest.skip("su asks for a password: run as root")
    if not shutil.which(STRIPPED[by][0]):
        pytest.skip(f"needs {STRIPPED[by][0]}, of Debian's util-linux")
    report = tmp_path / "report"
    report.mkdir()
    env = {**table_of(ONE), "RANK": "0", "OVERLAP_REPORT": str(report)}

    def run(program: str) -> subprocess.CompletedProcess[str]:
        command = [word.format(**env) for word in STRIPPED[by]] + ([program] if by == "su -" else program.split())
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)

    assert "liboverlap.so" in run("cat /proc/self/maps").stdout  # or nothing was tested
    assert "OVERLAP_TABLE" not in run("env").stdout
    done = run(f"{build.client()} {WORDS}")
    assert (done.returncode, done.stdout, done.stderr) == (0, bare(WORDS).stdout, "")
    assert list(report.iterdir()) == []


MANY = 90


def test_hundreds_of_processes_wait_for_a_lock_that_they_share(
    build: Build, table_of: Callable[[str], Mapping[str, str]], tmp_path: Path
) -> None:
    """Every third is stopped somewhere in its start, and every tenth killed there: nobody else waits for them."""
    env = {**table_of(ONE), "OVERLAP_REPORT": str(tmp_path)}
    command = [str(build.client()), *WORDS.split()]
    started = []
    for number in range(MANY):
        started.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        if number % 3 == 0:
            time.sleep(number / MANY / 50)  # from 0 to 20 ms: loading, looking the driver up, making a page, launching
            started[-1].send_signal(signal.SIGKILL if number % 10 == 0 else signal.SIGSTOP)
    try:
        for number, process in enumerate(started):
            if number % 3:
                assert (process.communicate(timeout=300), process.returncode) == ((None, b""), 0)
    finally:
        for process in started:
            with suppress(OSError):
                process.send_signal(signal.SIGCONT)
    for number, process in enumerate(started):
        process.communicate(timeout=300)
        assert process.returncode in ((0, -9) if number % 30 == 0 else (0,))
    # Some were killed before they had made a page, or before they had counted.
    processes = report_of(tmp_path)["processes"]
    assert sum(process["launches"] == 3 for process in processes) >= MANY - MANY // 30


def test_exec_leaves_an_agent_behind(bare: Runner, preloaded: Runner) -> None:
    """The second program begins with the threads, descriptors and shared memory that it has alone."""
    words = f"{WORDS} exec before:left {WORDS}"
    without, done = bare(words), preloaded(words, ONE)
    assert "threads 1, " in without.stdout
    same(done, without, but=["dynamic_shared"])
    first, second = sorted(done.report["processes"], key=lambda process: bool(process["ended"]))
    assert (first["pid"], first["launches"]) == (second["pid"], second["launches"]) == (first["pid"], 3)
    assert [first["ended"], second["ended"]] == [False, True]
