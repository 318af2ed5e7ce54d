"""What the report says of streams that were raised, and many contexts; which are raised, and when: words/raised.txt."""

from __future__ import annotations

from iterating import STYLE_0, Iterations, raised


def test_streams_that_were_raised_once_give_way(iterations: Iterations) -> None:
    """17 streams are raised in turn and never used again. The one that is used now is in the report."""
    once = " ".join(f"k:{stream}:8 s:{stream} j:1:1000 " * 40 for stream in range(3, 20))
    done = iterations(f"{once} begin k:20:8 j:1:1000 s:20", 1200)
    streams = done.report["processes"][0]["streams"]
    assert max(stream["threads"] for stream in streams if stream["status"] == "raised") > 8 * 256 * 300, (
        "judged at the 1,024th wait"
    )


def test_a_stream_that_launches_small_graphs(iterations: Iterations) -> None:
    done = iterations("B:2 k:2:4 k:2:4 G begin g:2 j:1:1000 s:2", 70)
    (judged,) = [stream for stream in done.report["processes"][0]["streams"] if stream["status"] == "raised"]
    assert judged["threads"] % (8 * 256) == 0 and 0.007 <= judged["share"] <= 0.009


def test_a_graph_of_copies_alone_counts_like_the_copies(iterations: Iterations) -> None:
    done = iterations("n:2 B:2 A:2 G begin g:2 j:1:1000 s:2", 70)
    (stream,) = done.report["processes"][0]["streams"]
    assert stream["status"] == "not_waited" and done.totals["graphs_raised"] == 0


def test_many_streams_that_went_with_their_contexts(iterations: Iterations) -> None:
    words = (f"z n:1 {'n:3 ' * (20 - i)} n:2 {' '.join([STYLE_0] * 6)}" for i in range(20))
    done = iterations(f"{' '.join(words)} begin", 0)
    assert raised(done) == ("0" + "5" * 5) * 20
