"""Other preloaded libraries: real files in LD_PRELOAD and in an /etc/ld.so.preload of a root folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from doctoring import Compile, Look, states

from pyshim import _native


def test_nothing_is_preloaded(look: Look) -> None:
    assert look("preloads") == [("ok", "nothing else is preloaded", "")]


@pytest.mark.parametrize(
    ("name", "state", "words"),
    [
        ("libjemalloc.so.2", "ok", "an allocator: it goes with ours"),
        ("libdarshan.so", "ok", "Darshan"),
        ("libeatmydata.so", "ok", "libeatmydata"),
        ("libasan.so.8", "ok", "stays in front of ours"),
        ("libunknown.so", "ok", "it goes with ours"),
        ("libfaketime.so.1", "warn", "the time is not the real one"),
        ("libvgpu.so", "warn", "HAMi, which stands between"),
        ("libnvshare.so", "warn", "nvshare, which stands between"),
        ("libvgpu-control.so", "warn", "stands between"),
        ("liboverlap.so", "warn", "another copy of our library"),
    ],
)
@pytest.mark.parametrize("where", ["LD_PRELOAD", "/etc/ld.so.preload"])
def test_known_ones(look: Look, tmp_path: Path, name: str, state: str, words: str, where: str) -> None:
    (tmp_path / name).write_bytes(b"")
    environment = {}
    if where == "LD_PRELOAD":
        environment = {"LD_PRELOAD": f"ROOT/{name}"}
    else:
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc/ld.so.preload").write_text(f"\n {tmp_path}/{name}\n")
    ((found, sentence, hint),) = look("preloads", **environment)
    assert (found, bool(hint)) == (state, state != "ok")
    assert sentence.startswith(f"{where} has ") and words in sentence


def test_an_unknown_one_that_defines_what_we_do(look: Look, compiled: Compile) -> None:
    source = "int cuLaunchKernel(void) { return 0; } void *dlsym(void *h, const char *n) { return h ? (void *)n : 0; }"
    mine = compiled("libmine.so", source, "-shared", "-fPIC")
    ((state, sentence, _),) = look("preloads", LD_PRELOAD=str(mine))
    assert state == "warn" and "libmine.so, which defines dlsym, cuLaunchKernel" in sentence


def test_a_missing_one(look: Look) -> None:
    for entry in ("/nowhere/libmine.so", "libnowhere.so.9"):
        ((state, sentence, _),) = look("preloads", LD_PRELOAD=entry)
        assert state == "warn" and sentence.startswith(f"LD_PRELOAD has {entry}, which is not there")


def test_a_bare_name_is_looked_for_as_the_loader_does(look: Look, compiled: Compile) -> None:
    mine = compiled("libmine.so.1", "int mine;", "-shared", "-fPIC")
    lines = look("preloads", LD_PRELOAD="libmine.so.1", LD_LIBRARY_PATH=str(mine.parent))
    assert states(lines) == ["ok"]


def test_our_own(look: Look) -> None:
    assert look("preloads", LD_PRELOAD=str(_native.SHIM)) == [("ok", "LD_PRELOAD has our library already", "")]


def test_a_sanitizer_that_is_not_first(look: Look, tmp_path: Path) -> None:
    files = ("/libjemalloc.so.2", "/libasan.so.8")
    lines = look("preloads", files, LD_PRELOAD="ROOT/libjemalloc.so.2:ROOT/libasan.so.8")
    assert states(lines) == ["ok", "ok", "warn"]
    assert "libasan.so.8 behind libjemalloc.so.2" in lines[2][1]
    assert states(look("preloads", files, LD_PRELOAD="ROOT/libasan.so.8 ROOT/libjemalloc.so.2")) == ["ok", "ok"]
