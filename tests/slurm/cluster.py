"""A real Slurm cluster on this machine: munged, slurmctld and a few slurmd, started in about a second.

Every node is a slurmd of its own, with a host name of its own where this user may give one. Everything is kept in one
folder with a short name (sockets) and is stopped by pid; the daemons end with the test run even where that is killed.
Several clusters run side by side.
"""

from __future__ import annotations

import getpass
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import debian

PACKAGES = ("slurm-wlm", "munge")
COMMANDS = ("munged", "mungekey", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "sinfo", "unshare", "setpriv")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_PATIENCE = 120.0  # seconds; a machine may be busy
_ATTEMPTS = 3  # another program may have taken a port that was free a moment ago

_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool-%n
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
# Or mpi/pmix of two slurmd on one machine collide.
TmpFS={folder}/tmp-%n
PlugStackConfig={folder}/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
# Which het jobs need.
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=0
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
# Each node has a file of its own, which differs.
DebugFlags=NO_CONF_HASH
# Nodes may have more processors than this machine.
SlurmdParameters=config_overrides
"""


@dataclass(frozen=True)
class Batch:
    """A batch job that has ended."""

    number: int
    state: str  # as scontrol says: COMPLETED, FAILED, ...
    status: int
    output: str  # stdout and stderr of the script


class Cluster:
    """prologs: TaskProlog by node, None where its slurm.conf names none; the file may be exchanged by `prolog()`.
    plugstack: lines of plugstack.conf, which every command and step reads anew. partitions: nodes by name, the first
    one is the default."""

    def __init__(
        self,
        environment: Mapping[str, str],
        nodes: int = 2,
        prologs: Mapping[str, Path | None] | Path | None = None,
        plugstack: str = "",
        partitions: Mapping[str, Sequence[str]] | None = None,
        more: str = "",
    ) -> None:
        self.nodes = tuple(f"n{index}" for index in range(nodes))
        self.prologs = dict(prologs) if isinstance(prologs, Mapping) else dict.fromkeys(self.nodes, prologs)
        self.partitions = partitions or {"all": self.nodes}
        self.more = more  # lines of slurm.conf
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp" if os.access("/tmp", os.W_OK) else None))
        self.conf = self.folder / "slurm.conf"
        self.plugstack = self.folder / "plugstack.conf"
        self.own_hostnames = _may_name_hosts()
        self.environment = {**environment, "SLURM_CONF": str(self.conf)}
        self.environment.pop("TMPDIR", None)  # a container does not have it, nor may another user see it
        self.environment["PATH"] = f"{environment.get('PATH', '')}:{_PATH}".lstrip(":")
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.plugstack.write_text(plugstack)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def srun(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """srun with these words; `env` is added to the clean environment of the tests."""
        return self.run("srun", *words, **more)

    def run(
        self, *command: str, env: Mapping[str, str] | None = None, timeout: float = 300, **more: object
    ) -> subprocess.CompletedProcess[str]:
        """A command of the cluster's user, who sits on none of its nodes."""
        return subprocess.run(  # type: ignore[call-overload]
            command,
            env={**self.environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            **{"cwd": self.folder, **more},
        )

    def sbatch(self, script: str, *options: str, env: Mapping[str, str] | None = None, timeout: float = 300) -> Batch:
        """Submits a script (a #! line is put before it where it has none) and waits until the job has ended."""
        text = script if script.startswith("#!") else f"#!/bin/sh\n{script}"
        handle, name = tempfile.mkstemp(prefix="batch-", dir=self.folder)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        output = Path(f"{name}.out")
        done = self.run("sbatch", "--parsable", f"--output={output}", *options, name, env=env)
        if done.returncode:
            raise RuntimeError(f"sbatch: {done.stderr.strip()}")
        number = int(done.stdout.split(";")[0])
        state, status = self._ended(number, timeout)
        return Batch(number, state, status, output.read_text() if output.exists() else "")

    def prolog(self, node: str, path: Path | None) -> None:
        """From now on the TaskProlog of this node, which must have been started with one; None: one that does
        nothing."""
        link = self.folder / f"prolog-{node}"
        scratch = link.with_suffix(".new")
        scratch.unlink(missing_ok=True)
        scratch.symlink_to("/bin/true" if path is None else path)
        scratch.replace(link)

    def log(self) -> str:
        """What the daemons had to say."""
        files = [*self.folder.glob("*.log"), *self.folder.glob("*.said")]
        return "\n".join(f"== {file.name}\n{file.read_text(errors='replace')[-4000:]}" for file in sorted(files))

    def stop(self) -> None:
        with suppress(OSError, subprocess.TimeoutExpired):
            queue = self.run("squeue", "-h", "-o", "%A", timeout=10).stdout.split()
            if queue:
                self.run("scancel", "--signal=KILL", "--full", *queue, timeout=10)
                self.run("scancel", *queue, timeout=10)
                wait(lambda: not self.run("squeue", "-h", timeout=10).stdout, 5)
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in self._daemons:
            try:
                daemon.wait(5)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._daemons.clear()
        for pid in processes_of(self.folder):  # slurmstepd that linger, and what they have started
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        for name in ("munge", "state", *(f"{kind}-{node}" for kind in ("spool", "tmp") for node in self.nodes)):
            (self.folder / name).mkdir(mode=0o755)
        self.folder.chmod(0o755)  # jobs may be another user's
        for node in self.nodes:
            if self.prologs.get(node) is not None:
                self.prolog(node, self.prologs[node])
        self._munge()
        for attempt in range(1, _ATTEMPTS + 1):
            before = len(self._daemons)
            self._configure()
            self._daemon("slurmctld", "slurmctld", "-D", "-c", "-i", "-f", str(self.conf))
            for node in self.nodes:
                self._node(node)
            if wait(lambda: self._all_idle() or self._died(), _PATIENCE) and not self._died():
                return
            if attempt == _ATTEMPTS:
                raise RuntimeError(f"the Slurm cluster did not start\n{self.log()}")
            for daemon in self._daemons[before:]:
                daemon.kill()
                daemon.wait()
            del self._daemons[before:]

    def _munge(self) -> None:
        folder = self.folder / "munge"
        key, made = folder / "key", folder / "socket"
        subprocess.run([_found("mungekey"), "-c", "-k", str(key)], check=True)
        files = [f"--{name}-file={folder / name}" for name in ("pid", "log", "seed")]
        self._daemon("munged", "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={made}", *files)
        if not wait(made.is_socket, _PATIENCE):
            raise RuntimeError(f"munged did not start\n{self.log()}")

    def _configure(self) -> None:
        ports = _free_ports(len(self.nodes) + 1)
        host = socket.gethostname().split(".")[0]
        text = _CONF.format(folder=self.folder, host=host, port=ports[0], user=getpass.getuser()) + self.more
        for node, port in zip(self.nodes, ports[1:]):
            hostname = node if self.own_hostnames else host
            text += f"NodeName={node} NodeHostname={hostname} NodeAddr=127.0.0.1 Port={port} CPUs=32\n"
        for name, nodes in self.partitions.items():
            default = "YES" if name == next(iter(self.partitions)) else "NO"
            text += f"PartitionName={name} Nodes={','.join(nodes)} Default={default} State=UP MaxTime=10\n"
        # What slurmd detects by itself may be fatal in a container; this one is inert.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        self.conf.write_text(text)
        for node in self.nodes:
            folder = self.folder / f"conf-{node}"
            folder.mkdir(exist_ok=True)
            own = f"TaskProlog={self.folder}/prolog-{node}\n" if self.prologs.get(node) is not None else ""
            (folder / "slurm.conf").write_text(text + own)
            shutil.copy(self.folder / "cgroup.conf", folder)

    def _node(self, node: str) -> None:
        command = [_found("slurmd"), "-D", "-c", "-f", str(self.folder / f"conf-{node}" / "slurm.conf"), "-N", node]
        if self.own_hostnames:
            command = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', node, *command]
        self._daemon(node, *command)

    def _daemon(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.said").open("ab") as said:
            self._daemons.append(
                subprocess.Popen(
                    ["setpriv", "--pdeathsig", "TERM", _found(command[0]), *command[1:]],
                    env={"PATH": _PATH, "SLURM_CONF": str(self.conf)},
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    cwd=self.folder,
                )
            )

    def _died(self) -> bool:
        return any(daemon.poll() is not None for daemon in self._daemons)

    def _all_idle(self) -> bool:
        # Not %n: that groups by host name.
        lines = self.run("sinfo", "-hN", "-o", "%N %t").stdout.split("\n")
        return set(filter(None, lines)) == {f"{node} idle" for node in self.nodes}

    def _ended(self, number: int, timeout: float) -> tuple[str, int]:
        found: dict[str, str] = {}

        def over() -> bool:
            said = self.run("scontrol", "--oneliner", "show", "job", str(number)).stdout
            found.update(re.findall(r"\b(JobState|ExitCode)=(\S+)", said))
            return found.get("JobState") not in (None, "PENDING", "CONFIGURING", "RUNNING", "COMPLETING")

        if not wait(over, timeout, 0.05):
            raise TimeoutError(f"job {number} is still {found.get('JobState')}\n{self.log()}")
        return found["JobState"], int(found["ExitCode"].split(":")[0])


def start(environment: Mapping[str, str], **parameters: object) -> Cluster:
    """Raises debian.Missing where there is no Slurm and none can be installed."""
    debian.install(PACKAGES, COMMANDS)
    return Cluster(environment, **parameters)  # type: ignore[arg-type]


def _found(command: str) -> str:
    return shutil.which(command, path=f"{os.environ.get('PATH', '')}:{_PATH}") or command


def _may_name_hosts() -> bool:
    """A container may forbid it."""
    tried = subprocess.run(["unshare", "--uts", "hostname", "n0"], capture_output=True, check=False)
    return tried.returncode == 0


def _free_ports(number: int) -> list[int]:
    """Below those that the system gives to clients."""
    found: list[int] = []
    while len(found) < number:
        port = random.randrange(10000, 32000)
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("0.0.0.0", port))
            if port not in found:
                found.append(port)
    return found


def wait(condition: Callable[[], bool], seconds: float, pause: float = 0.02) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True


def processes_of(folder: Path) -> list[int]:
    """Those whose SLURM_CONF is in this folder, but for ourselves: daemons, steps and what they have started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"\0SLURM_CONF={folder}/".encode() in b"\0" + (process / "environ").read_bytes():
                found.append(int(process.name))
    return [pid for pid in found if pid != os.getpid()]
