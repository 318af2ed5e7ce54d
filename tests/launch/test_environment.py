from __future__ import annotations

import re
import urllib.parse

from hypothesis import given
from hypothesis import strategies as st

from pyshim.start.environment import Settings, added, environment, quote

LIBRARY = "/opt/liboverlap.so"
FULL = Settings(
    library=LIBRARY,
    table="UlZQ+/==",
    report="/tmp/a b",
    quiet=True,
    launcher_pid=42,
    simulated_driver="/opt/simgpu",
    simulated_gpu="h100,1",
    simulated_programs="/opt/demo",
    defaults={"TORCH_NCCL_HIGH_PRIORITY": "1"},
)


def test_everything_that_is_asked_for_is_set_and_nothing_else() -> None:
    assert environment({"HOME": "/root"}, FULL) == {
        "HOME": "/root",
        "LD_PRELOAD": LIBRARY,
        "OVERLAP_TABLE": "UlZQ+/==",
        "OVERLAP_REPORT": "/tmp/a%20b",
        "OVERLAP_QUIET": "1",
        "OVERLAP_LAUNCHER_PID": "42",
        "LD_LIBRARY_PATH": "/opt/simgpu",
        "TRITON_LIBCUDA_PATH": "/opt/simgpu",
        "SIMGPU": "h100,1",
        "PATH": "/bin:/usr/bin:/opt/demo",
        "TORCH_NCCL_HIGH_PRIORITY": "1",
    }


def test_nothing_asked_for_is_nothing_changed() -> None:
    base = {"LD_PRELOAD": "/a.so", "OVERLAP_TABLE": "x", "LD_LIBRARY_PATH": "/b"}
    assert environment(base, Settings()) == base


def test_without_the_library_none_of_its_variables_is_set_but_a_simulated_gpu_is() -> None:
    result = environment({}, FULL._replace(library=None))
    assert set(result) == {"LD_LIBRARY_PATH", "TRITON_LIBCUDA_PATH", "SIMGPU", "PATH"}


def test_the_users_word_stands_over_a_default_of_the_policy() -> None:
    assert environment({"TORCH_NCCL_HIGH_PRIORITY": "0"}, FULL)["TORCH_NCCL_HIGH_PRIORITY"] == "0"
    assert environment({"TORCH_NCCL_HIGH_PRIORITY": ""}, FULL)["TORCH_NCCL_HIGH_PRIORITY"] == ""


def test_an_inner_run_keeps_what_it_does_not_mention() -> None:
    outer = environment({}, FULL)
    inner = environment(outer, Settings(library=LIBRARY, launcher_pid=43))
    assert added(outer, inner) == {"OVERLAP_LAUNCHER_PID": "43"}


def test_the_simulated_driver_comes_first_and_an_empty_entry_keeps_its_place() -> None:
    result = environment({"LD_LIBRARY_PATH": "/a::/opt/simgpu:/b"}, FULL)
    assert result["LD_LIBRARY_PATH"] == "/opt/simgpu:/a::/b"


def test_bundled_programs_come_last_in_path() -> None:
    result = environment({"PATH": "/a:/b"}, FULL)
    assert result["PATH"] == "/a:/b:/opt/demo"
    assert environment(result, FULL) == result


def test_a_simulated_runtime_comes_before_the_driver() -> None:
    settings = FULL._replace(simulated_runtime="/opt/simgpu/b/lib.7")
    result = environment({"LD_LIBRARY_PATH": "/opt/simgpu/b:/x"}, settings)
    assert result["LD_LIBRARY_PATH"] == "/opt/simgpu/b:/opt/simgpu:/x"
    assert environment(result, settings) == result


@given(st.dictionaries(st.sampled_from(["LD_PRELOAD", "LD_LIBRARY_PATH", "A"]), st.text("/ab.so: ", max_size=30)))
def test_twice_is_once(base: dict[str, str]) -> None:
    once = environment(base, FULL)
    assert environment(once, FULL) == once


@given(st.binary(min_size=1).filter(lambda path: b"\0" not in path))
def test_a_path_travels_in_the_plain_alphabet(path: bytes) -> None:
    text = path.decode("utf-8", "surrogateescape")
    encoded = quote(text)
    assert re.fullmatch(r"[A-Za-z0-9._/+:=@%-]*", encoded)
    assert urllib.parse.unquote_to_bytes(encoded) == path
    assert encoded == urllib.parse.quote(path, safe="/._+:=@-").replace("~", "%7E")
