"""PROGRAM, looked at: real programs of every kind, and folders that look like a Python's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest
from doctoring import Compile, Lines, Look, states

from pyshim.start.program import vendors

MAIN = "int main(void) { return 0; }"
PROGRAM = Callable[..., Lines]


@pytest.fixture
def told(look: Look) -> PROGRAM:
    """Return the lines about a program."""
    return lambda *command, machine=None, **environment: look(
        "program", machine={"command": [str(word) for word in command], "root": "/", **(machine or {})}, **environment
    )


def test_without_a_program_nothing_is_said(look: Look) -> None:
    assert look("program") == []


def test_a_program_that_is_not_there(told: PROGRAM, tmp_path: Path) -> None:
    hint = "give the path of the program, or put its folder into PATH"
    assert told("nosuch") == [("fail", "nosuch: program not found", hint)]
    assert told("LICENSE")[0][2] == "the file in this folder is ./LICENSE"
    assert told("demo-stencil")[0][2].endswith(" only: overlap doctor --simulate h100 demo-stencil")
    (tmp_path / "text").write_text("hello")
    assert told(tmp_path / "text") == [("fail", f"{tmp_path}/text is not executable", f"chmod +x {tmp_path}/text")]


def test_a_text_file_without_an_interpreter_is_not_passed_over(told: PROGRAM, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("echo hello")
    (tmp_path / "text").chmod(0o755)
    ((state, sentence, hint),) = told(tmp_path / "text")
    assert state == "warn" and "is no ELF file" in sentence and hint


def test_a_loader_of_its_own_is_not_started(told: PROGRAM, tmp_path: Path, compiled: Compile) -> None:
    """The loader that a program names is asked for its libraries, and may be any file."""
    started = tmp_path / "started"
    loader = compiled(
        "loader", f'#include <fcntl.h>\nint main(void) {{ return creat("{started}", 0600) < 0; }}', "-static"
    )
    told(compiled("odd", MAIN, f"-Wl,--dynamic-linker={loader}"))
    assert not started.exists()


def test_odd_files_are_reported_without_waiting(told: PROGRAM, tmp_path: Path, compiled: Compile) -> None:
    whole = compiled("program", MAIN).read_bytes()
    contents = {
        "itself": f"#!{tmp_path}/itself\n".encode(),
        "nothing": b"",
        "bare": b"#!",
        "cut": whole[:5000],
        "noise": b"\x7fELF" + bytes(range(256)) * 40,
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "large", "wb") as file:
        file.write(whole[:20])
        file.truncate(1 << 33)  # a hole
    (tmp_path / "circle").symlink_to("circle")
    for name in (*contents, "pipe", "large", "circle"):
        if name != "circle":
            (tmp_path / name).chmod(0o755)
        lines = told(tmp_path / name)
        assert states(lines) in (["warn"], ["fail"]) and lines[0][2], name


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("-static",), "is statically linked"),
        (("-static-pie", "-fPIE"), "is statically linked"),
        (("-m32", "-nostdlib", "-Wl,-e,main"), "is a 32-bit program"),
        (("-fsanitize=address",), "which must be loaded before any other library"),
    ],
)
def test_programs_that_the_library_cannot_be_loaded_into(
    told: PROGRAM, compiled: Compile, flags: tuple[str, ...], words: str
) -> None:
    ((state, sentence, hint),) = told(compiled("program", MAIN, *flags))
    assert state == "fail" and words in sentence and hint


@pytest.fixture
def libraries(compiled: Compile) -> dict[str, Path]:
    """Make libraries of the names that the check looks for."""
    return {
        name: compiled(name, "int cuInit(unsigned f) { return (int)f; }", "-shared", "-fPIC", f"-Wl,-soname,{name}")
        for name in ("libcuda.so.1", "libcudart.so.99", "libamdhip64.so.7")
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("libcuda.so.1", "linked to the driver itself, launches are seen by symbol"),
        ("libcudart.so.99", "shared CUDA runtime, launches are seen by symbol"),
        ("libamdhip64.so.7", "linked to HIP, launches are seen by symbol"),
    ],
)
def test_the_way_to_the_driver_by_linked_libraries(
    told: PROGRAM, compiled: Compile, libraries: dict[str, Path], name: str, words: str
) -> None:
    path = libraries[name]
    program = compiled("program", "int cuInit(unsigned); int main(void) { return cuInit(0); }", str(path))
    lines = told(program, LD_LIBRARY_PATH=str(path.parent))
    assert states(lines) == ["ok", "ok"]
    assert lines[1][1] == f"{name}: {words}"
    missing = [hint for state, said, hint in told(program) if f"{name}, which program needs, is not found" in said]
    # Where there is no driver at all, the check of drivers has said so.
    assert len(missing) == (name != "libcuda.so.1" or bool(vendors({}))) and all(missing)


def test_a_program_for_nvidia_on_a_machine_of_amd(
    told: PROGRAM, compiled: Compile, libraries: dict[str, Path], tmp_path: Path
) -> None:
    program = compiled("program", MAIN, "-Wl,--no-as-needed", str(libraries["libcuda.so.1"]))
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kfd").touch()
    lines = told(program, machine={"root": str(tmp_path)})
    found = [(state, hint) for state, said, hint in lines if "libcuda.so.1, which program needs" in said]
    hint = "the driver of NVIDIA brings it; without a GPU: overlap-run --simulate h100 PROGRAM"
    assert found == ([] if "nvidia" in vendors({}) else [("fail", hint)])


def test_a_program_that_is_linked_to_no_library_of_a_gpu(told: PROGRAM, compiled: Compile) -> None:
    """nvcc links its runtime statically unless asked, so that says nothing against it."""
    lines = told(compiled("program", MAIN))
    assert states(lines) == ["ok", "ok"] and lines[1][1].startswith("program is linked to no library of a GPU: ")


def test_scripts_are_followed_to_what_runs_them(told: PROGRAM, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n./train\n")
    script.chmod(0o755)
    lines = told(script)
    assert states(lines) == ["ok", "ok"]
    assert lines[0][1] == f"{script}, a script for /bin/sh: the library can be loaded into it"
    assert "what is set arrives at what it starts" in lines[1][1]


def test_env_finds_what_it_is_to_start_at_the_end_of_a_line_of_windows(told: PROGRAM, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/env -S sh\r\nexit 3 #\r\n", newline="")
    script.chmod(0o755)
    assert subprocess.run([script], check=False).returncode == 3
    assert told(script, PATH="/usr/bin:/bin")[0][0] == "ok"


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("#!/no/such", "'/no/such', which its first line names, is not there"),
        ("#!/usr/bin/env nosuchprogram", "'nosuchprogram', which its first line names, is not there"),
        ("#!/usr/bin/env sh\r", "'sh\\r', which its first line names, is not there"),
        ("#!/bin/sh\r", "'/bin/sh\\r', which its first line names, is not there"),
        ("#!/usr/bin/env -S nosuchprogram -x", "'nosuchprogram', which its first line names, is not there"),
    ],
)
def test_a_script_whose_interpreter_is_missing(told: PROGRAM, tmp_path: Path, first: str, words: str) -> None:
    script = tmp_path / "script"
    script.write_text(f"{first}\n", newline="")
    script.chmod(0o755)
    ((state, sentence, hint),) = told(script, PATH="/usr/bin:/bin")
    assert state == "fail" and sentence == f"{script} ends with 127: {words}" and hint
    assert ("Windows" in hint) is first.endswith("\r")


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python that finds what stands in tmp_path / "site", and nothing else."""
    (tmp_path / "site").mkdir()
    path = tmp_path / "python3"
    path.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}/site exec {os.path.realpath(sys.executable)} -S "$@"\n')
    path.chmod(0o755)
    return path


