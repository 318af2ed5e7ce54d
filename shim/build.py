"""Builds what the package carries, with a compiler and the standard library. With cffi and PyYAML it adds what makes
commands start faster.

Used by the packaging hook, by `make`, by sanitizer builds and by tests:

    python shim/build.py [--output DIR] [--only ARTIFACT] [--cflags '-fsanitize=address']
    python shim/build.py --requires

The compiler is $CC, else a working cc, gcc or clang, else `python -m ziglang cc`; for what is released
(OVERLAP_BUILD=release, tools/release) it is the last, whatever else there is. Our flags come first, then $CFLAGS,
then --cflags. The interpreter's own flags are never taken: they carry RUNPATHs and optimisations that a preloaded
library must not have.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "pyshim" / "_lib"

WARNINGS = ("-Wall", "-Wextra", "-Wconversion")
# Distributions turn on _FORTIFY_SOURCE by themselves; its __memcpy_chk and the like are unknown to musl, where a
# program with the library would not start.
COMMON = ("-std=c11", "-D_GNU_SOURCE", "-U_FORTIFY_SOURCE", "-O2", "-g")
SHARED = ("-fPIC", "-shared", "-fvisibility=hidden")
# Every process of a job maps the preloaded library, and mlockall(2) locks all of it: it is compiled for size, except
# what has a budget in instructions (`make bench`). All of SMALLER that the compiler accepts. Not -Oz: gcc 12 then loads
# constants by push and pop and leaves that out of the unwind tables, so that a profiler whose signal comes in between
# reads a wrong return address.
SMALL = ("-Os",)
SMALLER = ("-fno-move-loop-invariants", "-fno-if-conversion")
# Longer code, padding and more functions, for little speed.
FAST = (
    *("-fno-tree-vectorize", "-fno-partial-inlining", "-fno-reorder-blocks-and-partition", "-fno-tree-ch"),
    *("-freorder-blocks-algorithm=simple", "-fno-caller-saves", "-fno-tree-pre", "-fno-tree-tail-merge"),
    *(f"-falign-{what}=1" for what in ("functions", "loops", "jumps")),
)
# No gaps between constants: gcc would align each array to 32 bytes.
PACKED = ("-malign-data=abi",)
FAST_SOURCES = (
    *(
        f"shim/gpu/{name}.c"
        for name in ("captures", "current", "decisions", "ends", "handle", "handles", "launch", "names", "raise")
    ),
    *(f"shim/gpu/{name}.c" for name in ("stream_calls", "streams", "table", "thread", "wait_calls", "waits")),
    *(f"shim/{name}.c" for name in ("core/match", "core/rows", "gpu/windows", "gpu/work")),
    *(f"shim/{name}.c" for name in ("cuda/entry", "cuda/launch", "cuda/runtime", "hip/entry", "hip/launch")),
)
# Never on the stack while code of others runs, so no exception and no pthread_cancel unwinds through these: core, which
# is pure, and what asks the kernel or our own tables only. Unwind tables would be locked with the rest; debuggers read
# .debug_frame.
NEVER_UNWOUND = ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
NEVER_UNWOUND_SOURCES = (
    "shim/core/*.c",
    *(f"shim/sys/{name}.c" for name in ("clock", "elf", "environment", "folder", "log", "memory", "prebind")),
    "shim/sys/process.c",
    *(f"shim/gpu/{name}.c" for name in ("armed", "name", "page")),
    *(f"shim/preload/{name}.c" for name in ("end", "start", "unopened")),
)
INCLUDES = {"shim": ("-Ishim",), "simgpu": ("-Ishim", "-Ishim/core")}
SOURCES = {
    "shim": ("shim/core/*.c", "shim/sys/*.c", "shim/gpu/*.c", "shim/cuda/*.c", "shim/hip/*.c", "shim/preload/*.[cS]"),
    "simgpu": ("tools/simgpu/*.c",),
    "demo-stencil": ("tools/demo/stencil.c",),
    "launcher": ("tools/release/launcher.c",),
    **dict.fromkeys(("runtime12", "runtime13"), ("tools/simgpu/runtime/*.c",)),
    "hip7": ("tools/simgpu/*.c", "tools/simgpu/hip/*.c"),
}
# The engine of the simulated driver without what is NVIDIA's alone.
LEFT_OUT = {"hip7": ("api.c", "lookup.c", "launch_nvidia.c", "elf.c", "fatbin.c")}
FILES = {
    "shim": "liboverlap.so",
    "simgpu": "simgpu/libcuda.so.1",
    "demo-stencil": "demo/demo-stencil",
    "launcher": "launcher",  # the commands `overlap` and `overlap-run`
    # Beside the driver, so that one folder in LD_LIBRARY_PATH is enough.
    "runtime12": "simgpu/libcudart.so.12",
    "runtime13": "simgpu/libcudart.so.13",
    "hip7": "simgpu/hip7/libamdhip64.so.7",
}
# Recorded on two H200 (tests/traces/data): `overlap explain demo-stencil`.
TRACES = {"demo-stencil.json.gz": "stencil-host-events.json.gz"}
# glibc 2.17 is the oldest that the product runs on; a system compiler ties the result to its own glibc instead.
ZIG_TARGET = "{machine}-linux-gnu.2.17"
ZIG = "ziglang==0.16.0"  # as in pyproject.toml


class BuildError(Exception):
    """One sentence: why an artifact could not be built."""


def machine() -> str:
    """The processor that is built for, as glibc spells it. A cross compiler says so in OVERLAP_MACHINE."""
    name = os.environ.get("OVERLAP_MACHINE") or platform.machine()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name.lower(), name)


def works(compiler: Sequence[str], *flags: str) -> bool:
    """Whether it can make a shared library, with these flags: a compiler without the C library's headers cannot."""
    command = [*compiler, *flags, "-x", "c", "-", "-shared", "-fPIC", "-o", os.devnull]
    try:
        return not subprocess.run(command, input=b"#include <stdlib.h>\n", capture_output=True, check=False).returncode
    except OSError:
        return False


