"""The SPANK plugin in a real Slurm: srun, sbatch and salloc --comm-overlap."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cluster
import pytest
import readers
import spank

# What a task tells of itself, in a line: its node, its variables of ours and of a policy, whether the library is in it.
TELL = (
    r"""echo "TASK $SLURMD_NODENAME $(/usr/bin/env | """
    r"""/usr/bin/grep -E '^(OVERLAP_|LD_PRELOAD=|TORCH_|NCCL_)' | /usr/bin/tr '\n' ' ')"""
    r"""mapped=$(/usr/bin/grep -c -m1 liboverlap /proc/self/maps)" """
)
TASK = ("/bin/sh", "-c", TELL)
STEP = shlex.join(TASK)  # in a script
LED = f"lib/$PLATFORM/{spank.NAME}"  # the loader puts in a folder


class Task(dict[str, str]):
    """The variables that a task told, and `mapped`."""

    def __init__(self, line: str) -> None:
        word, self.node, *pairs = line.split()
        assert word == "TASK"
        super().__init__(pair.split("=", 1) for pair in pairs)


def told(output: str) -> list[Task]:
    return [Task(line) for line in output.splitlines() if line.startswith("TASK ")]


@pytest.fixture(scope="module")
def nodes(start_cluster: Callable[..., cluster.Cluster], installed: Path) -> cluster.Cluster:
    """Two nodes, each with a TaskProlog that does nothing until a test exchanges it."""
    return start_cluster(prologs=Path("/bin/true"))


@pytest.fixture
def slurm(nodes: cluster.Cluster, plugin: Path, installed: Path) -> Iterator[cluster.Cluster]:
    nodes.plugstack.write_text(f"optional {plugin} prefix={installed}\n")
    yield nodes
    nodes.plugstack.write_text("")


def under(installed: Path, name: str) -> dict[str, str]:
    """What a task has under a policy."""
    said = readers.exports((installed / "env" / f"{name}.env").read_text())
    return {**said, "LD_PRELOAD": f"{installed}/{LED}", "mapped": "1"}


BARE = {"mapped": "0"}
OFF = {"mapped": "0", "OVERLAP_RUN": "off"}
OWN_IN_VAIN = {"mapped": "0", "OVERLAP_POLICY": "off"}


def without_marks(task: Task) -> dict[str, str]:
    return {name: value for name, value in task.items() if not name.startswith("OVERLAP_ADDED_")}


def each(done: Any) -> list[dict[str, str]]:
    """What the tasks of an srun, salloc or batch job told, without our marks."""
    assert getattr(done, "returncode", 0) == 0 and getattr(done, "status", 0) == 0, done
    return [without_marks(task) for task in told(done.output if hasattr(done, "output") else done.stdout)]


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    """stderr without what srun says of waiting."""
    return [line for line in done.stderr.splitlines() if not re.match(r"srun: job \d+ (queued|has been)", line)]


@pytest.mark.parametrize("command", ["srun", "sbatch", "salloc"])
def test_help_tells(slurm: cluster.Cluster, command: str) -> None:
    assert "--comm-overlap=POLICY|off" in slurm.run(command, "--help").stdout


@pytest.mark.parametrize("options", [(), ("--export=NONE",), ("--export=NIL",), ("--export=A=1",)])
def test_every_task_of_two_nodes_has_the_policy(
    slurm: cluster.Cluster, installed: Path, options: tuple[str, ...]
) -> None:
    done = slurm.srun("-N2", "-n4", *options, "--comm-overlap=own", *TASK)
    assert each(done) == [under(installed, "own")] * 4
    assert {task.node for task in told(done.stdout)} == set(slurm.nodes)
    assert not complaints(done)


def test_without_the_option_nothing_is_done(slurm: cluster.Cluster) -> None:
    assert each(slurm.srun("-N2", *TASK)) == [BARE] * 2


def test_who_chooses_where_nobody_says_it(slurm: cluster.Cluster, plugin: Path, installed: Path) -> None:
    assert each(slurm.srun(*TASK, env={"OVERLAP_POLICY": "own"})) == [
        {**under(installed, "own"), "OVERLAP_POLICY": "own"}
    ]
    slurm.plugstack.write_text(f"optional {plugin} prefix={installed} default=observe\n")
    assert each(slurm.srun(*TASK)) == [under(installed, "observe")]
    assert each(slurm.srun("--comm-overlap=off", *TASK)) == [OFF]
    assert each(slurm.srun(*TASK, env={"OVERLAP_RUN": "off"})) == [OFF]


BATCH = f"""
{TELL}
srun -N2 -n2 {STEP}
srun -N1 -n1 --comm-overlap=off {STEP}
srun -N1 -n1 --comm-overlap=observe {STEP}
"""