def test_a_script_for_python_is_looked_at_as_that_python(told: PROGRAM, python: Path, tmp_path: Path) -> None:
    script = tmp_path / "train"
    script.write_text(f"#!/usr/bin/env -S {python.name} -u\n")
    script.chmod(0o755)
    lines = told(script, PATH=f"{python.parent}:/usr/bin:/bin")
    assert lines[0][0] == "ok" and "a script for" in lines[0][1]


def test_launchers(told: PROGRAM, compiled: Compile) -> None:
    srun = compiled("srun", MAIN)
    lines = told(srun, "--export=NONE", "train")
    assert states(lines) == ["fail"] and "--export=NONE" in lines[0][1]
    assert lines[0][2] == "write overlap-run in front of the program that it starts"
    lines = told(srun, "train")
    assert states(lines) == ["ok", "ok"] and "they are not looked at here" in lines[1][1]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("docker run x", "overlap env --policy h100 --format docker >overlap.env; give run -v "),
        ("sudo ./x", "write overlap-run --policy h100 in front of the program that it starts"),
    ],
)
def test_launchers_get_the_advice_of_overlap_run(told: PROGRAM, compiled: Compile, words: str, hint: str) -> None:
    name, *more = words.split()
    ((state, sentence, said),) = told(compiled(name, MAIN, "-static"), *more, machine={"policy": "h100"})
    assert state == "fail" and "starts programs without" in sentence and hint in said


