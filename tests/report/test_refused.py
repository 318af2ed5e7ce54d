"""What overlap report says of processes that launched nothing, and of what the driver refused. Of real processes."""

from __future__ import annotations

from interposing import ONE

from pyshim.report.collect import collect
from pyshim.report.findings import findings


def test_refused_launches_of_which_no_kernel_is_known(write_page, report, library):
    write_page({"refused": 7}, counters={library.OVERLAP_COUNTER_REFUSED: 1})
    (said,) = findings(collect(str(report)))
    assert said.startswith("the driver refused 1 changed launch; it was launched again as asked,")


def test_a_process_that_launches_nothing(preloaded, pages, overlap):
    preloaded("stream=0 sync", ONE, report=pages)
    done = overlap("report", str(pages))
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert "opened a GPU, and no launch was seen" in done.stdout and " way in" not in done.stdout


def test_a_process_that_launches_graphs_alone(write_page, report, library, overlap):
    write_page({}, counters={library.OVERLAP_COUNTER_GRAPH_LAUNCHES: 3})
    done = overlap("report", str(report))
    assert done.returncode == 0 and "raised no stream (0 of 3 graphs)" in done.stdout
