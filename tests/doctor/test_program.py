"""PROGRAM, looked at: real programs of every kind, and folders that look like a Python's."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any, Callable

import pytest
from doctoring import Compile, Lines, Look, states

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
    assert told("nosuch")[0][:2] == ("fail", "nosuch: program not found")
    (tmp_path / "text").write_text("hello")
    assert told(tmp_path / "text") == [
        ("fail", f"{tmp_path}/text is not executable", f"chmod +x {tmp_path}/text"),
    ]


def test_a_text_file_without_an_interpreter_is_not_passed_over(told: PROGRAM, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("echo hello")
    (tmp_path / "text").chmod(0o755)
    ((state, sentence, hint),) = told(tmp_path / "text")
    assert state == "warn" and "is no ELF file" in sentence and hint


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


def test_a_program_of_another_machine(told: PROGRAM, compiled: Compile, tmp_path: Path) -> None:
    """A real program whose header says another machine."""
    data = bytearray(compiled("program", MAIN).read_bytes())
    other, name = (183, "aarch64") if data[18] == 62 else (62, "x86_64")
    data[18] = other
    path = tmp_path / "program"
    path.write_bytes(data)
    path.chmod(0o755)
    ((state, sentence, _),) = told(path)
    assert state == "fail" and f"is a program for {name}, not" in sentence


def test_another_c_library(told: PROGRAM, compiled: Compile) -> None:
    program = compiled("program", MAIN, "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
    ((state, sentence, _),) = told(program)
    assert state == "fail" and "is linked to musl, not glibc" in sentence


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to somebody else")
def test_other_privileges(told: PROGRAM, compiled: Compile, tmp_path: Path) -> None:
    shutil.copy(compiled("program", MAIN), tmp_path / "program")
    os.chown(tmp_path / "program", 1, 1)
    (tmp_path / "program").chmod(0o755 | stat.S_ISUID)
    ((state, sentence, hint),) = told(tmp_path / "program")
    assert state == "fail" and "setuid" in sentence and "privileges" in hint


@pytest.fixture
def libraries(compiled: Compile) -> dict[str, Path]:
    """Make empty libraries of the names that the check looks for."""
    return {
        name: compiled(name, "int cuInit(unsigned f) { return (int)f; }", "-shared", "-fPIC", f"-Wl,-soname,{name}")
        for name in ("libcuda.so.1", "libcudart.so.99", "libamdhip64.so.6")
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("libcuda.so.1", "linked to the driver itself, launches are seen by symbol"),
        ("libcudart.so.99", "shared CUDA runtime, which finds the driver by dlsym"),
        ("libamdhip64.so.6", "linked to HIP, launches are seen by symbol"),
    ],
)
def test_the_way_to_the_driver_by_linked_libraries(
    told: PROGRAM, compiled: Compile, libraries: dict[str, Path], name: str, words: str
) -> None:
    path = libraries[name]
    program = compiled("program", "int cuInit(unsigned); int main(void) { return cuInit(0); }", str(path))
    lines = told(program, LD_LIBRARY_PATH=str(path.parent))
    assert states(lines) == ["ok", "ok"]
    assert words in lines[1][1] and f"({name} from {path})" in lines[1][1]
    state, sentence, hint = told(program)[1]
    assert state == "fail" and sentence.startswith(f"{name}, which program needs, is not found") and hint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("libcuda.so.1", "opens libcuda.so itself, launches are seen by dlsym"),
        ("libamdhip64.so.7", "opens libamdhip64.so itself"),
    ],
)
def test_a_program_that_opens_the_driver_itself(told: PROGRAM, compiled: Compile, text: str, words: str) -> None:
    source = f'#include <dlfcn.h>\nint main(void) {{ return dlopen("{text}", RTLD_NOW) != 0; }}'
    lines = told(compiled("program", source, "-ldl"))
    assert states(lines) == ["ok", "ok"] and words in lines[1][1]


@pytest.mark.parametrize("package", ["nvidia/cu13", "nvidia/cuda_runtime"])
def test_nvidias_own_static_runtime(told: PROGRAM, compiled: Compile, package: str) -> None:
    """The real libcudart_static.a, stripped, of CUDA 13 and of 12."""
    library = next(
        (Path(p) / package / "lib/libcudart_static.a" for p in sys.path if (Path(p) / package).is_dir()), None
    )
    if library is None or not library.exists():
        pytest.skip("no libcudart_static.a in site-packages")
    source = "int cudaGetDeviceCount(int *); int main(void) { int n; return cudaGetDeviceCount(&n); }"
    program = compiled("program", source, str(library), "-lpthread", "-ldl", "-lrt", "-s")
    lines = told(program)
    assert states(lines) == ["ok", "ok"]
    assert lines[1][1].startswith("program: a CUDA runtime of its own inside")


def test_a_program_without_any_way_is_told(told: PROGRAM, compiled: Compile) -> None:
    lines = told(compiled("program", MAIN))
    assert states(lines) == ["ok", "warn"] and "no way to a GPU was found in program" in lines[1][1]


def test_rpath_before_ld_library_path(
    told: PROGRAM, compiled: Compile, libraries: dict[str, Path], tmp_path: Path
) -> None:
    path = libraries["libcuda.so.1"]
    source = "int cuInit(unsigned); int main(void) { return cuInit(0); }"
    flags = (str(path), f"-Wl,-rpath,{path.parent}")
    old = compiled("program", source, *flags, "-Wl,--disable-new-dtags")
    new = compiled("program", source, *flags, "-Wl,--enable-new-dtags")
    shutil.copy(path, tmp_path)
    ((state, sentence, _),) = [line for line in told(old, LD_LIBRARY_PATH="ROOT") if "RPATH" in line[1]]
    assert state == "warn"
    assert sentence.startswith(
        f"libcuda.so.1 is taken from {path}, by DT_RPATH of program, and not from LD_LIBRARY_PATH"
    )
    assert not any("RPATH" in sentence for _, sentence, _ in told(new, LD_LIBRARY_PATH="ROOT"))
    assert not any("RPATH" in sentence for _, sentence, _ in told(old))
    (tmp_path / path.name).write_bytes(b"not a library")
    assert not any("RPATH" in sentence for _, sentence, _ in told(new, LD_LIBRARY_PATH="ROOT"))


def test_scripts_are_followed_to_what_runs_them(told: PROGRAM, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n./train\n")
    script.chmod(0o755)
    lines = told(script)
    assert states(lines) == ["ok", "ok"]
    assert lines[0][1] == f"{script}, a script for /bin/sh: the library can be loaded into it"
    assert "what is set arrives at what it starts" in lines[1][1]


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("#!/no/such", "/no/such, which its first line names, is not there"),
        ("#!/usr/bin/env nosuchprogram", "nosuchprogram, which its first line names, is not there"),
        ("#!/usr/bin/env -S nosuchprogram -x", "nosuchprogram, which its first line names, is not there"),
    ],
)
def test_a_script_whose_interpreter_is_missing(told: PROGRAM, tmp_path: Path, first: str, words: str) -> None:
    script = tmp_path / "script"
    script.write_text(f"{first}\n")
    script.chmod(0o755)
    ((state, sentence, hint),) = told(script, PATH="/usr/bin:/bin")
    assert state == "fail" and sentence == f"{script} ends with 127: {words}" and hint


def test_a_missing_script_of_python(told: PROGRAM, python: Path, tmp_path: Path) -> None:
    (tmp_path / "there.py").write_text("")
    for command in (["nosuch.py"], ["-u", "-W", "ignore", "nosuch.py", "--x"], ["-uXdev", "nosuch.py"]):
        found = [line for line in told(python, *command) if line[0] == "fail"]
        assert [line[1] for line in found] == ["nosuch.py, which python is to run, is not there"], command
    shim = tmp_path / "python3"
    shim.write_text("#!/bin/sh\nexec true\n")
    shim.chmod(0o755)
    assert "nosuch.py, which python3 is to run, is not there" in [line[1] for line in told(shim, "nosuch.py")]
    fine: list[list[object]] = [[], ["-"], ["-m", "nosuch"], ["-c", "1", "nosuch.py"], ["-um", "x"], ["-V"], [tmp_path]]
    fine.append([tmp_path / "there.py", "nosuch.py"])
    for command in fine:
        assert "fail" not in states(told(python, *command)), command


SHIM = """#!/usr/bin/env bash
set -e
[ -n "$PYENV_DEBUG" ] && set -x

