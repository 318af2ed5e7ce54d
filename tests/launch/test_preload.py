from __future__ import annotations

import pytest

from pyshim.start.environment import can_preload, preload

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
    assert preload(before, OURS) == after
    assert preload(after, OURS) == after


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
    assert can_preload(path) is can
