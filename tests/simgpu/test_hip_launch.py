"""Launches of HIP: every entry point arrives, and each version refuses what the real one refuses."""

from __future__ import annotations

from typing import Any

import pytest

SIZES = """
f = hip.function(image([Kernel("k", static_shared=1024)]), "k")
sizes = (0, 65536 - 1024, 65536 - 1023, 65536, 65537)
"""


def test_more_shared_memory_than_there_is(on_hip: Any, version: int) -> None:
    run = on_hip(SIZES + "answer([hip.launch(f, 1, 64, size) for size in sizes]); os._exit(0)", version)
    over = 2 if version == 5 else 0
    assert run.answer == [0, 0, over, over, 1]


@pytest.mark.parametrize("how", ["hipDeviceSynchronize", "hipStreamSynchronize", "hipStreamQuery", "hipFree"])
def test_since_6_3_the_queue_dies_and_the_runtime_ends_the_process(on_hip: Any, how: str) -> None:
    arguments = "" if how == "hipDeviceSynchronize" else ", None"
    snippet = SIZES + f"hip.launch(f, 1, 64, 65536); answer(0); hip.code('{how}'{arguments})"
    run = on_hip(snippet, 6, status=-6)
    assert "HSA_STATUS_ERROR_INVALID_ALLOCATION" in run.stderr
    assert [row["result"] for row in run.launches] == [0]


def test_other_refusals(on_hip: Any, version: int) -> None:
    run = on_hip(
        """
f = hip.function(image([Kernel("k", max_threads=256, arguments=[8])]), "k")
one = hip.arguments(1)
call = lambda *sizes, args=one, extra=None: hip.code("hipModuleLaunchKernel", f, *sizes, None, args, extra)
answer([call(1, 1, 1, 256, 1, 1, 0), call(1, 1, 1, 257, 1, 1, 0), call(1, 1, 1, 1025, 1, 1, 0),
        call(0, 1, 1, 64, 1, 1, 0), call(1, 1, 1, 0, 1, 1, 0), call(2**31 - 1, 1, 1, 64, 1, 1, 0),
        call(1, 65537, 1, 64, 1, 1, 0), call(1, 1, 1, 64, 1, 1, 0, extra=one), call(1, 1, 1, 64, 1, 1, 0, args=None),
        hip.launch(None, 1, 64), hip.launch(P(64), 1, 64), hip.launch(f, 1, 64, 0, P(12345))])
""",
        version,
    )
    assert run.answer == [0, 719, 1, 1, 9, 9, 1, 1, 1, 400, 400, 1]


def test_the_last_error(on_hip: Any, version: int) -> None:
    """Up to 6 each call sets it; from 7 on only those that fail."""
    run = on_hip(
        """
last, name = lambda: hip.code("hipGetLastError"), hip.library.hipGetErrorName
name.restype = C.c_char_p
hip.code("hipSetDevice", 5); first = [last(), last()]
hip.code("hipSetDevice", 5); hip.number("hipGetDeviceCount")
answer([first, last(), name(101).decode(), name(719).decode()])
""",
        version,
    )
    assert run.answer == [[101, 0], 101 if version == 7 else 0, "hipErrorInvalidDevice", "hipErrorLaunchFailure"]
