"""Open MPI: on this machine, and on hosts that an agent reaches without the environment."""

from __future__ import annotations

import json
import subprocess

import pytest
from seen import OVERLAP_RUN

from pyshim.start import plan

POLICY = "policy: 1\nname: p\nenvironment: {MY_OWN: x=y==}\n"
LIST = "OMPI_MCA_mca_base_env_list"


@pytest.fixture
def ranks(run, mpi):
    def command(*words, env=None, **more):
        return run(*words, env={**mpi.environment, **(env or {})}, **more)

    return command


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "p.yaml").write_text(POLICY)
    return str(tmp_path / "p.yaml")


def test_outside_all_hosts_get_everything(ranks, mpi, show, policy):
    done = ranks(OVERLAP_RUN, "--policy", policy, *mpi.hosts(mpi.here, "n1", "n2"), *show)
    assert done.status == 0, done.stderr
    assert [(rank.rank, rank.world) for rank in done.ranks] == [(0, 3), (1, 3), (2, 3)]
    assert done.mapped == [True] * 3
    for name in ("OVERLAP_TABLE", "LD_PRELOAD", "MY_OWN"):
        assert len(set(done.values(name))) == 1
        assert done.values(name)[0]
    assert done.values("MY_OWN") == ["x=y=="] * 3
    assert done.values("LD_PRELOAD")[2] == plan.LIBRARY
    assert "without" not in done.stderr


def test_a_policy_arrives_as_it_is(ranks, mpi, show, table):
    policy, seen = table
    for hosts in ((*mpi.alone, "-np", "2"), mpi.hosts(mpi.here, "n1")):
        done = ranks(OVERLAP_RUN, "--policy", policy, *hosts, *show)
        assert done.values("OVERLAP_TABLE") == [seen, seen], done.stderr


def test_inside_all_hosts_get_everything(ranks, mpi, show, policy):
    done = ranks(*mpi.hosts(mpi.here, "n1", "n2"), OVERLAP_RUN, "--policy", policy, *show)
    assert (done.mapped, done.values("MY_OWN")) == ([True] * 3, ["x=y=="] * 3), done.stderr
    assert done.stderr.count("overlap: ") == done.stderr.count("overlap: no GPU driver") <= 1, "rank 0 speaks"


def test_on_one_host_and_both_ways_at_once_the_library_is_there_once_and_the_inner_word_counts(ranks, mpi, show):
    inner = (OVERLAP_RUN, "--policy", "h100")
    both = ranks(OVERLAP_RUN, "--policy", "observe", *mpi.alone, "-np", "2", *inner, *show)
    assert both.mapped == [True, True], both.stderr
    (preloads,) = set(both.values("LD_PRELOAD"))
    assert preloads and preloads.count("liboverlap.so") == 1 and ":" not in preloads
    assert both.values("OVERLAP_TABLE") == ranks(*inner, *show).values("OVERLAP_TABLE") * 2
    outer = ranks(OVERLAP_RUN, "--policy", "observe", *mpi.hosts("n1", "n2"), OVERLAP_RUN, *show)
    assert outer.values("OVERLAP_TABLE") == ranks(OVERLAP_RUN, "--policy", "observe", *show).values("OVERLAP_TABLE") * 2


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ({LIST: "MINE;THEIRS=3", "MINE": "1"}, ("1", "3")),
        ({LIST: "MINE#THEIRS=3;4", f"{LIST}_delimiter": "#", "MINE": "1"}, ("1", "3;4")),
    ],
)
def test_the_users_own_list_still_arrives(ranks, mpi, show, base, expected):
    done = ranks(OVERLAP_RUN, "--policy", "observe", *mpi.hosts("n1"), *show, env=base)
    assert (done.mapped, done.values("MINE") + done.values("THEIRS")) == ([True], list(expected)), done.stderr


def test_a_list_in_a_file_of_the_user_still_arrives(ranks, mpi, show, tmp_path):
    (tmp_path / ".openmpi").mkdir()
    (tmp_path / ".openmpi" / "mca-params.conf").write_text("mca_base_env_list = THEIRS=3\n")
    done = ranks(OVERLAP_RUN, "--policy", "observe", *mpi.hosts("n1"), *show, env={"HOME": str(tmp_path)})
    assert (done.status, done.values("THEIRS"), done.mapped) == (0, ["3"], [False])
    assert "mpirun with --host starts programs without this environment" in done.stderr