program="${0##*/}"

export PYENV_ROOT="ROOT"
exec "ROOT/libexec/pyenv" exec "$program" "$@"
"""


@pytest.fixture
def shim(tmp_path: Path, python: Path) -> Path:
    """A shim as pyenv makes it, and a pyenv that answers `which` by the file `chosen`."""
    root = tmp_path / "pyenv"
    for name, text in (
        (
            "libexec/pyenv",
            f'#!/bin/sh\n[ "$1 $2" = "which python" ] && cat {root}/chosen && exit\necho no >&2; exit 127\n',
        ),
        ("shims/python", SHIM.replace("ROOT", str(root))),
    ):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text)
        (root / name).chmod(0o755)
    (root / "chosen").write_text(f"{python}\n")
    return root / "shims/python"


def test_a_shim_of_pyenv_is_followed_to_the_python_that_it_starts(told: PROGRAM, shim: Path, python: Path) -> None:
    lines = told(shim, "-c", "1", PATH=os.environ["PATH"])
    assert lines[0] == ("ok", f"{shim} is a script of pyenv, which starts {python}", "")
    assert lines[1][1] == f"{python}: the library can be loaded into it"
    assert "torch 2.11.0" in packages(lines)
    assert not any("for a shell" in sentence for _, sentence, _ in lines)


def test_a_python_behind_a_shim_that_the_library_cannot_be_loaded_into(
    told: PROGRAM, shim: Path, compiled: Compile
) -> None:
    static = compiled("python3", MAIN, "-static")
    (shim.parent.parent / "chosen").write_text(f"{static}\n")
    assert "fail" in states(told(shim, PATH=os.environ["PATH"]))


@pytest.mark.parametrize("chosen", [None, "/no/such/python\n", "\n"], ids=str)
def test_a_shim_whose_manager_cannot_say_is_told(told: PROGRAM, shim: Path, chosen: str | None) -> None:
    file = shim.parent.parent / "chosen"
    file.unlink() if chosen is None else file.write_text(chosen)
    lines = told(shim, "-c", "1", PATH=os.environ["PATH"])
    (found,) = [line for line in lines if line[0] == "warn"]
    assert "pyenv does not say which python it starts" in found[1] and "pyenv which python" in found[2]
    assert not any("can be loaded" in sentence for _, sentence, _ in lines)


@pytest.mark.parametrize("last", ['exec {} "$@"', 'export X=1\nexec "{}" "$@"\n\n'])
def test_a_wrapper_that_ends_in_exec_is_followed(told: PROGRAM, python: Path, tmp_path: Path, last: str) -> None:
    wrapper = tmp_path / "python"
    wrapper.write_text("#!/bin/sh\n# of the site\n" + last.format(python))
    wrapper.chmod(0o755)
    assert "torch 2.11.0" in packages(told(wrapper, "-c", "1"))


def test_a_python_that_is_another_script_is_not_said_to_be_fine(told: PROGRAM, tmp_path: Path) -> None:
    script = tmp_path / "python3"
    script.write_text('#!/bin/sh\nmodule load python && command python3 "$@"\n')
    script.chmod(0o755)
    (found,) = [line for line in told(script, "-c", "1") if line[0] == "warn"]
    assert "which Python it starts is not known here" in found[1] and "overlap doctor" in found[2]


def test_what_opens_libraries_past_us(told: PROGRAM, compiled: Compile, tmp_path: Path) -> None:
    julia = compiled("julia", MAIN)
    (hint,) = [hint for state, sentence, hint in told(julia) if state == "warn" and "RTLD_DEEPBIND" in sentence]
    assert hint and "open them without it" in hint
    script = tmp_path / "script"
    script.write_text(f"#!{sys.executable}\nimport os, sys\nsys.setdlopenflags(os.RTLD_DEEPBIND | os.RTLD_NOW)\n")
    script.chmod(0o755)
    assert any("script names RTLD_DEEPBIND" in sentence for _, sentence, _ in told(script))


def test_launchers(told: PROGRAM, compiled: Compile) -> None:
    srun = compiled("srun", MAIN)
    lines = told(srun, "--export=NONE", "train")
    assert [line[0] for line in lines] == ["ok", "warn"] and "--export=NONE" in lines[1][1]
    lines = told(srun, "train")
    assert states(lines) == ["ok", "ok"] and "they are not looked at here" in lines[1][1]


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A virtual environment with the outside of PyTorch, Triton and CuPy, and a site of the system's below it."""
    base = tmp_path / "usr"
    for folder in ("bin", "lib/python3.11/site-packages"):
        (base / folder).mkdir(parents=True)
    shutil.copy(os.path.realpath(sys.executable), base / "bin/python3.11")
    venv = tmp_path / "venv"
    site = venv / "lib/python3.11/site-packages"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").symlink_to(base / "bin/python3.11")
    (venv / "pyvenv.cfg").write_text(f"home = {base}/bin\ninclude-system-site-packages = false\nversion = 3.11.7\n")
    for name in ("torch-2.11.0", "triton-3.6.0", "nvidia_nccl_cu13-2.28.9", "numpy-2.0"):
        (site / f"{name}.dist-info").mkdir(parents=True)
    (base / "lib/python3.11/site-packages/jax-0.9.dist-info").mkdir()
    (site / "torch/lib").mkdir(parents=True)
    (site / "torch/version.py").write_text("cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n")
    return venv / "bin/python"


