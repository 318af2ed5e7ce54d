"""Protocols between threads: each test runs two threads through named points of the library in one order (race.c).

Each fails if the step that its docstring names is left out, or moved.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from interposing import Done, rule, smallest_size
from iterating import AUTO, raised

Race = Callable[..., Done]

RAISES = "k:2:8 c:2 j:1:1000"  # then the first wait for stream 2, whose record is the first one, raises it
SIZE = smallest_size(1)
LAUNCH = "k:1:4000"
EARLY = "1:{point} 2:begin 2:end 1:end"  # thread 2 does everything while thread 1 is at the point
WAITS = "1:raise_sets 2:begin 2:hold_waits 1:end 2:end"  # thread 2 waits until thread 1 has set the priority


def sizes(done: Done, kernel: str = "k") -> list[int]:
    return [launch["dynamic_shared"] for launch in done.launches if launch["kernel"] == kernel]


# ---- A raise, and what must not meet it ----


def test_a_capture_that_begins_while_a_raise_ends(race: Race) -> None:
    """The capture reads the mark before `raised`: in the other order it misses a raise that ends in between."""
    order = "1:raise_sets 2:begin 2:capture_looks 1:end 2:end"
    assert raised(race(order, RAISES, "s:2", "B:2 k:2:8 G", "k:2:8", policy=AUTO)) == "005"


def test_a_capture_that_begins_while_a_priority_is_set(race: Race) -> None:
    """The mark is seen, so the capture waits for the raise: else it is over before the driver raises the stream."""
    assert raised(race(WAITS, RAISES, "s:2", "B:2 k:2:8 G", "k:2:8", policy=AUTO)) == "005"


def test_a_capture_that_begins_beside_one_that_has_not_lowered_yet(race: Race) -> None:
    """Each lowers the raised streams: the first capture of the process is only counted when the second one begins."""
    order = "1:capture_counted 2:begin 2:end 1:end"
    done = race(order, f"{RAISES} s:2", "B:3 k:3:8 G", "B:2 k:2:8 G", "k:2:8", policy=AUTO)
    assert raised(done) == "0005"


def test_a_capture_that_begins_before_a_raise_is_marked(race: Race) -> None:
    """The capture cannot see the mark. It is counted before it looks, so the second look of the raise sees it."""
    order = "1:raise_looked 2:begin 2:capture_looks 2:capture_looks 1:end 2:end"  # it has looked at the first record
    assert raised(race(order, RAISES, "s:2", "B:2 k:2:8 G", "k:2:8", policy=AUTO)) == "005"


def test_a_stream_is_created_raised_beside_a_capture_that_begins(race: Race) -> None:
    """The capture cannot see the new stream, so its creation looks for captures a second time."""
    policy = rule("leave", more="streams: {raise: off, created_by: [race]}")
    last = "r:1:3 w:4:1 k:4:8 r:2:4 w:3:2 G k:4:8"
    assert raised(race(EARLY.format(point="stream_created"), "n:3", "n:4", "B:3", last, policy=policy)) == "05"


def test_a_stream_that_is_destroyed_while_it_is_raised(race: Race) -> None:
    """Its end waits for the raise: else the priority is set by a handle that no stream has any more."""
    assert raised(race(WAITS, RAISES, "s:2", "d:2", "k:0:8", policy=AUTO)) == "00"


def test_a_stream_whose_end_could_not_wait_for_the_raise(race: Race) -> None:
    """The wait times out after two seconds. A new stream has the handle by then, and is not raised in its place."""
    order = "1:raise_marked 2:begin 2:stream_gone 3:begin 3:end 2:stream_ending 1:end 2:end"
    done = race(order, RAISES, "s:2", "d:2", "n:4", "k:4:8 P:4", policy=AUTO)
    assert (raised(done), done.stdout) == ("00", "priority 0 0\n")


def test_a_stream_that_has_ended_while_a_new_one_gets_its_handle(race: Race) -> None:
    """Its record says the handle under the lock alone: else the new stream's record ends in its place, and with it what
    the program has asked for."""
    policy = rule("leave", more="streams: {raise: off, created_by: [race]}")
    done = race(EARLY.format(point="stream_goes"), "n:3", "d:3", "n:4", "P:4 k:4:8", policy=policy)
    assert (raised(done), done.stdout) == ("5", "priority 0 0\n")


def test_a_stream_is_destroyed_while_another_capture_begins_at_its_handle(race: Race) -> None:
    """Only a capture that was open before the end of the stream ends with it: this one sees no raised stream."""
    order = "1:stream_gone 2:begin 2:captures 1:end 2:captured 2:end"
    first, captured = f"n:3 n:4 n:5 {RAISES} s:2", "n:6 B:6 @captures @captured r:5:6 w:2:5 k:2:8 r:6:2 w:6:6 G:2 g:6"
    done = race(order, first, "d:3", captured, "k:2:8", policy=AUTO)
    assert {launch["priority"] for launch in done.in_graphs} == {0}


def test_a_record_that_is_marked_for_the_stream_before(race: Race) -> None:
    """The mark stays when the record is used again: else the capture does not see that the stream is being raised."""
    order = (
        "1:raise_looked 2:begin 2:end 1:raise_marked 3:begin 3:raise_looked 1:raise_sets "
        "4:begin 4:hold_waits 1:end 4:end 3:end"
    )
    words = f"n:1 n:2 {RAISES}", "s:2", "d:2", "n:2 k:2:8 c:2 s:2", "B:2 k:2:8 G:2 g:1", "k:2:8"
    assert {launch["priority"] for launch in race(order, *words, policy=AUTO).in_graphs} == {0}


@pytest.mark.parametrize("order", [WAITS, EARLY.format(point="raise_looked")], ids=["waits", "before the mark"])
def test_the_program_sets_a_priority_while_the_stream_is_raised(order: str, race: Race) -> None:
    """The call waits for the raise, so the program's priority is the last one. A raise that is marked later asks then
    whether the stream is still to be raised."""
    done = race(order, RAISES, "s:2", "a:2:-3", "k:2:8 P:2", policy=AUTO)
    assert (raised(done), done.stdout) == ("03", "priority -3 -3\n")


def test_a_graph_that_gets_the_handle_of_another_one_while_the_lock_is_held(race: Race) -> None:
    """Its work is not known: that of the graph before is taken away without the lock."""
    small, large = "B:2 k:2:8 G", "B:3 j:3:3000 G:5"
    waited = "g:2 j:1:1000 s:2"
    first = " ".join(["n:1 n:2 n:3", small, *[waited] * 15])
    done = race(EARLY.format(point="judging"), first, waited, large, " ".join([waited] * 40), policy=AUTO)
    assert {launch["priority"] for launch in done.in_graphs if launch["kernel"] == "j"} == {0}


# ---- Decisions and answers ----


def test_a_decision_that_is_stale_before_it_is_kept(race: Race) -> None:
    """The epoch tells: the decision was made before communication was seen."""
    done = race(
        EARLY.format(point="decision_made"), "n:1", LAUNCH, "c:2", LAUNCH, policy=rule("make_room", match='kernel: "k"')
    )
    assert [size > 0 for size in sizes(done)] == [False, True]


def test_a_decision_about_a_kernel_that_begins_to_end_before_it_is_kept(race: Race) -> None:
    """It is not kept, nor is the answer. Nothing had been decided about the kernel, so the epoch does not tell."""
    policy = rule("{blocks_per_sm: 1}", match='kernel: "k"')
    order = "1:decision_made 2:begin 2:handle_ending 1:answered 2:end 1:end"
    done = race(order, "l:0", f"{LAUNCH} @answered {LAUNCH}", "l:1", "", policy=policy)
    assert done.stdout == "same address: 1\n"
    assert (sizes(done), sizes(done, "j")) == ([SIZE], [0])


def test_an_answer_about_a_kernel_that_is_unloaded_before_it_is_kept(race: Race) -> None:
    """The answer has the epoch of its beginning: another kernel has the address by the time it is kept."""
    policy = rule("{blocks_per_sm: 1}", match='kernel: "k"')
    done = race(EARLY.format(point="answer_found"), "l:0", f"{LAUNCH} {LAUNCH}", "s:1 l:1", "", policy=policy)
    assert done.stdout == "same address: 1\n"
    assert (sizes(done), sizes(done, "j")) == ([SIZE], [0])


def test_an_answer_about_a_stream_that_another_one_replaces_before_it_is_kept(race: Race) -> None:
    """It has the serial of its beginning: the new stream has the record and the handle of the raised one by then."""
    policy = AUTO.replace('{kernel: "*"}, shape: leave', '{kernel: "k"}, shape: {blocks_per_sm: 1}, when: always')
    launches = "k:2:4000 k:4:4000"
    done = race("1:answer_found 2:begin 2:end 1:end", f"{RAISES} s:2", launches, "d:2 n:4", "", policy=policy)
    assert (sizes(done)[1:], raised(done)[1:]) == ([0, SIZE], "50")


# ---- Windows ----

WINDOWS = {
    "a launch while one opens": ("1:window_marked 2:begin 2:between 1:end 2:end", "", "c:1", "k @between k", "", "ooi"),
    "a launch while one closes": (
        "1:window_marked 2:begin 2:between 1:end 2:end",
        "c:1",
        "s:1",
        "k @between k",
        "",
        "oio",
    ),
    "one closes while it opens": (EARLY.format(point="window_marked"), "", "c:1", "s:1", "k c:1 k s:1 k", "ooio"),
    "two threads close it": (EARLY.format(point="window_looked"), "c:1", "s:1", "s:1", "k c:1 k s:1 k", "ooio"),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window(name: str, race: Race) -> None:
    """i: inside, shaped; o: outside. Stream 1 communicates."""
    order, *words, expected = WINDOWS[name]
    words[0] = f"c:1 s:1 k {words[0]}"
    lines = [" ".join("k:2:4000" if word == "k" else word for word in line.split()) for line in words]
    done = race(order, *lines, policy=rule("{blocks_per_sm: 1}", "overlapping", 'kernel: "k"'))
    assert "".join("oi"[size > 0] for size in sizes(done)) == expected


# ---- Judgements ----

FIFTEEN = "k:2:8 j:1:1000 " + "s:1 " * 15  # waits: the first judgement is due at the next one


def test_a_thread_that_finds_a_judgement_due_and_comes_late(race: Race) -> None:
    """It leaves `due` alone. Else the next judgement comes before anything could wait for stream 2 again."""
    second = "s:2" + " s:1" * 23
    done = race(EARLY.format(point="wait_counted"), FIFTEEN, "s:2", second, "j:1:1000 k:2:8 s:1 k:2:8", policy=AUTO)
    assert raised(done) == "055"


def test_a_judgement_whose_waits_another_one_has_covered(race: Race) -> None:
    """It judges nothing. Else stream 2 is lowered: nothing has waited for it since the other judgement."""
    second = "s:2" + " s:1" * 15 + " j:1:1000 k:2:8"
    done = race(EARLY.format(point="judgement_due"), FIFTEEN, "s:2", second, "k:2:8", policy=AUTO)
    assert raised(done) == "055"


def test_the_work_of_a_stream_is_not_that_of_the_next_one_with_its_record(race: Race) -> None:
    """Another thread has launched it, and has launched nothing since: its slot names the record, and the stream by its
    serial."""
    second = "d:2 n:2 " + "j:1:1000 k:2:8 s:2 " * 16
    done = race("1:begin 1:end 2:begin 2:end", "n:1 n:2", "j:2:90000", second, "k:2:8", policy=AUTO)
    assert raised(done)[-1] == "5"


# ---- The lock ----


def test_a_thread_that_does_not_leave_the_lock_for_a_second(race: Race) -> None:
    """Other threads do as asked meanwhile: destroy a context, which the driver refuses, reload a module, launch. Then
    the library prints one line, forgets what it could not write, and goes on as before."""
    first, second = f"{RAISES} l:1 {LAUNCH}", f"y l:1 {LAUNCH} j:1:4000"
    policy = AUTO.replace('{kernel: "*"}, shape: leave', '{kernel: "j"}, shape: {blocks_per_sm: 1}, when: always')
    last = "j:2:8 j:1:4000 l:1 k:1:4000"
    done = race(EARLY.format(point="judging"), first, "s:2", second, last, policy=policy, lines=1)
    assert done.stdout == "same address: 0\nsame address: 1\nsame address: 1\n"
    assert sizes(done, "j") == [0, SIZE, 0, 0, 0, SIZE, SIZE]
    assert raised(done, "j") == "0000500"


@pytest.mark.parametrize("modules", [60, 70], ids=["as many as there is room for", "more"])
def test_modules_that_are_unloaded_while_the_lock_is_held(modules: int, race: Race) -> None:
    """Their ends are written later, and kernel k stays known. Those that there is no room for are not known: then all
    kernels are forgotten, so k is left alone."""
    first, last = f"{RAISES} M:{modules} {LAUNCH}", f"{LAUNCH} l:1 {LAUNCH}"
    policy = AUTO.replace('{kernel: "*"}, shape: leave', "{kernel: [k, j]}, shape: {blocks_per_sm: 1}, when: always")
    done = race(EARLY.format(point="judging"), first, "s:2", f"V {LAUNCH}", last, policy=policy, lines=1)
    assert done.stdout == "same address: 0\n"
    assert sizes(done) == [0, SIZE, 0, SIZE if modules < 64 else 0]
    assert sizes(done, "j")[1:] == [SIZE], "what is loaded from then on is known"
