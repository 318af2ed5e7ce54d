"""torchrun and accelerate, with PyTorch's build for the CPU."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from seen import OVERLAP_RUN

OUTSIDE = (OVERLAP_RUN, "--policy", "observe")


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.fixture
def torchrun(torch):
    return (str(torch / "torchrun"), "--standalone", "--nproc-per-node", "2")


def test_torchrun_outside_inside_and_both(run, torchrun, show):
    inner = (OVERLAP_RUN, "--policy", "h100")
    outside, inside, both = (
        run(*OUTSIDE, *torchrun, "--no-python", *show),
        run(*torchrun, "--no-python", *inner, *show),
        run(*OUTSIDE, *torchrun, "--no-python", *inner, *show),
    )
    for done in (outside, inside, both):
        assert done.status == 0, done.stderr
        assert [(rank.rank, rank.world, rank.mapped) for rank in done.ranks] == [(0, 2, True), (1, 2, True)]
    assert inside.stderr.count("overlap: ") <= 1, "rank 0 speaks"
    (preload,) = set(both.values("LD_PRELOAD"))
    assert preload and preload.count("liboverlap.so") == 1
    assert both.values("OVERLAP_TABLE") == inside.values("OVERLAP_TABLE") != outside.values("OVERLAP_TABLE")


@pytest.mark.parametrize("table", ["observe", "auto"], indirect=True)  # ends with ==; the longest
def test_a_policy_arrives_as_it_is(run, torchrun, show, table):
    policy, seen = table
    done = run(OVERLAP_RUN, "--policy", policy, *torchrun, "--no-python", *show)
    assert done.values("OVERLAP_TABLE") == [seen, seen], done.stderr


@pytest.mark.parametrize("same", [True, False])
def test_a_start_on_each_host_by_hand_is_one_job(run, torch, build, tmp_path, same):
    port = free_port()
    (tmp_path / "p.yaml").write_text("policy: 1\nname: p\nenvironment: {NCCL_X: 1}\n")
    program = (str(build.client()), "ptx=k", "launch=k,132,256,0")

    def start(host: int):
        other = {} if same or host == 0 else {"NCCL_X": "2"}
        front = (
            OVERLAP_RUN,
            "--simulate",
            "h100",
            "--policy",
            str(tmp_path / "p.yaml"),
            "--report",
            str(tmp_path / "r"),
        )
        hosts = ("--nnodes", "2", "--nproc-per-node", "2", "--node-rank", str(host))
        ends = ("--master-addr", "127.0.0.1", "--master-port", port, "--no-python")
        return run(*front, str(torch / "torchrun"), *hosts, *ends, *program, env=other)

    with ThreadPoolExecutor() as hosts:
        for done in hosts.map(start, range(2)):
            assert done.status == 0, done.stderr
    runs = [str(path) for path in (tmp_path / "r").iterdir() if not path.is_symlink()]
    assert len(runs) == 2, "one of each overlap-run; the report takes both"
    checked = run(OVERLAP_RUN.removesuffix("-run"), "report", *runs, "--check")
    assert checked.status == (0 if same else 1), checked.stdout
    assert "missing" not in checked.stdout
    assert (" for the program; the first rank set " in checked.stdout) is not same


def test_a_collective_of_torch_under_torchrun(run, torchrun, tmp_path):
    (tmp_path / "reduce.py").write_text(
        "import torch, torch.distributed as d\n"
        "d.init_process_group('gloo')\nx = torch.tensor([d.get_rank() + 1.0])\nd.all_reduce(x)\n"
        "assert 'liboverlap.so' in open('/proc/self/maps').read()\n"
        "print(x.item()) if d.get_rank() == 0 else None\nd.destroy_process_group()\n"
    )
    done = run(*OUTSIDE, *torchrun, str(tmp_path / "reduce.py"), timeout=120)
    assert (done.status, done.stdout) == (0, "3.0\n"), done.stderr


def test_accelerate(run, torch, show):
    """One program on the CPU, or torchrun's way for as many as there would be GPUs."""
    launch = (str(torch / "accelerate"), "launch", "--num_processes", "2", "--num_machines", "1")
    launch += ("--main_process_port", free_port())
    more = ("--mixed_precision", "no", "--dynamo_backend", "no", "--no_python")
    outside = run(*OUTSIDE, *launch, "--multi_gpu", *more, *show)
    assert [(rank.rank, rank.world, rank.mapped) for rank in outside.ranks] == [(0, 2, True), (1, 2, True)]
    for words in ((*OUTSIDE, *launch, "--cpu", *more), (*launch, "--cpu", *more, *OUTSIDE)):
        assert run(*words, *show).mapped == [True]


