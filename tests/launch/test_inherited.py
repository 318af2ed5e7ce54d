"""What the installed commands inherit: the program gets all of it, and nothing of Python's own."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

COMMANDS = Path(sys.executable).parent
RUN = str(COMMANDS / "overlap-run")
SHOW = ("cat", "/proc/self/environ")
BASE = [b"PATH=/usr/bin:/bin", b"HOME=/nonexistent"]


def start(
    command: Sequence[str], entries: Sequence[bytes], folder: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """With exactly this environment, which no mapping could hold."""
    words = [os.fsencode(word) for word in command]
    vectors = [(ctypes.c_char_p * (len(vector) + 1))(*vector, None) for vector in (words, entries)]
    execve = ctypes.CDLL(None).execve
    return subprocess.run(
        ["/nonexistent"],
        executable="/bin/false",
        preexec_fn=lambda: execve(words[0], *vectors),
        capture_output=True,
        timeout=300,
        check=False,
        cwd=folder,
    )


def inherited(done: subprocess.CompletedProcess[bytes]) -> list[bytes]:
    """What the program got, without what the library reads."""
    assert done.returncode == 0, done.stderr.decode()
    return [entry for entry in done.stdout.split(b"\0")[:-1] if not entry.startswith((b"OVERLAP_", b"LD_PRELOAD="))]


LOCALES = (
    [],
    [b"LANG=C"],
    [b"LC_CTYPE=C"],
    [b"LC_CTYPE=POSIX", b"LANG=C"],
    [b"LANG=C", b"LC_CTYPE=C.UTF-8"],
    [b"LC_ALL=C"],
)


@pytest.mark.parametrize("locale", LOCALES, ids=str)
@pytest.mark.parametrize("off", [[], [b"OVERLAP_RUN=off"]], ids=["on", "off"])
def test_python_s_locale_stays_its_own(locale: list[bytes], off: list[bytes]) -> None:
    assert inherited(start([RUN, "--quiet", *SHOW], [*BASE, *locale, *off])) == [*BASE, *locale]


def test_every_variable_arrives_as_it_is() -> None:
    """Of what is no variable nothing arrives; of two entries of one name, the first, as getenv() finds it."""
    odd = [b"A=\xff\xfe", b"\xe4=1", b"BASH_FUNC_module%%=() {  eval x\n}", b"TWICE=1", b"EMPTY=", b"A.B-C=d"]
    done = start([RUN, "--quiet", *SHOW], [b"no sign", b"=no name", b"", *BASE, *odd, b"TWICE=2"])
    assert inherited(done) == [*BASE, *odd]


def test_a_dry_run_and_env_say_nothing_of_it() -> None:
    for command in ([RUN, "--dry-run"], [str(COMMANDS / "overlap"), "env", "--policy", "h100"]):
        done = start(command, BASE)
        assert done.returncode == 0, done.stderr.decode()
        assert b"LC_CTYPE" not in done.stdout + done.stderr


OTHERS = {
    "PYTHONHOME": "/nonexistent",
    "PYTHONPATH": "{foreign}",
    "PYTHONSTARTUP": "{foreign}/os.py",
    "PYTHONSAFEPATH": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONWARNINGS": "error",
    "PYTHONDEVMODE": "1",
    "PYTHONINSPECT": "1",
    "PYTHONPLATLIBDIR": "none",
    "PYTHONIOENCODING": "none",
    "PYTHONCOERCECLOCALE": "warn",
    "PYTHONPROFILEIMPORTTIME": "1",
    "PYTHONVERBOSE": "1",
    "PYTHONHASHSEED": "x",
    "PYTHONMALLOC": "x",
    "PYTHONUTF8": "x",
    "PYTHONTRACEMALLOC": "x",
}


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Modules of another Python, some under names of the standard library and of ours."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    for name in ("os", "re", "site", "typing", "yaml", "cffi", "pyshim", "sitecustomize", "argparse", "encodings"):
        (folder / f"{name}.py").write_text(f"print 'the {name} of another Python'\n")
    return folder


@pytest.mark.parametrize("names", [*([name] for name in OTHERS), list(OTHERS)], ids=lambda names: "+".join(names)[:40])
def test_variables_for_another_python_are_the_program_s(names: list[str], foreign: Path) -> None:
    entries = [*BASE, *(f"{name}={OTHERS[name].format(foreign=foreign)}".encode() for name in names)]
    done = start([RUN, "--quiet", *SHOW], entries)
    assert inherited(done) == entries
    assert done.stderr == b""


@pytest.mark.parametrize(
    "arguments",
    [["policy", "list"], ["env", "--policy", "h100"], ["doctor", "true"], ["demo"]],
    ids=lambda words: words[0],
)
def test_overlap_itself_runs_under_them(arguments: list[str], foreign: Path, tmp_path: Path) -> None:
    entries = [*BASE, *(f"{name}={value.format(foreign=foreign)}".encode() for name, value in OTHERS.items())]
    here, there = (start([str(COMMANDS / "overlap"), *arguments], given, tmp_path) for given in (BASE, entries))
    assert (there.returncode, there.stdout) == (here.returncode, here.stdout), there.stderr
    assert here.returncode in (0, 1)


@pytest.mark.plain("a sanitizer must be in LD_PRELOAD", sanitized=True)
def test_modules_that_only_pythonpath_leads_to_are_found(tmp_path: Path) -> None:
    """As `pip install --target` and the modules of clusters have it."""
    site = Path(
        subprocess.check_output([sys.executable, "-c", "import yaml; print(yaml.__path__[0])"], text=True).strip()
    ).parent
    bare, packages = tmp_path / "bare", tmp_path / "packages"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    packages.mkdir()
    for entry in site.iterdir():
        if not entry.name.startswith(("_overlap_run", "overlap_run", "__editable")):
            (packages / entry.name).symlink_to(entry)
    (packages / "pyshim").symlink_to(Path(__file__).resolve().parents[2] / "pyshim")
    install(bare / "bin", f"#!{bare}/bin/python\n")
    done = start([str(bare / "bin" / "overlap-run"), "--quiet", *SHOW], BASE)
    error, hint = done.stderr.splitlines()
    assert done.returncode == 125 and b"pyshim" in error and b"help: install the package again" in hint
    given = [*BASE, f"PYTHONPATH={packages}".encode()]
    assert inherited(start([str(bare / "bin" / "overlap-run"), "--quiet", *SHOW], given)) == given


@pytest.mark.parametrize("off", [[], [b"OVERLAP_RUN=off"]], ids=["on", "off"])
@pytest.mark.parametrize(
    "ignored", [(), (signal.SIGPIPE,), (signal.SIGXFSZ,), (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGUSR1)], ids=str
)
def test_the_program_ignores_the_signals_that_were_ignored(
    ignored: tuple[signal.Signals, ...], off: list[bytes]
) -> None:
    """Python ignores both of them at its start, so that what was before can be seen only before it."""

    def ignore() -> None:
        for each in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGUSR1):
            signal.signal(each, signal.SIG_IGN if each in ignored else signal.SIG_DFL)

    words = [RUN, "--quiet", "grep", "SigIgn", "/proc/self/status"]
    environment = dict(entry.split(b"=", 1) for entry in [*BASE, *off])
    done = subprocess.run(words, env=environment, preexec_fn=ignore, capture_output=True, timeout=300, check=True)
    mask = int(done.stdout.split()[1], 16)
    seen = {each for each in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGUSR1) if mask >> (each - 1) & 1}
    assert seen == set(ignored)


def install(folder: Path, header: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    script = (COMMANDS / ".overlap-run.py").read_text().partition("\n")[2]
    (folder / ".overlap-run.py").write_text(header + script)
    for name in ("overlap", "overlap-run"):
        shutil.copy(COMMANDS / name, folder / name)


RELATIVE = '"$(dirname -- "$(realpath -- "$0")")"/\'python\''


@pytest.mark.parametrize(
    "header",
    [
        "#!{python}\n",
        "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n",
        "#!/bin/sh\n'''exec' '{python}' \"$0\" \"$@\"\n' '''\n",
        f"#!/bin/sh\n'''exec' {RELATIVE} \"$0\" \"$@\"\n' '''\n",
        "#!/bin/sh /opt/spack/bin/sbang\n#!{python}\n",
        "#!/usr/bin/env python\n",
        "#!/moved/from/here/bin/python\n",
    ],
    ids=["plain", "pip", "uv", "uv relocatable", "sbang", "conda", "moved"],
)
@pytest.mark.parametrize("name", ["with spaces", "long" * 50])
def test_the_interpreter_is_the_one_that_the_installer_names(header: str, name: str, tmp_path: Path) -> None:
    """A path with spaces, and one longer than the kernel reads in a first line."""
    folder = tmp_path / name / "bin"
    folder.mkdir(parents=True)
    for python in ("python", "python3"):
        (folder / python).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (folder / python).chmod(0o755)
    install(folder, header.format(python=folder / "python"))
    (tmp_path / "link").symlink_to(folder / "overlap-run")
    for command in (folder / "overlap-run", tmp_path / "link"):
        done = start([str(command), "--version"], BASE)
        assert (done.returncode, done.stdout[:12]) == (0, b"overlap-run "), done.stderr


@pytest.mark.parametrize(
    "header",
    [
        "#!/nonexistent/python\n",
        "no header\n",
        "#!/bin/sh\nexit 0\n",
        "#!/bin/sh /opt/spack/bin/sbang\nx\n",
        "#!/etc/passwd\n",
        "",
    ],
)
def test_what_cannot_start_is_one_line_with_a_next_step_and_125(header: str, tmp_path: Path) -> None:
    install(tmp_path, header)
    done = start([str(tmp_path / "overlap-run"), "true"], BASE)
    error, hint = done.stderr.splitlines()
    assert done.returncode == 125 and error.startswith(b"overlap-run: error: cannot start: ")
    assert hint.startswith(b"overlap-run: help: the installation is broken, or closed to this user: ")
    (tmp_path / ".overlap-run.py").unlink()
    assert start([str(tmp_path / "overlap-run"), "true"], BASE).returncode == 125


@pytest.mark.parametrize("command", ["doctor", "explain demo-stencil", "policy list", "report nosuch", "overlap-run"])
def test_an_early_ctrl_c_prints_no_traceback(command: str) -> None:
    words = (
        [RUN, "--quiet", "sleep", "0.1"] if command == "overlap-run" else [str(COMMANDS / "overlap"), *command.split()]
    )
    environment = dict(entry.split(b"=", 1) for entry in BASE)
    finished = subprocess.run(words, env=environment, capture_output=True, timeout=60, check=False).returncode
    for milliseconds in range(0, 85, 5):
        process = subprocess.Popen(
            words,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        time.sleep(milliseconds / 1000)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert b"Traceback" not in said, (milliseconds, said.decode())
        assert process.returncode in (-signal.SIGINT, 130, finished), (milliseconds, process.returncode, said.decode())


@pytest.mark.parametrize("ignored", [True, False])
@pytest.mark.parametrize("blocked", [True, False])
def test_the_program_gets_sigint_as_overlap_run_got_it(ignored: bool, blocked: bool) -> None:
    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK if blocked else signal.SIG_UNBLOCK, [signal.SIGINT])

    words = [RUN, "--quiet", "grep", "-E", "Sig(Ign|Blk|Cgt)", "/proc/self/status"]
    environment = dict(entry.split(b"=", 1) for entry in BASE)
    done = subprocess.run(words, env=environment, preexec_fn=prepare, capture_output=True, timeout=300, check=True)
    fields = dict(line.split(b":\t") for line in done.stdout.splitlines())
    seen = [bool(int(fields[name], 16) >> (signal.SIGINT - 1) & 1) for name in (b"SigIgn", b"SigBlk", b"SigCgt")]
    assert seen == [ignored, blocked, False]


def test_an_ignored_ctrl_c_does_not_end_a_command() -> None:
    """As in the background of a shell that is not interactive."""
    process = subprocess.Popen(
        [COMMANDS / "overlap", "policy", "list"],
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    assert process.returncode == 0
