from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from pyshim import preload

OURS = "/opt/overlap/liboverlap.so"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", OURS, id="alone where nothing is preloaded"),
        pytest.param("/a.so", f"{OURS}:/a.so", id="before others"),
        pytest.param("/a.so /b.so:/c.so", f"{OURS}:/a.so:/b.so:/c.so", id="spaces and colons separate"),
        pytest.param(" : /a.so::", f"{OURS}:/a.so", id="empty entries vanish"),
        pytest.param(OURS, OURS, id="never twice"),
        pytest.param(f"/a.so:{OURS}:/b.so", f"{OURS}:/a.so:/b.so", id="moves to the front"),
        pytest.param("/old/liboverlap.so:/a.so", f"{OURS}:/a.so", id="another copy of ours gives way"),
        pytest.param("/a.so:libasan.so.8", f"libasan.so.8:{OURS}:/a.so", id="behind a sanitizer"),
        pytest.param(
            "/x/libtsan.so.2:/a.so:libasan.so", f"/x/libtsan.so.2:libasan.so:{OURS}:/a.so", id="behind two sanitizers"
        ),
        pytest.param(
            "/usr/lib/libclang_rt.asan-x86_64.so", f"/usr/lib/libclang_rt.asan-x86_64.so:{OURS}", id="behind clang's"
        ),
        pytest.param("/a/libasanity.so", f"{OURS}:/a/libasanity.so", id="a name that only begins like a sanitizer"),
        pytest.param("/a.so:/a.so", f"{OURS}:/a.so:/a.so", id="what the user has twice stays twice"),
    ],
)
def test_merge(before: str, after: str) -> None:
    assert preload.merge(before, OURS) == after
    assert preload.merge(after, OURS) == after


@pytest.mark.parametrize(
    ("path", "can"),
    [
        ("/opt/overlap-run_1.0/lib~x/liboverlap.so", True),
        ("/opt/my tools/liboverlap.so", False),
        ("/opt/a:b/liboverlap.so", False),
        ("/opt/$LIB/liboverlap.so", False),
        ("/opt/a\nb/liboverlap.so", False),
        ("/opt/a.so\n", False),
    ],
)
def test_the_loader_splits_and_expands_some_paths(path: str, can: bool) -> None:
    assert preload.can_hold(path) is can


PAIRS = {
    "as Linux gives it": ([(16, 1), (15, 4096), (0, 0)], True),
    "without a platform": ([(16, 15), (0, 0)], False),
    "empty": ([], False),
    "nobody's": (None, False),
}


@pytest.mark.parametrize(("pairs", "led"), PAIRS.values(), ids=PAIRS)
def test_a_library_is_named_by_platform_where_there_is_one(
    tmp_path: Path, pairs: list[tuple[int, int]] | None, led: bool
) -> None:
    auxv, library = tmp_path / "auxv", tmp_path / "liboverlap.so"
    if pairs is not None:
        auxv.write_bytes(b"".join(struct.pack("NN", *pair) for pair in pairs) + b"odd")
    assert preload.entry(str(library), str(auxv)) == str(library), "no folders beside it"
    (tmp_path / os.uname().machine).mkdir()
    (tmp_path / os.uname().machine / library.name).touch()
    entry = preload.entry(str(library), str(auxv))
    assert entry == (f"{tmp_path}/$PLATFORM/liboverlap.so" if led else str(library))
    assert preload.plain(f"/$PLATFORM/a.so:{entry}:/b.so") == f"/$PLATFORM/a.so:{library}:/b.so"
    assert preload.merge(f"/a.so:{library}", entry) == f"{entry}:/a.so"