def released() -> bool:
    """Whether this is built for every machine with glibc 2.17, rather than for one like this."""
    return os.environ.get("OVERLAP_BUILD") == "release"


def system_compiler() -> list[str] | None:
    """$CC as it stands, or the first compiler on PATH that works. None for a release: it would bring its own glibc."""
    if released():
        return None
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found and works([found]):
            return [found]
    return None


def zig_compiler() -> list[str]:
    """The compiler from the package index, aimed at the oldest glibc; its default sanitizer is off."""
    target = ZIG_TARGET.format(machine=machine())
    return [sys.executable, "-m", "ziglang", "cc", "-target", target, "-fno-sanitize=undefined"]


def requirements() -> list[str]:
    """What must be installed from the package index before a build: a compiler, where there is none."""
    return [] if system_compiler() else [ZIG]


def compiler() -> list[str]:
    return system_compiler() or zig_compiler()


def sources(artifact: str) -> list[str]:
    out = {f"tools/simgpu/{name}" for name in LEFT_OUT.get(artifact, ())}
    found = {str(path.relative_to(ROOT)) for glob in SOURCES[artifact] for path in ROOT.glob(glob)}
    return sorted(found - out)


def arguments(artifact: str) -> list[str]:
    """Everything of the compiler call but the compiler, the output and, for the preloaded library, its objects."""
    if artifact == "shim":
        # Most processes that get the library never use a GPU: they shall not pay for looking up what they never call.
        link = ["-Wl,-soname,liboverlap.so", "-Wl,-z,lazy", "-Wl,-Bsymbolic", "-Wl,-z,noexecstack"]
        link.append("-Wl,-z,norelro")  # another system call for every process; with lazy binding it protects little
        link.append("-Wl,--hash-style=gnu")  # sys/elf.c reads it
        link.append(f"-Wl,--version-script=shim/overlap.{machine()}.map")
        return ["-shared", *link]
    if artifact == "simgpu":
        link = ["-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", "-lm", "-pthread"]
        return [*COMMON, *SHARED, *INCLUDES[artifact], *sources(artifact), *link]
    if artifact.startswith("runtime"):
        version = artifact[len("runtime") :]
        link = [f"-Wl,-soname,libcudart.so.{version}", "-Wl,-Bsymbolic", "-ldl", "-pthread"]
        link.append(f"-Wl,--version-script=tools/simgpu/runtime/libcudart.so.{version}.map")
        return [*COMMON, *SHARED, *WARNINGS, *INCLUDES["shim"], f"-DRUNTIME={version}", *sources(artifact), *link]
    if artifact == "launcher":
        return [*COMMON, *WARNINGS, *sources(artifact)]
    return [*COMMON, *sources(artifact), "-ldl", "-pthread"]


