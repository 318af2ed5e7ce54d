"""Calls that succeed leave errno and dlerror as they were, whatever the libraries behind ours do to them."""

from __future__ import annotations

import pytest
from interposing import ONE, Build, Runner, rule

WINDOWS = rule("{blocks_per_sm: 1}", when="overlapping", more="streams: {raise: auto}")


@pytest.mark.parametrize("refuses", [{}, {"NOISY_REFUSES": "1"}], ids=["", "nothing is pinned"])
@pytest.mark.parametrize("policy", [ONE, WINDOWS], ids=["always", "windows"])
@pytest.mark.parametrize("way", ["LINKED", "DLSYM"])
@pytest.mark.plain(
    "sanitizers set errno, and AddressSanitizer ends the program that is run without the library", sanitized=True
)
def test_errno_and_dlerror_stay(
    way: str, policy: str, refuses: dict[str, str], build: Build, bare: Runner, preloaded: Runner
) -> None:
    """The page is made, its objects are pinned and its clock is read by functions that set errno."""
    stub = build.library("stub/libcuda.so.1", "stub_driver.c")
    noisy = build.library("libnoisy.so", "noisy.c")
    link = [str(stub)] if way == "LINKED" else []
    program = build(f"errno-kept-{way}", "errno_kept.c", f"-DWAY_{way}", link=link)
    env = {"LD_LIBRARY_PATH": str(stub.parent), **refuses}
    without = bare([], program=program, env={**env, "LD_PRELOAD": str(noisy)})
    assert without.status == 0, without.stderr
    lines = without.stdout.splitlines()
    assert lines and all(line.endswith("errno 77, no error of the loader") for line in lines), without.stdout
    done = preloaded([], policy, program=program, env=env, preload=f"{{}}:{noisy}")
    assert (done.status, done.stdout) == (0, without.stdout)
    assert done.totals["launches"] == 4
