"""Streams that a policy wants raised: of communication libraries, and those that turn out to carry communication
(test_critical.py has who else waits)."""

from __future__ import annotations

import pytest
from interposing import NCCL, Build, Done, Runner, rule, same

COMM = f"launch={NCCL},16,256,0"


def carrying(priority: str = "inherit") -> str:
    more = f"critical: {{host_waits: false, feeding: false}}\ncommunication: {{priority: {priority}}}"
    return rule("leave", more=more)


def rounds(launch: str, count: int = 6) -> str:
    """Communication and a little computation on one stream, most of the computation on another one."""
    return f"launch=k,4000,256,0,2 launch=k,10,256,0,1 {launch} " * count


def of_streams(text: str) -> list[int]:
    return [int(line.split()[1]) for line in text.splitlines() if line.startswith("priority")]


def of_communication(done: Done) -> list[int]:
    return [launch["priority"] for launch in done.launches if launch["kernel"] == NCCL]


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address_v2"])
def test_a_stream_that_carries_communication_is_raised(way: str, bare: Runner, preloaded: Runner) -> None:
    """The program reads back what it has set."""
    words = f"ptx={NCCL},k stream=0 stream=0 {rounds(f'{COMM},1')} of=1 of=2"
    done, without = preloaded(words, carrying(), way), bare(words, way)
    assert of_streams(done.stdout) == of_streams(without.stdout) == [0, 0]
    assert of_communication(done)[0] == 0 and of_communication(done)[-2:] == [-5, -5]
    assert done.reasons["critical"] >= 2
    assert (done.totals["raised"], done.totals["communication"]) == (0, 6)
    assert done.stdout == without.stdout


@pytest.mark.parametrize(
    "launch",
    [
        f"{COMM},1",
        f"ex={NCCL},16,256,0,1",
        f"coop={NCCL},16,256,0,1",
        f"launch_ptsz={NCCL},16,256,0,1",
        f"ex_ptsz={NCCL},16,256,0,1",
        f"coop_ptsz={NCCL},16,256,0,1",
    ],
)
def test_however_it_is_launched(launch: str, preloaded: Runner) -> None:
    done = preloaded(f"ptx={NCCL},k stream=0 stream=0 {rounds(launch)} of=1", carrying())
    assert of_communication(done)[-2:] == [-5, -5]


def test_default_streams_stay_as_they_are(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k stream=0 stream=0 {rounds(f'{COMM} launch_ptsz={NCCL},16,256,0')} of=0"
    done = preloaded(words, carrying())
    same(done, bare(words))
    assert set(of_communication(done)) == {0}
    assert done.totals["communication"] == 12


def test_what_the_program_sets_afterwards_stays(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k stream=0 stream=0 {rounds(f'{COMM},1')} sset=1,8,-2 of=1 {rounds(f'{COMM},1')} of=1 sget=1,8"
    done, without = preloaded(words, carrying()), bare(words)
    assert of_streams(done.stdout) == of_streams(without.stdout) == [-2, -2]
    assert of_communication(done)[4:] == [-5, -5] + [-2] * 6


def test_a_stream_to_which_the_program_gave_a_priority_keeps_it(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k stream=-2 stream=0 {rounds(f'{COMM},1')} of=1"
    done = preloaded(words, carrying())
    same(done, bare(words))
    (stream,) = [one for one in done.report["processes"][0]["streams"] if "communication" in one["why"]]
    assert (stream["status"], stream["priority"]) == ("programs", None)


def test_more_streams_than_there_is_room_for(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k " + "stream=0 " * 70
    words += " ".join(rounds(f"{COMM},{stream}", 4) for stream in (1, *range(3, 71))) + " of=70"
    done, without = preloaded(words, carrying()), bare(words)
    assert done.status == without.status == 0
    assert done.stdout == without.stdout
    assert len(done.report["processes"][0]["streams"]) <= 16


def test_raised_streams_and_raised_launches(preloaded: Runner) -> None:
    """Our own raising of a stream is not taken for a priority of the program's."""
    done = preloaded(f"ptx={NCCL},k stream=0 stream=0 {rounds(f'{COMM},1')} {COMM}", carrying("auto"))
    assert "program_sets_priority" not in done.reasons


def test_while_the_stream_captures(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL} stream=0 begin=1 {COMM},1 {COMM},1 end=1 go=1,2 sync"
    done, without = preloaded(words, carrying()), bare(words)
    assert done.seen == without.seen
    assert [launch["result"] for launch in done.launches] == [0] * len(without.launches)


@pytest.mark.parametrize("policy", [rule("leave", more="communication: {priority: inherit}"), "observe"])
def test_nothing_is_raised_unasked(policy: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL} stream=0 plain blocking=-1 {COMM},1 {COMM},2 of=1 of=2 of=3"
    done = preloaded(words, policy)
    same(done, bare(words))
    assert done.totals["streams_raised"] == 0


def test_streams_of_green_contexts(bare: Runner, preloaded: Runner, build: Build) -> None:
    words = f"ptx={NCCL},k green=16 greenstream=0,0 greenstream=0,-1 of=1 of=2 launch=k,4000,256,0,1 {COMM},1 of=1 "
    words += "greenend=0"
    done, without = preloaded(words, "observe"), bare(words)
    assert "greenstream: 0" in without.stdout, without.stdout
    same(done, without)
    same(preloaded(words, carrying()), without)


def test_every_way_in_which_a_communication_library_creates_streams(
    bare: Runner, preloaded: Runner, build: Build
) -> None:
    streams = 'streams: {created_by: ["libnccl.so*"], priority: highest}'
    policy = rule("leave", more=f"communication: {{priority: inherit, {streams}}}")
    words = f"nccl={build.nccl()} green=16 nccls ncclp=0 ncclp=-2 ncclp=-5 nccli=0,0 nccli=-1,0 greenstream=0,0 "
    words += " ".join(f"of={i}" for i in range(1, 8))
    done, without = preloaded(words, policy), bare(words)
    assert of_streams(without.stdout) == [0, 0, -2, -5, 0, -1, 0]
    assert of_streams(done.stdout) == [-5] * 6 + [0]
    assert done.totals["streams_raised"] == 5


def test_a_stream_at_the_address_of_a_raised_one_has_the_programs_priority(preloaded: Runner, build: Build) -> None:
    """`auto` ends where the program sets a priority; one that a destroyed stream had from us is none."""
    streams = 'streams: {created_by: ["libnccl.so*"], priority: highest}'
    policy = rule("leave", more=f"communication: {{priority: auto, {streams}}}")
    words = f"nccl={build.nccl()} ptx={NCCL} ncclp=0 of=1 {COMM},1 destroy=1 stream=-2 of=2 {COMM},2"
    done = preloaded(words, policy)
    assert of_streams(done.stdout) == [-5, -2]
    assert done.totals["streams_raised"] == 1
    assert done.launches[0]["stream"] == done.launches[1]["stream"]
    assert of_communication(done) == [-5, -2]
    assert done.reasons["program_sets_priority"] == 1


def test_wrong_streams_are_the_drivers_to_refuse(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL} stream=0 destroy=1 of=1 destroy=1 destroy=0 sset=1,8,-1 {COMM},1 {COMM}"
    done, without = preloaded(words, rule("leave")), bare(words)
    assert done.seen == without.seen