def test_with_the_users_x_it_runs_as_asked_and_what_we_say_helps(ranks, mpi, show, policy):
    """Both ways of naming variables together end mpirun."""
    launch = mpi.hosts(mpi.here, "n1")
    launch = (*launch[:1], "-x", "MINE", *launch[1:])
    words = (OVERLAP_RUN, "--policy", policy, *launch)
    done = ranks(*words, *show, env={"MINE": "1"})
    assert (done.status, done.values("MINE")) == (0, ["1", "1"]), done.stderr
    instead = ranks(*launch, *done.advice, *show, env={"MINE": "1"})
    assert (instead.mapped, instead.values("MY_OWN")) == ([True, True], ["x=y=="] * 2), instead.stderr
    assert ranks(OVERLAP_RUN, "--strict", *words[1:], "true", env={"MINE": "1"}).status == 125


def test_a_dry_run_shows_what_is_set_for_the_launcher(ranks, mpi):
    done = ranks(OVERLAP_RUN, "--policy", "observe", "--dry-run", *mpi.hosts("n1"), "true")
    (line,) = [line for line in done.stderr.splitlines() if LIST in line]
    assert line.startswith(f"overlap: would set {LIST}=LD_PRELOAD=/")
    assert "no GPU driver" not in done.stderr, "the ranks are not on this machine"


def test_exit_status_and_output_are_mpiruns(ranks, mpi):
    at_once = ("--mca", "odls_base_sigkill_timeout", "0")
    words = (*mpi.alone, *at_once, "-np", "2", "sh", "-c", "echo out; exit $((OMPI_COMM_WORLD_RANK * 7))")
    done = ranks(OVERLAP_RUN, "--policy", "observe", *words)
    assert (done.status, set(done.stdout.split("\n"))) == (7, {"out", ""})
    assert ranks(*mpi.alone, *at_once, "-np", "1", OVERLAP_RUN, "--quiet", "sh", "-c", "exit 9").status == 9


def test_a_job_on_two_hosts_has_one_report_by_rank(ranks, mpi, build, overlap, tmp_path):
    """The simulated GPU travels with the rest, and only rank 0 sums up, however many processes there are."""
    client = (str(build.client()), "ptx=k", "repeat=3", "launch=k,4000,256,0")
    report = str(tmp_path / "r")
    words = ("--simulate", "h100", "--policy", "observe", "--report", report)
    done = ranks(OVERLAP_RUN, *words, *mpi.hosts("n1", "n2"), *client)
    assert done.status == 0, done.stderr
    said = "observed; the default would raise no stream (0 of 3 launches)"
    assert done.stderr.count(f"overlap: rank 0 of 2: {said}") == done.stderr.count(said) == 1
    answer = json.loads(overlap("report", report, "--json").stdout)
    assert [process["rank"] for process in answer["processes"]] == [0, 1]
    assert answer["totals"]["launches"] == 6


def test_mpirun_itself_and_its_agents_stay_quiet(ranks, mpi):
    """Shells, agents and daemons under the preload say nothing; only the driver's absence is said, by overlap-run."""
    bare = ranks(*mpi.hosts("n1", "n2"), "sh", "-c", "ls / >/dev/null")
    ours = ranks(OVERLAP_RUN, "--policy", "observe", *mpi.hosts("n1", "n2"), "sh", "-c", "ls / >/dev/null")
    assert (ours.status, ours.stdout) == (bare.status, bare.stdout) == (0, "")
    assert "overlap" not in ours.stderr
    assert "ld.so" not in ours.stderr


def test_compiled_for_mpi(ranks, mpi, tmp_path):
    """A program that uses MPI itself."""
    (tmp_path / "ring.c").write_text(
        "#include <mpi.h>\n#include <stdio.h>\n"
        "int main(int argc, char **argv) { int rank, sum; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);"
        " MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);"
        ' if (!rank) printf("%d\\n", sum); return MPI_Finalize(); }\n'
    )
    subprocess.run(["mpicc", str(tmp_path / "ring.c"), "-o", str(tmp_path / "ring")], check=True, env=None)
    for words in (
        (OVERLAP_RUN, "--quiet", *mpi.alone, "-np", "3", str(tmp_path / "ring")),
        (*mpi.alone, "-np", "3", OVERLAP_RUN, "--quiet", str(tmp_path / "ring")),
    ):
        done = ranks(*words)
        assert (done.status, done.stdout) == (0, "3\n"), done.stderr