@pytest.mark.parametrize("options", [(), ("--export=NONE",)])
def test_a_batch_script_and_its_steps(slurm: cluster.Cluster, installed: Path, options: tuple[str, ...]) -> None:
    mine = {} if options else {"LD_PRELOAD": str(next(Path("/usr/lib").glob("*/libm.so.6"))), "TORCH_MINE": "1"}
    done = slurm.sbatch(BATCH, "-N2", "-n2", "--comm-overlap=own", *options, env=mine)
    script, *steps, off, other = each(done)
    first = {"LD_PRELOAD": ":".join(filter(None, (f"{installed}/{LED}", mine.get("LD_PRELOAD"))))}
    assert [script, *steps] == [{**mine, **under(installed, "own"), **first}] * 3
    assert off == {**mine, **OFF}
    assert other == {**mine, **under(installed, "observe"), **first}


def test_off_for_a_batch_script(slurm: cluster.Cluster, installed: Path) -> None:
    script, *steps, off, other = each(slurm.sbatch(BATCH, "-N2", "-n2", "--comm-overlap=off"))
    assert [script, *steps, off] == [OFF] * 4
    assert other == under(installed, "observe")


def test_salloc(slurm: cluster.Cluster, installed: Path) -> None:
    done = slurm.run("salloc", "-N2", "--comm-overlap=own", "srun", *TASK)
    assert each(done) == [under(installed, "own")] * 2
    assert each(slurm.run("salloc", "--comm-overlap=own", "srun", "--comm-overlap=off", *TASK)) == [OFF]


@pytest.mark.parametrize("command", [("srun", "true"), ("sbatch", "--wrap", "true"), ("salloc", "true")])
@pytest.mark.parametrize("word", ["own2", "../env/own", "", "own,observe"])
def test_a_bad_name_is_refused_before_anything_is_queued(
    slurm: cluster.Cluster, installed: Path, command: tuple[str, ...], word: str
) -> None:
    before = _last_job(slurm)
    done = slurm.run(command[0], f"--comm-overlap={word}", *command[1:])
    assert done.returncode != 0
    ours, slurms = done.stderr.splitlines()
    names = ", ".join(["off", *sorted(file.stem for file in (installed / "env").glob("*.env"))])
    assert re.fullmatch(rf"{command[0]}: error: --comm-overlap: [^:]*: choose {re.escape(names)}", ours)
    assert slurms == f"{command[0]}: error: Invalid --comm-overlap argument: {word}"
    assert _last_job(slurm) == before


def _last_job(slurm: cluster.Cluster) -> str:
    return re.findall(r"NEXT_JOB_ID\s*=\s*(\d+)", slurm.run("scontrol", "show", "config").stdout)[0]


# --- with what else there is


def test_beside_a_task_prolog(slurm: cluster.Cluster, installed: Path, site: Path) -> None:
    """It runs behind us, and leaves alone what it finds."""
    (site / "default").write_text("observe\n")
    for node in slurm.nodes:
        slurm.prolog(node, site / "libexec" / "task-prolog")
    try:
        assert each(slurm.srun("-N2", "--comm-overlap=own", *TASK)) == [under(installed, "own")] * 2
        assert each(slurm.srun("-N2", "--comm-overlap=off", *TASK)) == [OFF] * 2
        assert each(slurm.srun("-N2", *TASK)) == [under(site, "observe")] * 2
        done = slurm.sbatch(BATCH, "-N2", "-n2", "--comm-overlap=own")
        wanted = [*[under(installed, "own")] * 3, OFF, under(installed, "observe")]
        assert each(done) == wanted
    finally:
        for node in slurm.nodes:
            slurm.prolog(node, None)


def test_a_task_prolog_does_not_choose_where_the_option_has(
    slurm: cluster.Cluster, plugin: Path, site: Path, tmp_path: Path
) -> None:
    """The plugin does not find the policy; then the prolog gives none."""
    (site / "default").write_text("observe\n")
    slurm.plugstack.write_text(f"optional {plugin} prefix={tmp_path}/nowhere\n")
    for node in slurm.nodes:
        slurm.prolog(node, site / "libexec" / "task-prolog")
    try:
        assert each(slurm.srun("-N2", "--comm-overlap=own", *TASK)) == [OWN_IN_VAIN] * 2
        assert each(slurm.srun("-N2", *TASK)) == [under(site, "observe")] * 2
    finally:
        for node in slurm.nodes:
            slurm.prolog(node, None)


def test_inside_of_a_module(slurm: cluster.Cluster, installed: Path) -> None:
    """What it set gives way to the option, and stands without one."""
    module = {"OVERLAP_TABLE": "module", "LD_PRELOAD": f"{installed}/{LED}"}
    assert each(slurm.srun(*TASK, env=module)) == [{**module, "mapped": "1"}]
    assert each(slurm.srun("--comm-overlap=own", *TASK, env=module)) == [under(installed, "own")]
    assert each(slurm.srun("--comm-overlap=off", *TASK, env=module)) == [OFF]


