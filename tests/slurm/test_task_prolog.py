"""The task-prolog in a real cluster: what tasks get from it, on every way on which Slurm starts them.

n0 and n1 have a TaskProlog in their slurm.conf, n2 has none: there, users name it themselves.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import readers
from cluster import wait
from readers import FOREIGN, elf

# What a task says of itself. No command is looked for: under --export=NONE there is no PATH.
SHOW = """
loaded=-
while read -r line; do case $line in */liboverlap.so) loaded=${line##* } ;; esac; done </proc/self/maps
table=$(printf %.60s "$OVERLAP_TABLE") # its checksum is in there; Slurm breaks up long lines of tasks
echo "task $SLURM_PROCID $SLURMD_NODENAME $loaded ${table:--} ${LD_PRELOAD:--} ${OVERLAP_REPORT:--} ${EVIL-}."
"""
TASK = ("/bin/sh", "-c", SHOW)
FOUR = ("-N2", "-n4", "--ntasks-per-node=2")


class Task(NamedTuple):
    rank: int
    node: str
    loaded: str
    table: str
    preload: str
    report: str
    rest: str

    @property
    def bare(self) -> bool:
        return (self.loaded, self.table, self.preload, self.report, self.rest) == ("-", "-", "-", "-", ".")


def tasks(output: str) -> list[Task]:
    """Nothing but what the tasks said."""
    lines = [line.split(" ") for line in output.splitlines()]
    assert all(words[0] == "task" for words in lines), output
    return sorted(Task(int(words[1]), *words[2:]) for words in lines)


@pytest.fixture(scope="module")
def folder(installed: Path) -> Path:
    """The site's folder, whose default is `observe`, and which other users may read."""
    return relocated(installed, installed.with_name("observing"))


def relocated(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    for file in (target / "env").iterdir():
        file.write_text(file.read_text().replace(str(source), str(target)))
    (target / "default").write_text("observe\n")
    return target


def prolog(folder: Path) -> Path:
    return folder / "libexec" / "task-prolog"


@pytest.fixture(scope="module")
def slurm(start_cluster, folder):
    two = {"n0": prolog(folder), "n1": prolog(folder)}
    return start_cluster(nodes=3, prologs=two, partitions={"site": ["n0", "n1"], "bare": ["n2"], "mixed": ["n0", "n2"]})


@pytest.fixture
def srun(slurm, tmp_path) -> Callable[..., list[Task]]:
    """Runs tasks that must end well and say nothing else, on stdout or stderr. -Q: nor srun, of its queue."""

    def run(*words: str, **environment: str) -> list[Task]:
        done = slurm.srun("-Q", *words, *TASK, env={"HOME": str(tmp_path), **environment})
        assert (done.returncode, done.stderr) == (0, "")
        return tasks(done.stdout)

    return run


@pytest.fixture
def second(slurm, folder) -> Iterator[Path]:
    """What n1 has instead, as if something were wrong with that node."""
    other = relocated(folder, folder.with_name("second"))
    slurm.prolog("n1", prolog(other))
    yield other
    slurm.prolog("n1", prolog(folder))
    shutil.rmtree(other, ignore_errors=True)


def table(folder: Path, name: str) -> str:
    return readers.exports((folder / "env" / f"{name}.env").read_text())["OVERLAP_TABLE"][:60]


def has(task: Task, folder: Path, name: str) -> bool:
    """The library is in it."""
    library = str(folder / "lib" / "liboverlap.so")
    return (task.loaded, task.table, task.preload) == (library, table(folder, name), library)


def test_every_task_on_every_node(srun, folder):
    found = srun("-N2", "-n6")
    assert [task.rank for task in found] == list(range(6))
    assert {task.node for task in found} == {"n0", "n1"}
    assert all(has(task, folder, "observe") and task.rest == "." for task in found)


@pytest.mark.parametrize("export", ["ALL", "NONE", "NIL", "X=1", "NONE,OVERLAP_POLICY=observe"])
def test_whatever_part_of_the_environment_is_passed_on(srun, folder, export):
    assert [has(task, folder, "observe") for task in srun("-N2", f"--export={export}")] == [True, True]


def test_a_batch_script_and_its_steps(slurm, folder):
    step = f"srun -n2 -N2 {TASK[0]} -c '{SHOW}'"
    done = slurm.sbatch(f"{SHOW}\n{step}\n", "-N2", "-n2")
    assert done.state == "COMPLETED", done.output
    assert len(found := tasks(done.output)) == 3
    assert all(has(task, folder, "observe") for task in found), "once, in the steps inside, too"


def test_a_batch_script_of_which_the_environment_is_not_exported(slurm, folder):
    done = slurm.sbatch(f"{SHOW}\nsrun -n2 -N2 {TASK[0]} -c '{SHOW}'\n", "-N2", "-n2", "--export=NONE")
    assert [has(task, folder, "observe") for task in tasks(done.output)] == [True, True, True]


def test_a_batch_job_may_be_switched_off_and_a_step_in_it_too(slurm):
    step = f"srun -n1 {TASK[0]} -c '{SHOW}'"
    done = slurm.sbatch(f"{SHOW}\n{step}\n", env={"OVERLAP_POLICY": "off"})
    assert [task.bare for task in tasks(done.output)] == [True, True]
    script, step = tasks(slurm.sbatch(f"{SHOW}\nOVERLAP_RUN=off {step}\n").output)
    # What the script exports reaches the step as well; the library leaves it at that.
    assert script == step and not script.bare


def test_unprivileged_there_is_a_gap_in_the_batch_step(slurm, folder, srun):
    named = {"SLURM_TASK_PROLOG": str(prolog(folder))}
    assert has(*srun("-pbare", **named), folder, "observe")
    assert has(*srun("-pbare", f"--task-prolog={prolog(folder)}"), folder, "observe")
    done = slurm.sbatch(f"{SHOW}\nsrun -n1 {TASK[0]} -c '{SHOW}'\n", "-pbare", env=named)
    script, step = done.output.splitlines()
    assert tasks(script)[0].bare and has(*tasks(step), folder, "observe")


def test_a_step_of_a_batch_script_may_choose_anew(slurm, folder):
    step = f"srun -n1 {TASK[0]} -c '{SHOW}'"
    done = slurm.sbatch(f"OVERLAP_POLICY=a40 {step}\nOVERLAP_TABLE= OVERLAP_POLICY=a40 {step}\n")
    first, second = done.output.splitlines()
    assert has(*tasks(first), folder, "observe") and has(*tasks(second), folder, "a40")


def test_a_site_may_have_another_prolog_around_it(slurm, srun, folder, tmp_path):
    own = tmp_path / "own"
    own.write_text(f"#!/bin/sh\necho export EVIL=site\n{prolog(folder)}\n")
    own.chmod(0o755)
    slurm.prolog("n1", own)
    (task,) = srun("-wn1")
    slurm.prolog("n1", prolog(folder))
    assert has(task, folder, "observe") and task.rest == "site."


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(
            lambda other: (other / "lib/liboverlap.so").write_bytes(elf(FOREIGN)), id="of another architecture"
        ),
        pytest.param(lambda other: (other / "env/observe.env").write_text("x" * 10000), id="the policy is broken"),
    ],
)
def test_on_a_node_where_something_is_wrong_tasks_run_as_ever(srun, folder, second, wrong):
    wrong(second)
    found = srun(*FOUR)
    assert [has(task, folder, "observe") for task in found if task.node == "n0"] == [True, True]
    assert [task.bare for task in found if task.node == "n1"] == [True, True]


