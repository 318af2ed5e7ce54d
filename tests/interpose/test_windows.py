"""Overlap windows as programs see them: reasons in the report, fields of the trace, what `auto` does, findings."""

from __future__ import annotations

import pytest
from interposing import NCCL
from windowing import ALWAYS, AUTO, POLICY, STREAMS, Windowed, windowed

from pyshim.stats.trace import Launch

__all__ = ["windowed"]

K, C = "ks1,0,0,0 ", "cs0,0,0,0 "
WAIT = "rs0,0,0,0 ws1,0,0,0 "
BACK = "rs1,1,0,0 ws0,1,0,0 "


def test_only_what_can_overlap_is_shaped(windowed: Windowed) -> None:
    program = STREAMS + K * 2 + C + K * 3 + "ks0,0,0,0 " * 4 + WAIT + K * 5
    ran = windowed(program)
    assert ran.reasons == {"launched_before": 2, "shaped": 3, "same_stream": 4, "not_overlapping": 5}
    assert sum(ran.done.reasons.values()) == ran.done.totals["launches"] == 15
    shaped = [launch["dynamic_shared"] > 0 for launch in ran.done.launches]
    assert shaped == [False] * 3 + [True] * 3 + [False] * 9


@pytest.mark.parametrize("kind", ["k", "k_ex"])
def test_a_window_closes_after_exactly_512(kind: str, windowed: Windowed) -> None:
    launch = "ks1,0,0,0 " if kind == "k" else "ks1,0,1,0 "
    ran = windowed(STREAMS + C + launch * 700 + C + launch * 10)
    assert ran.reasons == {"shaped": 522, "window_expired": 188}
    assert [launch["dynamic_shared"] > 0 for launch in ran.done.launches[1:701]] == [True] * 512 + [False] * 188


def test_each_stream_has_512_of_its_own(windowed: Windowed) -> None:
    ran = windowed(STREAMS + C + (K + "ks2,0,0,0 ") * 600)
    assert ran.reasons == {"shaped": 1024, "window_expired": 176}


def test_launches_by_turns_use_up_no_more(windowed: Windowed) -> None:
    """What a thread was granted for a stream and has not taken is given back."""
    ran = windowed(STREAMS + C + (K + "ks3,0,0,0 as3,0,0,0 ks2,0,0,0 ") * 500)
    assert ran.reasons == {"shaped": 1500}


def of(launches: list[Launch], kernel: str) -> list[Launch]:
    return [launch for launch in launches if launch.kernel == kernel]


def test_the_trace_names_what_it_could_overlap(windowed: Windowed) -> None:
    ran = windowed(STREAMS + K + C + K + "cs2,0,0,0 " + K + WAIT + K + "rs2,1,0,0 ws1,1,0,0 " + K, trace=True)
    first, second = [launch.sequence for launch in of(ran.launches, NCCL)]
    assert ran.answers == "oiiio"
    named = [launch.could_overlap for launch in of(ran.launches, "k")]
    assert named == [None, first, second, second, None]
    # What was launched before is found out later: the trace says what was done then.
    assert [launch.reason for launch in of(ran.launches, "k")] == ["not_overlapping"] + ["shaped"] * 3 + [
        "not_overlapping"
    ]


def test_always_is_not_asked(windowed: Windowed) -> None:
    ran = windowed(STREAMS + K + C + K + WAIT + K, ALWAYS, trace=True)
    assert ran.answers == "---"
    assert ran.reasons == {"shaped": 3}
    assert windowed(STREAMS + K + C + K + WAIT + K, ALWAYS).reasons == {"shaped": 3}