@pytest.fixture(scope="module")
def hide(plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hide") / "hide.so"
    source = Path(__file__).with_name("spank_hide.c")
    command = [*spank.compiler(), "-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", str(source), "-o", str(made)]
    subprocess.run(command, check=True)
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    return made


@pytest.mark.parametrize("when", ["user_init", "task_init"])
def test_in_a_container(slurm: cluster.Cluster, plugin: Path, hide: Path, installed: Path, when: str) -> None:
    """The policy is read outside; the library is looked for inside."""
    ours = f"optional {plugin} prefix={installed}\n"
    slurm.plugstack.write_text(f"required {hide} {when} {installed}/env\n{ours}")
    done = slurm.srun("-N2", "--comm-overlap=own", "/bin/sh", "-c", f"ls {installed}/env; {TELL}")
    assert each(done) == [under(installed, "own")] * 2
    assert len(done.stdout.splitlines()) == 2, "the folder is hidden indeed"
    slurm.plugstack.write_text(f"required {hide} {when} {installed}/lib\n{ours}")
    done = slurm.srun("-N2", "--comm-overlap=own", *TASK)
    assert each(done) == [BARE] * 2
    assert not complaints(done), "not even the loader"


# --- what is broken


def test_a_missing_folder_stops_nobody(slurm: cluster.Cluster, plugin: Path, tmp_path: Path) -> None:
    slurm.plugstack.write_text(f"optional {plugin} prefix={tmp_path}/nowhere\n")
    assert each(slurm.srun(*TASK)) == [BARE]
    done = slurm.srun("--comm-overlap=own", *TASK)
    assert each(done) == [OWN_IN_VAIN]
    (sentence,) = complaints(done)
    assert sentence.startswith(f"srun: --comm-overlap: {tmp_path}/nowhere/env cannot be read here: ")
    assert each(slurm.sbatch(TELL, "--comm-overlap=own")) == [OWN_IN_VAIN]


def test_the_library_is_missing_on_one_node(slurm: cluster.Cluster, plugin: Path, hide: Path, installed: Path) -> None:
    if not slurm.own_hostnames:
        pytest.skip("nodes cannot be told apart here")
    slurm.plugstack.write_text(f"required {hide} user_init {installed}/lib n1\noptional {plugin} prefix={installed}\n")
    done = slurm.srun("-N2", "--comm-overlap=own", *TASK)
    assert {task.node: without_marks(task) for task in told(done.stdout)} == {"n0": under(installed, "own"), "n1": BARE}
    assert done.returncode == 0
    assert not complaints(done)
    script = f"{TELL}\nsrun -N1 -n1 -w n1 {STEP} 2>&1"
    done = slurm.sbatch(script, "-N2", "-n2", "--comm-overlap=own")
    outside, inside = each(done)
    assert outside == under(installed, "own")
    assert "LD_PRELOAD" not in inside, "what leaks in from the script cannot be loaded here"
    assert "ld.so" not in done.output


def test_a_policy_that_is_no_policy(slurm: cluster.Cluster, plugin: Path, site: Path) -> None:
    evil = (
        "export LD_PRELOAD=/tmp/evil.so\nexport PATH=/evil\nexport BASH_ENV=/evil\nprint evil\nexport TORCH_EVIL=a b\n"
    )
    file = site / "env" / "evil.env"
    slurm.plugstack.write_text(f"optional {plugin} prefix={site}\n")
    file.write_text(evil)
    assert each(slurm.srun("--comm-overlap=evil", *TASK)) == [{**BARE, "OVERLAP_POLICY": "off"}]
    file.write_text(evil + (site / "env" / "own.env").read_text())
    done = slurm.srun("--comm-overlap=evil", "/bin/sh", "-c", f'{TELL}; echo "$PATH $BASH_ENV"')
    assert each(done) == [under(site, "own")]
    assert "evil" not in done.stdout
    file.write_bytes(os.urandom(100_000))
    assert each(slurm.srun("--comm-overlap=evil", *TASK)) == [{**BARE, "OVERLAP_POLICY": "off"}]


def test_without_slurms_headers_the_build_says_what_to_install() -> None:
    command = ["make", "-B", "-C", str(spank.SOURCES), "CC=cc -nostdinc", "overlap.so"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == (
        "make: no slurm/spank.h: install libslurm-dev (slurm-devel), or say SLURM=FOLDER above include/"
    )


def test_a_plugin_for_another_release_of_slurm(slurm: cluster.Cluster, installed: Path, tmp_path: Path) -> None:
    shutil.copytree(spank.HEADER.parent, tmp_path / "include" / "slurm")
    version = tmp_path / "include" / "slurm" / "slurm_version.h"
    text = version.read_text()
    version.write_text(re.sub(r"(#define SLURM_VERSION_NUMBER) .*", r"\1 0x170200", text))
    other = spank.build(tmp_path / "spank", tmp_path)
    slurm.plugstack.write_text(f"optional {other} prefix={installed}\n")
    done = slurm.srun(*TASK)
    assert each(done) == [BARE]
    assert "Incompatible plugin version" in done.stderr
    slurm.plugstack.write_text(f"required {other} prefix={installed}\n")
    assert slurm.srun("true").returncode != 0, "which is why plugstack.conf says optional"
