"""What overlap report says of processes that launched nothing, and of what the driver refused. Of real processes."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, ONE, build, preloaded, table_of

from pyshim.report.collect import collect
from pyshim.report.findings import findings

__all__ = ["build", "preloaded", "table_of"]
CAPTURED = f"launch=k,{BLOCKS},256,0,1 launch=other,{BLOCKS},256,64,1"
GRAPH = f"ptx=k,other stream=0 begin=1 {CAPTURED} end=1 make=plain run=1,2"


def test_a_graph_that_the_driver_refused(preloaded, pages, overlap):
    """No launch has that reason: the nodes were counted when they were captured."""
    preloaded(f"{GRAPH} sync", ONE, env={"SIMGPU_REFUSE_INSTANTIATE": "k:50000"}, report=pages)
    said = "the driver refused a graph that was changed (1 x); it was made again as asked"
    assert said in findings(collect(str(pages)))
    done = overlap("report", str(pages), "--check")
    assert done.returncode == 1 and "Traceback" not in done.stderr and "refused a graph" in done.stdout


@pytest.mark.parametrize(
    ("counts", "graphs", "what"),
    [
        ({("symbol", "communication"): 4}, 0, "the priority of a communication launch"),
        ({("symbol", "communication"): 4}, 2, "a graph or the priority of a communication launch"),
    ],
)
def test_a_priority_that_the_driver_refused(counts, graphs, what, write_page, report, library):
    counters = {
        library.OVERLAP_COUNTER_REFUSED: 1,
        library.OVERLAP_COUNTER_COMMUNICATION: 4,
        library.OVERLAP_COUNTER_GRAPH_LAUNCHES: graphs,
    }
    write_page(counts, counters=counters)
    (said,) = findings(collect(str(report)))
    assert said == f"the driver refused {what} that was changed (1 x); it was made again as asked"


def test_refused_launches_of_which_no_kernel_is_known(write_page, report, library):
    write_page({("symbol", "refused"): 7}, counters={library.OVERLAP_COUNTER_REFUSED: 1})
    (said,) = findings(collect(str(report)))
    assert said.startswith("the driver refused 1 changed launches; they were launched again as asked,")


def test_a_process_that_launches_nothing(preloaded, pages, overlap):
    preloaded("stream=0 sync", ONE, report=pages)
    done = overlap("report", str(pages))
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert "opened a GPU, and no launch was seen" in done.stdout and " way in" not in done.stdout


def test_a_process_that_launches_graphs_alone(write_page, report, library, overlap):
    write_page({}, counters={library.OVERLAP_COUNTER_GRAPH_LAUNCHES: 3})
    done = overlap("report", str(report))
    assert done.returncode == 0 and "launches of whole graphs" in done.stdout