def hip_arguments(version: str, scratch: Path) -> list[str]:
    """Of a simulated HIP runtime: with the names and version nodes of the real one. No -Bsymbolic: what is inside is
    bound by the version script, and the one call by an exported name is meant to be seen."""
    script = scratch / f"libamdhip64.so.{version}.map"
    command = [sys.executable, str(ROOT / "tools" / "simgpu" / "hip" / "names.py")]
    script.write_text(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    link = [f"-Wl,-soname,libamdhip64.so.{version}", f"-Wl,--version-script={script}", "-lm", "-ldl", "-pthread"]
    flags = [*COMMON, *SHARED, *WARNINGS, *INCLUDES["simgpu"], f"-DSIMGPU_HIP={version}"]
    return [*flags, *sources(f"hip{version}"), *link]


def objects(chosen: Sequence[str], flags: Sequence[str], scratch: Path) -> list[str]:
    """Compiles the preloaded library, each file by a call of its own. flags: those of the user and for the linker."""
    flags = [flag for flag in flags if not flag.startswith("-Wl,")]
    common = [*COMMON, "-fPIC", "-fvisibility=hidden", *WARNINGS, *INCLUDES["shim"]]
    every = (SMALL, SMALLER, FAST, PACKED)
    small, smaller, fast, packed = ([flag for flag in wanted if works(chosen, "-Werror", flag)] for wanted in every)
    pure = {str(path.relative_to(ROOT)) for glob in NEVER_UNWOUND_SOURCES for path in ROOT.glob(glob)}

    def one(source: str) -> str:
        made = str(scratch / f"{source.replace('/', '-')}.o")
        speed_or_size = fast if source in FAST_SOURCES else [*small[:1], *smaller]
        own = [*speed_or_size, *(NEVER_UNWOUND if source in pure else ())]
        command = [*chosen, *common, *packed, *own, *flags, "-c", source, "-o", made]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code:
            raise BuildError(f"shim: the compiler failed ({code}): {shlex.join(command)}")
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, sources("shim")))


def build_one(artifact: str, output: Path, cflags: Iterable[str] = ()) -> Path:
    """Compiles to a temporary name and renames: a running program keeps the file that it has mapped."""
    if not sources(artifact):
        raise BuildError(f"{artifact}: no sources below {ROOT}")
    target = output / FILES[artifact]
    target.parent.mkdir(parents=True, exist_ok=True)
    more = list(cflags)
    flags = [f"-ffile-prefix-map={ROOT}=.", *shlex.split(os.environ.get("CFLAGS", "")), *more]
    if not artifact.startswith("demo-") and "-fsanitize" not in " ".join(flags):
        # An undefined symbol would end every process that the library is loaded into.
        flags.append("-Wl,-z,defs")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as scratch:
        made = Path(scratch) / target.name
        chosen = compiler()
        if artifact == "shim" and "ziglang" not in chosen:
            flags.append("-Wl,-z,noseparate-code")  # fewer mappings; zig's linker does not know the flag
        try:
            if artifact == "shim":
                given = [*objects(chosen, flags, Path(scratch)), *arguments(artifact)]
            elif artifact.startswith("hip"):
                given = hip_arguments(artifact[len("hip") :], Path(scratch))
            else:
                given = arguments(artifact)
            command = [*chosen, *given, *flags, "-o", str(made)]
            code = subprocess.run(command, cwd=ROOT, check=False).returncode
        except OSError as error:
            raise BuildError(f"{artifact}: {chosen[0]}: {error.strerror}") from error
        if code:
            raise BuildError(f"{artifact}: the compiler failed ({code}): {shlex.join(command)}")
        made.replace(target)
    return target