def test_a_script_that_is_gone_is_slurms_failure_and_drains_no_node(slurm, srun, second):
    """The page for administrators says so."""
    shutil.rmtree(second)
    done = slurm.srun("-wn1", "true")
    assert done.returncode == 1
    states: list[str] = []  # the step may be completing for a while

    def is_idle() -> bool:
        states.append(slurm.run("sinfo", "-hN", "-nn1", "-o", "%t").stdout.strip())
        return states[-1] == "idle"

    assert wait(is_idle, 120) and not any(state.startswith(("drain", "drng", "down")) for state in states), states


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_who_may_not_read_everything(slurm, second, folder):
    def srun(*words: str) -> list[Task]:
        done = slurm.srun("-Q", *words, *TASK, user="nobody", group="nogroup", extra_groups=[], cwd="/")
        assert (done.returncode, done.stderr) == (0, "")
        return tasks(done.stdout)

    assert all(task.table == table(folder, "observe") for task in srun("-N2", "--export=NONE"))
    for name in ("env/observe.env", "lib/liboverlap.so", "lib", "env"):
        mode = (second / name).stat().st_mode
        (second / name).chmod(0)
        assert srun("-wn1")[0].bare
        (second / name).chmod(mode)
    (second / "default").chmod(0)
    assert srun("-wn1")[0].bare and not srun("-wn0")[0].bare


def test_a_report_has_one_folder_for_a_step(srun, folder, tmp_path):
    for _ in range(2):
        (report,) = {task.report for task in srun(*FOUR, OVERLAP_REPORT=str(tmp_path))}
        assert Path(report).parent == tmp_path and os.readlink(tmp_path / "last") == Path(report).name
    assert len(list(tmp_path.iterdir())) == 3
    assert {task.report for task in srun("-N2")} == {"-"}
