"""DeepSpeed on several hosts: it reaches them by pdsh, which passes no environment on."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import pytorch
from seen import OVERLAP_RUN

ROOT = Path(__file__).resolve().parents[2]
# As pdsh does it: every host runs the same words, in which %n is its number and %h its name.
PDSH = """#!/bin/sh
while :; do
    case $1 in
    -S) shift ;;
    -f) shift 2 ;;
    -w) hosts=$2 && shift 2 ;;
    *) break ;;
    esac
done
number=0
for host in $(echo "$hosts" | tr , ' '); do
    command=$(printf %s "$*" | sed "s/%n/$number/g; s/%h/$host/g")
    env -i PATH=/usr/bin:/bin HOME={folder} PYTHONPATH={packages}:{root} sh -c "$command" &
    number=$((number + 1))
done
wait
"""


@pytest.fixture
def deepspeed(tmp_path: Path) -> tuple[str, ...]:
    """The command, with its options for two hosts."""
    try:
        own, packages = pytorch.python(), pytorch.deepspeed()
    except pytorch.Missing as reason:
        pytest.skip(str(reason))
    pdsh = PDSH.replace("{folder}", str(tmp_path)).replace("{packages}", str(packages)).replace("{root}", str(ROOT))
    start = f'#!/bin/sh\nPATH={tmp_path}:$PATH PYTHONPATH={packages}:{ROOT} exec {own} {packages}/bin/deepspeed "$@"\n'
    for name, text in (("pdsh", pdsh), ("deepspeed", start)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "hosts").write_text("n1 slots=1\nn2 slots=1\n")
    hosts = ("--hostfile", str(tmp_path / "hosts"), "--master_addr", "127.0.0.1", "--no_ssh_check")
    return (str(tmp_path / "deepspeed"), *hosts)


@pytest.mark.parametrize("table", ["auto"], indirect=True)  # the longest; every start takes seconds
def test_on_several_hosts_it_is_lost_and_what_is_said_helps(run, deepspeed, show, table, tmp_path):
    policy, seen = table
    start = (OVERLAP_RUN, "--policy", policy)
    done = run(*start, *deepspeed, show[1])
    assert (done.status, done.mapped) == (0, [False, False]), done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "without this environment" in line]
    command = shlex.join([*deepspeed, show[1]])
    instead = run("sh", "-c", f"{line.partition('environment: write ')[2]}; {command}", cwd=tmp_path)
    assert [(rank.rank, rank.world) for rank in instead.ranks] == [(0, 2), (1, 2)], instead.stderr
    assert (instead.mapped, instead.values("OVERLAP_TABLE")) == ([True, True], [seen, seen])
    assert run(*start, "--strict", *deepspeed, show[1]).status == 125


def test_inside_every_rank_starts_by_itself(run, deepspeed, show):
    own = (OVERLAP_RUN, "--policy", "observe", "--quiet")
    done = run(*deepspeed, "--no_python", "--no_local_rank", *own, *show)
    assert (done.status, done.mapped) == (0, [True, True]), done.stderr