def site_of(python: Path) -> Path:
    return python.parent.parent / "lib/python3.11/site-packages"


def packages(lines: Lines) -> str:
    return next(sentence for _, sentence, _ in lines if sentence.startswith("packages of this Python"))


def test_packages_of_that_python_and_of_no_other(told: PROGRAM, python: Path) -> None:
    lines = told(python, "train.py")
    said = "packages of this Python: nvidia-nccl-cu13 2.28.9, torch 2.11.0 (CUDA 13.0), triton 3.6.0"
    assert packages(lines) == said
    assert ("ok", "triton: opens the driver itself, launches are seen by dlsym", "") in lines
    settings = python.parent.parent / "pyvenv.cfg"
    settings.write_text(settings.read_text().replace("false", "true"))
    assert packages(told(python)) == said + ", jax 0.9"


def test_how_pytorch_reaches_the_driver(
    told: PROGRAM, python: Path, compiled: Compile, libraries: dict[str, Path]
) -> None:
    runtime = libraries["libcudart.so.99"]
    source = "int cuInit(unsigned); int f(void) { return cuInit(0); }"
    flags = ("-shared", "-fPIC", str(runtime), "-Wl,--disable-new-dtags,-rpath,$ORIGIN/../../nvidia/cu13/lib")
    torch = compiled("libtorch_cuda.so", source, *flags)
    shutil.copy(torch, site_of(python) / "torch/lib")
    (site_of(python) / "nvidia/cu13/lib").mkdir(parents=True)
    shutil.copy(runtime, site_of(python) / "nvidia/cu13/lib")
    said = [sentence for _, sentence, _ in told(python, "train.py") if "libtorch_cuda" in sentence]
    assert len(said) == 1 and said[0].startswith("libtorch_cuda.so: shared CUDA runtime")
    assert "site-packages/torch/lib/../../nvidia/cu13/lib/libcudart.so.99)" in said[0]


