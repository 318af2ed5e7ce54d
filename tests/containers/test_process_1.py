"""Process 1 of a container: overlap-run, and what tools/deploy/kubernetes.yaml says, with its own commands."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from containers import WORDS, Engine, copied, launches

SNIPPET = Path(__file__).resolve().parents[2] / "tools" / "deploy" / "kubernetes.yaml"
# Says its process id, and each SIGTERM that it gets; until its input ends. A signal ends one `read`.
COUNT = "trap 'echo TERM' TERM; echo $$; read line; while read line; do :; done; echo end"
# The same for an interpreter that starts other threads, and waits in a system call.
COUNT_PYTHON = """\
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"TERM\\n"))
print(os.getpid(), flush=True)
sys.stdin.read()
print("end")
"""


class Started:
    """A container whose process 1 can be sent signals from the host, as a container runtime does."""

    def __init__(self, words: list[str], env: Mapping[str, str]) -> None:
        told, tell = os.pipe()
        command = ["bwrap", "--die-with-parent", "--info-fd", str(tell), "--unshare-pid", "--as-pid-1", *words]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process: subprocess.Popen[str] = subprocess.Popen(
            command, env=dict(env), pass_fds=[tell], text=True, **pipes
        )
        os.close(tell)
        with os.fdopen(told) as file:
            self.pid = json.load(file)["child-pid"]

    def line(self) -> str:
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], 30)[0]:
            self.process.kill()
        return self.process.stdout.readline().strip()

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def end(self) -> tuple[int, str, str]:
        """Its input ends."""
        out, err = self.process.communicate(timeout=300)
        return self.process.returncode, out, err


def of_host() -> Iterator[str]:
    """The words for a root like the host's, in which there may be other mount points."""
    for path in sorted(Path("/").iterdir()):
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        elif path.is_dir() and path.name not in ("proc", "dev", "lost+found"):
            yield from ("--ro-bind", str(path), str(path))
    yield from ("--proc", "/proc", "--dev", "/dev")


def assert_one_signal(started: Started) -> None:
    assert started.line() == "1"
    started.terminate()
    assert started.line() == "TERM"
    time.sleep(0.2)  # for another one to arrive
    status, out, _ = started.end()
    assert (status, out) == (0, "end\n")


def test_overlap_run_as_process_1_passes_on_a_signal_once(bwrap: Engine, report: Path) -> None:
    ours = ["overlap-run", "--simulate", "h100", "--policy", "observe", "--report", "/report"]
    words = [*of_host(), "--bind", str(report), "/report", *ours, sys.executable, "-c", COUNT_PYTHON]
    assert_one_signal(Started(words, bwrap.environment))


# ---- Kubernetes ----


class Pod:
    """The snippet; its volumes are folders."""

    def __init__(self, folder: Path) -> None:
        self.spec: dict[str, Any] = yaml.safe_load(SNIPPET.read_text())["spec"]
        self.volumes = {volume["name"]: folder / volume["name"] for volume in self.spec["volumes"]}
        for volume in self.spec["volumes"]:
            assert volume["emptyDir"] == {}
            self.volumes[volume["name"]].mkdir()
        (self.init,), (self.main,) = self.spec["initContainers"], self.spec["containers"]

    def words(self, container: Mapping[str, Any], args: list[str]) -> list[str]:
        """Of bwrap, behind those for the image."""
        options = []
        for variable in container.get("env", ()):
            options += ["--setenv", variable["name"], variable["value"]]
        for mount in container["volumeMounts"]:
            kind = "--ro-bind" if mount.get("readOnly") else "--bind"
            options += [kind, str(self.volumes[mount["name"]]), mount["mountPath"]]
        return [*options, *container["command"], *args]


@pytest.fixture
def pod(bwrap: Engine, tmp_path: Path) -> Pod:
    """After its init container, in an image with overlap-run."""
    made = Pod(tmp_path)
    done = subprocess.run(
        ["bwrap", "--unshare-pid", *of_host(), *made.words(made.init, made.init["args"])],
        env=dict(bwrap.environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return made


@pytest.fixture
def root(image: Path, tmp_path: Path, report: Path) -> list[str]:
    """The words for an image that knows nothing of us."""
    folder = copied(image, tmp_path / "image")
    (folder / "overlap").mkdir()
    return ["--ro-bind", str(folder), "/", "--proc", "/proc", "--dev", "/dev", "--bind", str(report), "/report"]


def test_the_program_of_a_pod_is_counted(bwrap: Engine, pod: Pod, root: list[str], report: Path) -> None:
    env = {**bwrap.environment, "OVERLAP_REPORT": "/report"}
    started = Started([*root, *pod.words(pod.main, ["client", *WORDS.split()])], env)
    status, _, err = started.end()
    assert (status, err) == (0, "")
    assert launches(report) == [3]


def test_what_the_image_of_a_pod_preloads_stays(bwrap: Engine, pod: Pod, root: list[str], tmp_path: Path) -> None:
    subprocess.run(
        ["cc", "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o", str(tmp_path / "image/other.so")], check=True
    )
    words = [*root, *pod.words(pod.main, ["env"])]
    for own, wanted in {"/other.so": "/overlap/liboverlap.so:/other.so", "": "/overlap/liboverlap.so"}.items():
        image = ["--setenv", "LD_PRELOAD", own] if own else ["--unsetenv", "LD_PRELOAD"]
        status, out, err = Started([*image, *words], bwrap.environment).end()
        assert (status, err) == (0, "")
        assert f"LD_PRELOAD={wanted}" in out.splitlines()


def test_the_program_of_a_pod_gets_sigterm_once(bwrap: Engine, pod: Pod, root: list[str]) -> None:
    assert_one_signal(Started([*root, *pod.words(pod.main, ["sh", "-c", COUNT])], bwrap.environment))


def test_a_pod_whose_policy_is_unknown_does_not_start(bwrap: Engine, tmp_path: Path) -> None:
    made = Pod(tmp_path)
    made.init["env"][0]["value"] = "none"
    words = ["bwrap", *of_host(), *made.words(made.init, made.init["args"])]
    done = subprocess.run(words, env=dict(bwrap.environment), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode != 0
    assert "there is no policy" in done.stderr