def copy(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(source, scratch)
    scratch.replace(target)
    return target


def keep_header(output: Path) -> list[Path]:
    """overlap_abi.h as cffi reads it, so that no command parses C. Without cffi every command does."""
    if not importlib.util.find_spec("cffi"):
        return []
    from cffi import FFI
    from cffi.recompiler import make_py_source  # FFI.emit_python_code() is this, and prints

    ffi = FFI()
    ffi.cdef((ROOT / "shim/overlap_abi.h").read_text(encoding="utf-8"))
    make_py_source(ffi, "pyshim._lib.abi", str(output / "abi.py"))
    return [output / "abi.py"]


def keep_policies(output: Path) -> list[Path]:
    """What the shipped policies compile to: overlap-run starts faster. Without cffi and PyYAML it starts slower."""
    if not all(importlib.util.find_spec(name) for name in ("cffi", "yaml")):
        return []
    command = [sys.executable, "-m", "pyshim.start.chosen", str(output)]
    # What pip isolates a build with is in PYTHONPATH, too.
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"the shipped policies do not compile: {done.stderr.strip()}")
    return [output / "shipped.json"]


def silent(line: str) -> None:
    pass


def build(
    output: Path = OUTPUT, only: str | None = None, cflags: Iterable[str] = (), say: Callable[[str], None] = silent
) -> list[Path]:
    """Builds all artifacts, or one, and copies the files that go with them. Returns what it made. say: gets a line of
    progress when the compiling of a file begins, and one when it is made."""
    if sys.platform != "linux":
        raise BuildError("the preloaded library needs Linux")
    flags = list(cflags)
    wanted = [only] if only else list(FILES)
    begun = itertools.count(1)

    def one(artifact: str) -> Path:
        say(f"compiling {next(begun)} of {len(wanted)}: {FILES[artifact]} ({counted(len(sources(artifact)))})")
        path = build_one(artifact, output, flags)
        say(f"made {path}")
        return path

    # One for each processor, so that each is done early: what is made says how far the build is.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(one, wanted))
    if only in (None, "shim"):
        made += [copy(ROOT / "shim" / name, output / Path(name).name) for name in ("core/reason.def", "sys/rank.def")]
        made += keep_header(output)
        made += keep_policies(output)
    if only is None or only.startswith("demo-"):
        made += carry(output / "demo")
    if only is None and output == OUTPUT:
        prune(output, made)
    return made


def prune(output: Path, made: Iterable[Path]) -> None:
    """Remove what an earlier version built: a program of an old name would hide that nothing builds it any more.

    Names with a leading dot stay: make's stamp, and the scratch files of a build that runs at the same time."""
    kept = {folder for path in made for folder in (path, *path.parents)}
    for path in sorted(output.rglob("*"), reverse=True):  # files before their folder
        if path in kept or any(name.startswith(".") for name in path.relative_to(output).parts):
            continue
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):  # holds a hidden file
                path.rmdir()
        else:
            path.unlink(missing_ok=True)


def counted(files: int) -> str:
    return f"{files} source file{'s' * (files != 1)}"


def carry(folder: Path) -> list[Path]:
    """What goes with the bundled program: kernels, costs, a recorded trace."""
    demo = ROOT / "tools" / "demo"
    made = [copy(demo / name, folder / name) for name in ("stencil.ptx", "stencil_amd.txt", "costs.yaml")]
    return made + [copy(ROOT / "tests/traces/data" / file, folder / name) for name, file in TRACES.items()]


def progress(line: str) -> None:
    """Print a line in one piece: several compilers are under way."""
    sys.stderr.write(f"build: {line}\n")
    sys.stderr.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description="build the preloaded library, the simulated GPU and the demo")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help="default: pyshim/_lib")
    parser.add_argument("--only", choices=sorted(FILES), help="one of them (default: all of the package)")
    parser.add_argument("--cflags", default="", metavar="FLAGS", help="more flags, behind $CFLAGS")
    parser.add_argument("--requires", action="store_true", help="build nothing; print what pip must install before")
    options = parser.parse_args()
    if options.requires:
        print(*requirements())
        return 0
    try:
        build(options.output.resolve(), options.only, shlex.split(options.cflags), progress)
    except BuildError as error:
        print(f"build: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