def test_a_python_without_packages_is_told(told: PROGRAM, python: Path) -> None:
    shutil.rmtree(site_of(python))
    (line,) = [line for line in told(python) if "no package" in line[1]]
    assert line[0] == "warn" and "no package that uses GPUs is in the folders of" in line[1]


def test_nvidias_runtime_does_not_run_on_the_simulated_gpu(overlap: Any, library: Any, compiled: Compile) -> None:
    name = "libcudart.so.13"  # which the simulated GPU has, too
    runtime = compiled(name, "int cudaFree(void *p) { return p != 0; }", "-shared", "-fPIC", f"-Wl,-soname,{name}")
    source = "int cudaFree(void *); int main(void) { return cudaFree(0); }"
    flags = (str(runtime), f"-Wl,--disable-new-dtags,-rpath,{runtime.parent}")
    said = overlap("doctor", "--simulate", "h100", compiled("program", source, *flags), env={"COLUMNS": "100"}).stdout
    assert "warn  libcudart.so.13 is taken from" in said
    assert "warn  program: NVIDIA's own CUDA runtime, which does not run on the simulated GPU" in said
    plain = overlap("doctor", "--simulate", "h100", compiled("program", source, str(runtime)), env={"COLUMNS": "100"})
    assert "simgpu/libcudart.so.13)" in plain.stdout and "warn" not in plain.stdout


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
    overlap: Any, library: Any, compiled: Compile, gpu: str, opens: tuple[str, ...], state: str
) -> None:
    texts = {"nvidia": "libcuda.so.1", "amd": "libamdhip64.so.6"}
    names = ", ".join(f'"{texts[vendor]}"' for vendor in opens)
    source = f"const char *const names[] = {{{names}}}; int main(int n, char **v) {{ return names[n % 2] == v[0]; }}"
    done = overlap("doctor", "--json", "--simulate", gpu, compiled(f"opens-{'-'.join(opens)}", source))
    lines = [check for check in json.loads(done.stdout)["checks"] if check["check"] == "program"]
    said = [line for line in lines if "it finds no GPU" in line["sentence"]]
    assert ("fail" if said else "ok") == state, lines
    assert done.returncode == (1 if said else 0)
    if said:
        other = {"mi250x": "h100", "h100": "mi250x"}[gpu]
        assert f"--simulate {other}" in said[0]["hint"]