def test_exit_status(run, torchrun):
    assert run(*OUTSIDE, *torchrun, "--no-python", "sh", "-c", "exit 3").status == 1, "torchrun's own"
    inside = run(*torchrun, "--no-python", *OUTSIDE, "sh", "-c", "exit 3")
    assert inside.status == 1
    assert "exitcode  : 3" in inside.stderr


WORKER = """import os, signal, sys, time
path = f"{sys.argv[1]}/{os.environ['RANK']}"
seen = 0
def count(*_):
    global seen
    seen += 1
signal.signal(signal.SIGTERM, count)
open(path + ".ready", "w").close()
end = time.monotonic() + 300
while not seen and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.3)
open(path, "w").write(f"{seen} of {os.getppid()}")
"""


@pytest.mark.parametrize("way", ["bare", "outside", "inside"])
def test_what_torchrun_stops_gets_one_signal(torch, torchrun, clean_environment, tmp_path, way):
    """torchrun signals the sessions of its workers: a launcher between it and them would be one more receiver, which
    passes it on once more; two that come close together may count as one, so nobody may be there."""
    (tmp_path / "worker.py").write_text(WORKER)
    ours = (OVERLAP_RUN, "--quiet")
    worker = (str(torch / "python"), str(tmp_path / "worker.py"), str(tmp_path))
    words = (*(ours if way == "outside" else ()), *torchrun, "--no-python", *(ours if way == "inside" else ()), *worker)
    job = subprocess.Popen(words, env=clean_environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 300
    # A torchrun that is stopped while it starts workers forgets them: it must have come to wait for them.
    while (
        not all((tmp_path / f"{rank}.ready").exists() for rank in (0, 1))
        or psutil.Process(job.pid).status() != psutil.STATUS_SLEEPING
    ):
        assert time.monotonic() < end
        time.sleep(0.02)
    os.kill(job.pid, signal.SIGTERM)
    job.communicate(timeout=300)
    assert [(tmp_path / str(rank)).read_text() for rank in (0, 1)] == [f"1 of {job.pid}"] * 2


def test_srun_of_one_torchrun_a_node_is_one_job(slurm, torch, build, tmp_path):
    """As docs/how-to/training.md writes it; here both nodes are this machine."""
    report = tmp_path / "run1"
    step = ("srun", "--quiet", "-N2", "--ntasks-per-node=1")
    ours = (OVERLAP_RUN, "--simulate", "h100", "--report", str(report))
    workers = (str(torch / "torchrun"), "--nnodes", "2", "--nproc-per-node", "2", "--rdzv-backend", "c10d")
    meet = ("--rdzv-endpoint", f"127.0.0.1:{free_port()}", "--local-addr", "127.0.0.1", "--no-python")
    program = (str(build.client()), "ptx=k", "launch=k,132,256,0")
    done = slurm.run(*step, *ours, *workers, *meet, *program, timeout=100)
    assert done.returncode == 0, done.stderr
    checked = slurm.run(OVERLAP_RUN.removesuffix("-run"), "report", str(report), "--check")
    assert checked.returncode == 0 and "4 processes" in checked.stdout, checked.stdout
