"""Overlap windows where programs are many, long, racing, or at their end: tests/programs/windows_hazards.c."""

from __future__ import annotations

from typing import Callable

import pytest
from interposing import NCCL, ONE, Build, Done, Runner, rule
from windowing import POLICY

from pyshim.launch import plan

Hazard = Callable[..., Done]
# Outside before communication, inside after it, outside behind a wait for it.
WORKS = ".ci."


@pytest.fixture
def hazard(build: Build, preloaded: Runner, bare: Runner) -> Hazard:
    """hazard(case, number): the process, which must see what it sees without us."""
    program = build("windows-hazards", "windows_hazards.c", link=[plan.SIMULATED_DRIVER])
    env = {"SIMGPU_MULTIPROCESSORS": "2", "SIMGPU_INVALID": "crashes"}

    def run(case: str, number: int = 0) -> Done:
        words = [case, str(number)]
        done, without = preloaded(words, POLICY, program=program, env=env), bare(words, program=program, env=env)
        assert (done.status, done.stdout, done.stderr) == (0, "bad: 0\n", ""), done
        assert without.stdout == done.stdout, "nothing was tested"
        assert sum(done.reasons.values()) == done.totals["launches"]
        assert done.reasons.get("shaped", 0) == answers(done).count("i")
        assert max(done.reasons.values()) < 1 << 32
        return done

    return run


def answers(done: Done) -> str:
    """Of launches in the driver's log: i shaped, . not, c communication, - other kernels."""
    letters = {"k": "", "other": "-"}
    return "".join(
        letters.get(launch["kernel"], "c") or ("i" if launch["dynamic_shared"] else ".") for launch in done.launches
    )


@pytest.mark.parametrize("count", [100, 10_000])
def test_many_streams(count: int, hazard: Hazard) -> None:
    assert answers(hazard("streams", count)) == "cici." + WORKS


def test_more_streams_than_places(hazard: Hazard) -> None:
    """Those beyond are outside; once they are gone it is as before."""
    found = answers(hazard("streams", 40_000))
    assert found[0] + found[-4:] == "c" + WORKS
    assert found[1:5] in (".c..", "ici.")


@pytest.mark.parametrize("count", [1000, 1_000_000])
def test_events_that_are_never_destroyed(count: int, hazard: Hazard) -> None:
    """A million that mean something fill the table; those recorded afterwards still tell what they know."""
    assert answers(hazard("events", count)) == "c.c" + WORKS + "ci"


def test_polling_after_events_were_lost_closes_no_window(hazard: Hazard) -> None:
    assert answers(hazard("polled", 200_000)) == "c.c" + WORKS + "cici"


@pytest.mark.parametrize("per_thread", [0, 1])
def test_communication_from_a_thread_that_exits(per_thread: int, hazard: Hazard) -> None:
    assert answers(hazard("exits", per_thread)) == WORKS


def test_communication_from_many_threads_that_exit(hazard: Hazard) -> None:
    assert answers(hazard("many_threads", 300)) == "c" * 300 + WORKS


@pytest.mark.parametrize("case", ["forks", "forks_busy"])
def test_a_child_of_a_process_with_windows_ends(case: str, hazard: Hazard) -> None:
    """...whatever other threads were doing, and has no windows of its parent's."""
    done = hazard(case, 8)
    children = [process for process in done.report["processes"] if process["forked"]]
    assert [child["launches"] for child in children] == [1] * 8
    assert [child["reasons"] for child in children] == [{"unknown_footprint": 1}] * 8


def test_unseen_launches_on_the_legacy_stream_pass_on_what_nobody_knows(hazard: Hazard) -> None:
    """No rule is for them, so they go their way without a look."""
    assert answers(hazard("unseen")) == "---c." + WORKS


def test_contexts_come_and_go(hazard: Hazard) -> None:
    done = hazard("contexts", 40)
    assert answers(done) == WORKS * 41
    assert done.reasons == {"communication": 41, "shaped": 41, "launched_before": 41, "not_overlapping": 41}


def test_more_contexts_at_once_than_are_known(hazard: Hazard) -> None:
    assert answers(hazard("at_once", 24)).endswith(WORKS)


def test_a_device_that_is_reset(hazard: Hazard) -> None:
    """What its streams were waiting for is over; nobody waits for it on the host."""
    assert answers(hazard("reset", 5)) == ("c." + WORKS) * 5


@pytest.mark.parametrize("count", [1, 4000, 40_000])
def test_many_instances_of_graphs(count: int, hazard: Hazard) -> None:
    """The newest that holds communication opens a window."""
    assert answers(hazard("graphs", count))[-4:] == WORKS


def test_more_instances_of_graphs_than_there_is_room_for(hazard: Hazard) -> None:
    """Those that live keep their room, and the newest opens no window: nothing is claimed of it."""
    assert answers(hazard("graphs", 100_000))[-4:] == ".c.."


def test_an_event_that_other_processes_know(hazard: Hazard) -> None:
    assert answers(hazard("ipc", 0)) == "ci" + "ci" + WORKS
    assert answers(hazard("ipc", 1)) == "ci" + "c." + WORKS


@pytest.mark.parametrize("exported", [0, 1])
def test_an_event_of_another_process(exported: int, hazard: Hazard) -> None:
    assert answers(hazard("imported", exported)) == ("c." if exported else "ci")


def test_streams_that_get_the_address_of_one_that_had_waited(hazard: Hazard) -> None:
    assert answers(hazard("again", 50)) == "c." * 50 + "i" + "ci."


def test_nothing_is_lost_while_a_large_context_ends(hazard: Hazard) -> None:
    """The others wait for it as long as that takes."""
    assert answers(hazard("busy", 3)).endswith(WORKS + "ci")


def test_without_memory_for_it_nothing_is_shaped_and_that_is_said(build: Build, preloaded: Runner) -> None:
    little = build.library("liblittle.so", "little_memory.c", "-DLARGE=24", "-DLARGEST=43")
    words = f"ptx=k,{NCCL} stream=0 stream=0 launch={NCCL},16,256,0,1 repeat=3 launch=k,4000,256,0,2"
    done = preloaded(words, rule("{blocks_per_sm: 1}", when="overlapping"), preload=f"{{}}:{little}")
    assert done.status == 0 and done.reasons == {"communication": 1, "not_overlapping": 3}
    assert done.stderr.count("there is no memory for overlap windows") == 1


@pytest.mark.hazard("resources", "a process with little memory left loses its launches, or crashes")
def test_without_memory_for_its_tables_the_library_does_nothing_and_says_so(
    build: Build, bare: Runner, preloaded: Runner
) -> None:
    little = build.library("liblittle-tables.so", "little_memory.c", "-DLARGE=44", "-DLARGEST=120")
    words = f"ptx=k,{NCCL} stream=0 launch={NCCL},16,256,0,1 repeat=3 launch=k,4000,256,0"
    done, without = preloaded(words, ONE, preload=f"{{}}:{little}"), bare(words)
    assert (done.status, done.stdout, done.launches) == (without.status, without.stdout, without.launches)
    assert done.stderr == "overlap: there is no memory for the library's tables: nothing is done here\n"


def test_streams_and_events_that_all_threads_use_at_once(hazard: Hazard) -> None:
    """tools/verify/sanitize.py has the same under its sanitizers."""
    done = hazard("races", 4000)
    assert answers(done)[-4:] == WORKS
    assert done.reasons["shaped"] > 100
