"""The options of other people's commands, read only as far as they are known.

A program's arguments must never be taken for its launcher's options. So a reading ends with nothing at the first option
that is not in the list, and the lists are compared with what the commands themselves say of them (tests/launchers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

_ATTACHED = -1  # a value only if it is written in the same word

# NAME takes no value, NAME: one, NAME:: two, NAME? one that is written in the same word.
_SLURM = """A: account: b: begin: bb: bbf: B: extra-node-info: c: cpus-per-task: comment: container: cpu-freq: C:
 constraint: cluster-constraint: contiguous cores-per-socket: cpus-per-gpu: d: dependency: deadline: delay-boot: D:
 chdir: exclusive? gres: gres-flags: G: gpus: gpu-bind: gpu-freq: gpus-per-node: gpus-per-socket: gpus-per-task: h help
 H hold J: job-name: L: licenses: m: distribution: mail-type: mail-user: mcs-label: mem: mem-per-cpu: mem-per-gpu:
 mincpus: M: clusters: n: ntasks: nice? N: nodes: ntasks-per-core: ntasks-per-node: ntasks-per-socket: O overcommit p:
 partition: power: priority: profile: q: qos: Q quiet reboot reservation: s oversubscribe S: core-spec: signal:
 sockets-per-node: spread-job switches: t: time: thread-spec: threads-per-core: time-min: tmp: usage use-min-nodes v
 verbose V version w: nodelist: wckey: x: exclude: k no-kill"""
SRUN = f"""{_SLURM} acctg-freq: bcast? bcast-exclude: compress? e: error: E preserve-env epilog: exact export:
 het-group: i: input: I? immediate? jobid: K? kill-on-bad-exit? l label mpi: multi-prog o: output: overlap prolog:
 propagate? pty quit-on-interrupt r: relative: resv-ports? send-libs? slurmd-debug: T: threads: task-epilog:
 task-prolog: u unbuffered W: wait: X disable-status Z no-allocate"""
SBATCH = f"""{_SLURM} a: array: e: error: export: export-file: F: nodefile: get-user-env? gid: i: input: ignore-pbs
 no-requeue o: output: parsable propagate? requeue uid: W wait wrap:"""
SALLOC = f"{_SLURM} bell F: nodefile: get-user-env? gid: I? immediate? K? kill-command? no-bell uid:"

# Open MPI's, then those of Hydra (MPICH, Intel MPI). Both write long names with one dash, too.
MPIRUN = """allow-run-as-root am: app: bind-to: bind-to-core bind-to-socket bycore bynode byslot c: np: n: N: cf:
 cartofile: cpu-list: cpu-set: cpus-per-proc: cpus-per-rank: d debug-devel debug debug-daemons debug-daemons-file
 debugger: default-hostfile: disable-recovery display-allocation display-devel-allocation display-devel-map
 display-diffable-map display-map display-topo do-not-launch do-not-resolve enable-instant-on-support enable-recovery
 fwd-mpirun-port get-stack-traces gmca:: H: host: hostfile: index-argv-by-rank launch-agent: leave-session-attached
 machinefile: map-by: max-restarts: max-vm-size: mca:: merge-stderr-to-stdout nolocal nooversubscribe noprefix novm
 npernode: npersocket: ompi-server: output-filename: output-proctable oversubscribe path: pernode personality: ppr:
 prefix: preload-files: q quiet rank-by: report-bindings report-child-jobs-separately report-events: report-pid:
 report-state-on-timeout report-uri: rf: rankfile: s preload-binary set-cwd-to-session-dir show-progress stdin:
 tag-output timeout: timestamp-output tune: use-hwthread-cpus use-regexp v verbose wd: wdir: x: xml xml-file: xterm:
 env:: envall envlist: envnone f: genv:: genvall genvlist: genvnone hosts: iface: l launcher: launcher-exec: ppn:
 prepend-rank rmk:"""

ENV = "i ignore-environment u: unset: C: chdir: v debug"
NICE = "n: adjustment:"
TIMEOUT = "k: kill-after: s: signal: foreground preserve-status v verbose"
STDBUF = "i: input: o: output: e: error:"
SETSID = "c ctty f fork w wait"
SUDO = """A askpass b background B bell C: close-from: D: chdir: E preserve-env? g: group: H set-home h: host: i
 login k reset-timestamp n non-interactive P preserve-groups p: prompt: R: chroot: S stdin s shell T:
 command-timeout: u: user:"""
DOAS = "C: n s u:"
SU = """c: command: session-command: f fast g: group: G: supp-group: l login m p preserve-environment P pty s: shell:
 u: user: w: whitelist-environment:"""

DEEPSPEED = """H: hostfile: i: include: e: exclude: num_nodes: min_elastic_nodes: max_elastic_nodes: num_gpus:
 num_accelerators: master_port: master_addr: launcher: launcher_args: module no_python no_local_rank no_ssh_check no_ssh
 node_rank: force_multi save_pid enable_each_rank_log: autotuning: elastic_training bind_cores_to_rank bind_core_list:
 ssh_port: venv_script:"""


class Words(NamedTuple):
    options: tuple[tuple[str, str], ...]  # name without dashes; two values of one option are joined by =
    rest: int  # where the first word stands that belongs to no option

    def values(self, *names: str) -> list[str]:
        return [value for name, value in self.options if name in names]


def read(words: Sequence[str], known: str, single_dash: bool = False) -> Words | None:
    """Read options between words[0] and the program; None where they are not certain. single_dash: -name is --name."""
    takes = values_of(known)
    options: list[tuple[str, str]] = []
    index = 1
    while index < len(words):
        word = words[index]
        if word == "--":
            return Words(tuple(options), index + 1)
        if not word.startswith("-") or word == "-":
            break
        long = word.startswith("--") or single_dash
        used = _long(words, index, takes, options) if long else _short(words, index, takes, options)
        if not used:
            return None
        index += used
    return Words(tuple(options), index)


def _long(words: Sequence[str], index: int, takes: Mapping[str, int], options: list[tuple[str, str]]) -> int:
    """How many words the option takes, itself included; 0: not known."""
    name, equals, value = words[index].lstrip("-").partition("=")
    if name not in takes and words[index].startswith("--"):
        # getopt takes the beginning of a name, where there is one name only that begins so
        begun = [long for long in takes if len(long) > 1 and long.startswith(name)]
        name = begun[0] if len(begun) == 1 else name
    number = takes.get(name)
    if number is None or (equals and number not in (1, _ATTACHED)):
        return 0
    if equals or number <= 0:
        options.append((name, value))
        return 1
    values = words[index + 1 : index + 1 + number]
    options.append((name, "=".join(values)))
    return 1 + number if len(values) == number else 0


def _short(words: Sequence[str], index: int, takes: Mapping[str, int], options: list[tuple[str, str]]) -> int:
    """Likewise of a word of one-letter options, the last of which may have its value behind it."""
    rest = words[index][1:]
    while rest:
        name, rest = rest[0], rest[1:]
        number = takes.get(name)
        if number is None:
            return 0
        if number:
            if number == 1 and not rest:
                options.append((name, words[index + 1] if index + 1 < len(words) else ""))
                return 2 if index + 1 < len(words) else 0
            options.append((name, rest))
            return 1
        options.append((name, ""))
    return 1


def values_of(known: str) -> dict[str, int]:
    """Return the number of values of each option in a list; -1: a value only in the same word."""
    found = {}
    for word in known.split():
        name = word.rstrip(":?")
        found[name] = _ATTACHED if word.endswith("?") else len(word) - len(name)
    return found
