"""What the report says of streams that were raised, and many contexts; which are raised, and when: words/raised.txt."""

from __future__ import annotations

import pytest
from iterating import AUTO, STYLE_0, Iterations, raised


def test_streams_that_were_raised_once_give_way(iterations: Iterations) -> None:
    """17 streams are raised in turn and never used again. The one that is used now is in the report."""
    once = " ".join(f"k:{stream}:8 s:{stream} j:1:1000 " * 40 for stream in range(3, 20))
    done = iterations(f"{once} begin k:20:8 j:1:1000 s:20", 400)
    streams = done.report["processes"][0]["streams"]
    assert max(stream["work"] for stream in streams if stream["status"] == "raised") > 8 * 256 * 300, (
        "judged at the 1,024th wait"
    )


def test_a_stream_that_launches_small_graphs(iterations: Iterations) -> None:
    done = iterations("B:2 k:2:4 k:2:4 G begin g:2 j:1:1000 s:2", 70)
    (judged,) = [stream for stream in done.report["processes"][0]["streams"] if stream["status"] == "raised"]
    assert judged["work"] == 64 * 8 * 256, "all of it, up to the judgement at the 64th wait"
    assert 0.007 <= judged["share"] <= 0.009


def test_a_graph_of_copies_alone_counts_like_the_copies(iterations: Iterations) -> None:
    done = iterations("n:2 B:2 A:2 G begin g:2 j:1:1000 s:2", 70)
    (stream,) = done.report["processes"][0]["streams"]
    assert stream["status"] == "not_waited" and done.totals["graphs_raised"] == 0


def test_many_streams_that_went_with_their_contexts(iterations: Iterations) -> None:
    words = (f"z n:1 {'n:3 ' * (20 - i)} n:2 {' '.join([STYLE_0] * 6)}" for i in range(20))
    done = iterations(f"{' '.join(words)} begin", 0)
    assert raised(done) == ("0" + "5" * 5) * 20


def test_communication_in_a_graph_is_known_by_the_library_that_was_captured(iterations: Iterations) -> None:
    """Its kernels have names of their own. A graph that holds it counts as large (docs/explanation/limits.md)."""
    policy = AUTO + '\ncommunication: {libraries: ["waiting*"]}'
    words = "n:2 n:1 B:2 k:2:100 G B:1 j:1:1000 G:6 begin g:2 g:1:1 s:2"
    assert {one["priority"] for one in iterations(words, 60, policy).in_graphs} == {0}
    assert {one["priority"] for one in iterations(words, 60).in_graphs if one["kernel"] == "k"} == {0, -5}


@pytest.mark.parametrize("waits", ["x", "s:0"], ids=["for the context", "for the default stream"])
def test_what_was_raised_is_given_back_though_nothing_waits_for_a_stream_any_more(
    iterations: Iterations, waits: str
) -> None:
    """Stream 2 has nearly all of the work in the second phase, and no wait names a stream."""
    first = " ".join(["k:2:8 j:1:1000 s:2 r:1:1 e:1"] * 20)
    done = iterations(f"{first} begin k:2:1000 j:1:8 {waits}", 600)
    assert raised(done)[19] == "5" and raised(done)[-1] == "0"


def test_more_streams_than_the_page_has_records_for(iterations: Iterations) -> None:
    """34 are raised. The last line does not say that these are all."""
    words = " ".join(f"k:{stream}:1 s:{stream}" for stream in range(2, 36))
    done = iterations(f"{words} j:1:1000 s:1", 60)
    assert (
        done.report["processes"][0]["launches"] and "raised 16 of at least 16 streams" in done.report["verdict"]["done"]
    )