PROGRAMS = {
    "synchronous copy": (C + "dl0,0,0,0 " + K, "i"),
    "synchronous copy, communication blocking": ("cs3,0,0,0 dl0,0,0,0 " + K, "o"),
    "elapsed time": ("rs0,0,0,0 " + C + "rs0,1,0,0 ys0,0,0,0 T--,0,1,0 " + K, "o"),
    "stream destroyed": (C + "xs0,0,0,0 ns0,1,0,0 " + K, "i"),
    "stream destroyed that had waited": (C + WAIT + "xs1,0,0,0 ns1,1,0,0 " + K, "i"),
    "event destroyed": (C + "rs0,0,0,0 z--,0,0,0 e--,0,0,0 ws1,0,0,0 " + K, "i"),
    "event destroyed, recorded again": (C + "rs1,0,0,0 z--,0,0,0 e--,0,0,0 rs0,0,0,0 ws1,0,0,0 " + K, "o"),
    "graph with communication": (
        "bs0,0,0,0 cs0,0,0,0 Es0,0,0,0 " + K + "gs2,0,0,0 " + K + "rs2,0,0,0 ws1,0,0,0 " + K,
        "oio",
    ),
    "child graph with communication": (
        "bs0,0,0,0 cs0,0,0,0 Es0,0,0,0 B--,1,0,0 gs2,1,0,0 " + K + "rs2,0,0,0 ws1,0,0,0 " + K,
        "io",
    ),
    "grandchild": ("bs0,0,0,0 cs0,0,0,0 Es0,0,0,0 B--,1,0,0 B--,2,1,0 gs2,2,0,0 " + K, "i"),
    "added by hand": ("N--,0,1,0 " + "gs2,0,0,0 " + K, "i"),
    "graph without": ("bs0,0,0,0 as0,0,0,0 Es0,0,0,0 gs2,0,0,0 " + K, "o"),
    "graph destroyed": ("bs0,0,0,0 cs0,0,0,0 Es0,0,0,0 G--,0,0,0 bs0,0,0,0 as0,0,0,0 Es0,0,0,0 gs2,0,0,0 " + K, "o"),
    "captures by two threads": (
        "bs0,0,0,0 bs2,0,0,1 rs0,0,0,0 ws1,0,0,0 cs0,0,0,0 cs2,0,0,1 ks2,0,0,1 ks1,0,0,0 rs1,1,0,0 ws0,1,0,0 "
        "Es2,1,0,1 ks2,0,0,1 Es0,0,0,0 " + K,
        "oioo",
    ),
    "capture beside launches": (C + "bs1,0,0,0 " + K + "ks2,0,0,0 Es1,0,0,0 " + K, "oii"),
    "recorded by one thread, waited for by another": (C + "rs0,0,0,0 ws1,0,0,1 ks1,0,0,1 ks2,0,0,1 ", "oi"),
    "synchronised by another": (C + "ys0,0,0,1 " + K, "o"),
    "default streams of threads": ("cp0,0,0,1 kp0,0,0,0 kp0,0,0,1 dp0,0,0,1 kp0,0,0,0 ", "ioo"),
    "the legacy stream behind something unknown": ("vs3,0,0,0 cl0,0,0,0 " + K + "rs1,0,0,0 ws2,0,0,0 Vs2,0,0,0 ", "o"),
}