def test_a_static_launcher_passes_the_environment_on(told: PROGRAM, compiled: Compile) -> None:
    ((state, sentence, _),) = told(compiled("docker", MAIN, "-static"), "run", "--env-file", "overlap.env", "x")
    assert state == "ok" and "what is set arrives there" in sentence


def test_nvidias_runtime_does_not_run_on_the_simulated_gpu(overlap: Any, library: Any, compiled: Compile) -> None:
    name = "libcudart.so.13"  # which the simulated GPU has, too
    runtime = compiled(name, "int cudaFree(void *p) { return p != 0; }", "-shared", "-fPIC", f"-Wl,-soname,{name}")
    source = "int cudaFree(void *); int main(void) { return cudaFree(0); }"
    flags = (str(runtime), f"-Wl,--disable-new-dtags,-rpath,{runtime.parent}")
    said = overlap("doctor", "--simulate", "h100", compiled("program", source, *flags), env={"COLUMNS": "100"}).stdout
    assert said.startswith(
        "in the way: libcudart.so.13: NVIDIA's own CUDA runtime, which does not run on the simulated"
    )
    assert "nvcc -cudart shared -no-compress" in said
    plain = overlap("doctor", "--simulate", "h100", compiled("program", source, str(runtime)), env={"COLUMNS": "100"})
    assert plain.stdout.startswith("nothing is in the way\n"), plain.stdout


@pytest.mark.parametrize(
    ("gpu", "opens", "state"),
    [
        ("mi250x", ("nvidia",), "fail"),
        ("h100", ("amd",), "fail"),
        ("mi250x", ("amd",), "ok"),
        ("h100", ("nvidia",), "ok"),
        ("mi250x", ("nvidia", "amd"), "ok"),
    ],
)
def test_a_program_for_the_other_vendor_finds_no_simulated_gpu(
    overlap: Any,
    library: Any,
    compiled: Compile,
    libraries: dict[str, Path],
    gpu: str,
    opens: tuple[str, ...],
    state: str,
) -> None:
    names = {"nvidia": "libcuda.so.1", "amd": "libamdhip64.so.7"}
    linked = [str(libraries[names[vendor]]) for vendor in opens]
    program = compiled(f"opens-{'-'.join(opens)}", MAIN, "-Wl,--no-as-needed", *linked)
    env = {"LD_LIBRARY_PATH": os.path.dirname(linked[0])}
    done = overlap("doctor", "--json", "--simulate", gpu, program, env=env)
    lines = [check for check in json.loads(done.stdout)["checks"] if check["check"] == "program"]
    said = [line for line in lines if "it finds no GPU" in line["sentence"]]
    assert ("fail" if said else "ok") == state, lines
    assert done.returncode == (1 if said else 0)
    if said:
        other = {"mi250x": "h100", "h100": "mi250x"}[gpu]
        assert f"--simulate {other}" in said[0]["hint"]


def test_a_missing_script_of_python(told: PROGRAM, python: Path, tmp_path: Path) -> None:
    for command in (["nosuch.py"], ["-u", "nosuch.py", "--x"]):
        found = [line for line in told(python, *command) if line[0] == "fail"]
        assert [line[1] for line in found] == ["nosuch.py, which python3 is to run, is not there"], command
    (tmp_path / "there.py").write_text("")
    fine: list[list[object]] = [[], ["-"], ["-m", "nosuch.py"], ["-c", "1", "nosuch.py"], ["-W", "ignore", "nosuch.py"]]
    for command in (*fine, [tmp_path / "there.py", "nosuch.py"]):
        assert "fail" not in states(told(python, *command)), command