@pytest.mark.parametrize("trace", [False, True], ids=["", "traced"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_in_a_window(name: str, trace: bool, windowed: Windowed) -> None:
    """A trace asks about every launch, so it must not be what makes the answers right."""
    program, expected = PROGRAMS[name]
    ran = windowed(STREAMS + program, trace=trace)
    assert ran.reasons.get("shaped", 0) == expected.count("i")
    assert sum(ran.reasons.values()) == len(expected)
    if trace:
        assert ran.answers == expected


@pytest.mark.parametrize("then", ["S--,0,0,0 ", "ys1,0,0,0 ", "d--,0,0,0 ", "cs2,0,0,0 ", "ks1,0,0,0 " * 20])
def test_a_stream_that_is_gone_is_asked_nothing(then: str, windowed: Windowed) -> None:
    """Its communication is still followed. The real driver may crash; so does this one here."""
    then = then.replace("d--", "dl0")
    ran = windowed(STREAMS + "ns7,1,0,0 cs7,0,0,0 ks1,0,0,0 rs7,0,0,0 ws1,0,0,0 xs7,0,0,0 " + then)
    assert ran.done.totals["communication"] == 1 + then.count("c")


def test_several_devices(windowed: Windowed) -> None:
    """They take turns on the GPU, or have none in common."""
    program = STREAMS + "ns5,1,1,0 ns6,1,1,0 " + C + "ks5,0,0,0 cs5,0,0,0 ks6,0,0,0 kl1,0,0,0 ks1,0,0,0 "
    program += "S--,1,0,0 ks6,0,0,0 ks1,0,0,0"
    ran = windowed(program, trace=True, env={"SIMGPU": "h100,2"})
    assert ran.answers == "oiiioi"
    again = windowed(program, env={"SIMGPU": "h100,2"})
    assert again.reasons["shaped"] == 4
    assert sum(again.reasons.values()) == 6


# ---- `auto` ----

TENSOR = ("ks1,0,0,0 rs1,0,0,0 ws0,0,0,0 cs0,0,0,0 rs0,1,0,0 ks1,0,0,0 ws1,1,0,0 ") * 12
TWO_LONG = ("ks1,0,0,0 rs1,0,0,0 ws0,0,0,0 cs0,0,0,0 rs0,1,0,0 ks1,0,0,0 ks1,0,0,0 ws1,1,0,0 ") * 12
PREFETCH = "cs0,0,0,0 rs0,1,0,0 ks1,0,0,0 ws1,1,0,0 " * 12
NARROW = {"SIMGPU_MULTIPROCESSORS": "12"}  # of which the four blocks of communication are a third


@pytest.mark.parametrize("trace", [False, True], ids=["", "traced"])
def test_auto_stays_where_communication_is_waited_for(trace: bool, windowed: Windowed) -> None:
    ran = windowed(STREAMS + TENSOR, AUTO, trace=trace, env=NARROW)
    assert (ran.done.totals["communication"], ran.done.totals["raised"]) == (12, 12)
    assert not ran.remarks


@pytest.mark.parametrize("trace", [False, True], ids=["", "traced"])
@pytest.mark.parametrize("program", [TWO_LONG, PREFETCH], ids=["two long kernels beside it", "prefetch"])
def test_auto_ends_where_nobody_is_in_a_hurry(program: str, trace: bool, windowed: Windowed) -> None:
    ran = windowed(STREAMS + program, AUTO, trace=trace, env=NARROW)
    raised = ran.done.totals["raised"]
    assert 1 <= raised <= 3
    assert ran.done.totals["communication_unhurried"] == 12 - raised
    begin = f"in no hurry: `priority: auto` left {12 - raised} of 12"
    assert [said for said in ran.remarks if said.startswith(begin)]


def test_auto_ends_at_a_wide_grid(windowed: Windowed) -> None:
    ran = windowed(STREAMS + TENSOR, AUTO, env={"SIMGPU_MULTIPROCESSORS": "2"})
    assert (ran.done.totals["raised"], ran.done.totals["communication_wide"]) == (0, 12)
    assert [said for said in ran.remarks if said.startswith("wide: `priority: auto` left 12 of 12")]


def test_two_long_kernels_that_wait_first_do_not_end_it(windowed: Windowed) -> None:
    """They are no more beside it than its own stream's."""
    ran = windowed(STREAMS + (C + WAIT + K * 3 + BACK) * 8, AUTO, env=NARROW)
    assert ran.done.totals["raised"] == 8


# ---- Findings ----


def test_same_stream(windowed: Windowed) -> None:
    ran = windowed(STREAMS + ("cs0,0,0,0 " + "ks0,0,0,0 " * 4) * 10)
    assert ran.done.totals["communication_same_stream"] == 10 or ran.done.totals["communication_same_stream"] == 9
    assert ran.remarks[0].startswith("same stream: ")
    assert "of 10 communication launches could not overlap anything" in ran.remarks[0]


def test_waited_for_at_once(windowed: Windowed) -> None:
    ran = windowed(STREAMS + (C + WAIT + K * 4 + BACK) * 10)
    assert ran.done.totals["communication_waited_for"] in (9, 10)
    assert [said for said in ran.remarks if said.startswith("waited for at once: ")]


def test_what_overlaps_is_not_found(windowed: Windowed) -> None:
    ran = windowed(STREAMS + (C + K * 4 + WAIT + K) * 10)
    assert not ran.remarks, "nothing here is under `auto`"
    assert ran.done.totals["communication_same_stream"] == ran.done.totals["communication_waited_for"] == 0


def test_what_overlaps_takes_back_nothing_of_what_was_before(windowed: Windowed) -> None:
    ran = windowed(STREAMS + "cs0,0,0,0 ks0,0,0,0 " * 20 + WAIT + (C + K + WAIT) * 10)
    assert ran.done.totals["communication_same_stream"] == 20


EACH, ONE_OF = (
    512,
    31,
)  # communication launches of a thread that are followed: each of the first; then a sample (follow.c)


def test_a_sample_of_many_counts_for_all(windowed: Windowed) -> None:
    """The last seven are not counted: the next one that is followed would count for them."""
    many = EACH + 51 * ONE_OF + 7
    ran = windowed(STREAMS + "cs0,0,0,0 ks0,0,0,0 " * many)
    assert ran.done.totals["communication"] == ran.done.reasons["communication"] == many
    assert ran.done.totals["communication_same_stream"] == many - 7
    assert ran.done.totals["communication_waited_for"] == 0


def test_a_sample_of_what_overlaps_counts_nothing(windowed: Windowed) -> None:
    ran = windowed(STREAMS + (C + K) * 1500)
    assert ran.done.totals["communication_same_stream"] == ran.done.totals["communication_waited_for"] == 0
    assert ran.done.reasons["shaped"] == 1500, "also those behind communication that is not followed"


def test_a_sample_follows_a_program_that_changes(windowed: Windowed) -> None:
    ran = windowed(STREAMS + "cs0,0,0,0 ks0,0,0,0 " * 1000 + WAIT + (C + K) * 1000)
    assert 1000 - ONE_OF <= ran.done.totals["communication_same_stream"] <= 1000


def test_auto_ends_by_a_sample(windowed: Windowed) -> None:
    ran = windowed(STREAMS + TENSOR * 50 + TWO_LONG * 8, AUTO, env=NARROW)
    assert ran.done.totals["communication"] == 696
    assert 600 < ran.done.totals["raised"] <= 600 + ONE_OF + 3


def test_a_policy_without_windows_has_none(windowed: Windowed) -> None:
    """`always` alone, and no auto: nobody follows events."""
    ran = windowed(STREAMS + (C + "ks0,0,0,0 ") * 40, ALWAYS)
    assert ran.reasons == {"shaped": 40}
    assert windowed(STREAMS + C + K, POLICY).reasons == {"shaped": 1}
