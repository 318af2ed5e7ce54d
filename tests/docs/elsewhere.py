"""Commands of the pages that are not run here, and why. Their options are still held against what our commands take."""

from __future__ import annotations

import re
import shlex

# By the program: the first word of a command, or what overlap-run starts.
_CLUSTER = "needs Slurm; tests/slurm starts a cluster and runs such"
_LAUNCHER = "a launcher; tests/launchers runs it where it is installed"
_CONTAINER = "a container engine; tests/containers runs those that are there"
_GPU = "needs a GPU, and a tool that is not ours"
_NETWORK = "fetches packages, or unpacks them"
PROGRAMS = {
    **dict.fromkeys(("srun", "sbatch", "salloc", "scontrol", "sinfo"), _CLUSTER),
    **dict.fromkeys(("torchrun", "mpirun", "mpiexec", "deepspeed", "accelerate"), _LAUNCHER),
    **dict.fromkeys(("docker", "podman", "apptainer", "ch-run", "bwrap"), _CONTAINER),
    **dict.fromkeys(("nvcc", "ncu", "nsys", "rocprofv3", "compute-sanitizer", "vllm"), _GPU),
    **dict.fromkeys(("pip", "apt-get", "dpkg-deb", "for"), _NETWORK),
    "module": "needs a module system; tests/modulefiles has two",
    "make": "builds, or runs all tests; that there is such a target is looked at",
}
# By a word in the command.
WORDS = (
    ("...", "something is left out"),
    ("IMAGE", "stands for an image"),
    ("/opt/overlap", "a site's folder; tests/slurm/test_install.py makes one"),
    ("$HOME/overlap", "a site's folder; tests/slurm/test_install.py makes one"),
    ("overlap tune --limit 30m -- ./stencil", "takes half an hour where there is noise; tests/tune"),
    ("overlap tune --arm mine=./mine.yaml -- python train.py", "needs a GPU; tests/tune has simulated ones"),
    ("tools/gpu/run", "needs a GPU; tests/gpu runs it on sets that are made up"),
    ("-m gpu tests/gpu", "needs a GPU"),
    ("OVERLAP_REPORT=$PWD/report", "needs Slurm; tests/slurm starts a cluster and runs such"),
)
# By page and beginning of the command.
HERE = (
    ("docs/how-to/deploy.md", "overlap report report", "of a cluster; tests/slurm/test_partial.py makes one"),
    ("docs/how-to/who-gains.md", "mkdir -p /var/spool/overlap", "of a node; tests/slurm/test_jobs.py makes one"),
    ("docs/how-to/who-gains.md", "overlap report /srv/overlap", "of a cluster; tests/slurm/test_jobs.py makes one"),
    ("docs/how-to/hpc.md", "overlap explain run1.sqlite", "a trace of nsys, which needs a GPU"),
    ("docs/how-to/hpc.md", "overlap report halo", "of an MPI program; tests/launchers/test_mpi_stencil.py runs one"),
)


def reason(file: str, command: str) -> str | None:
    """Why this one is not run; None: it is."""
    for page, begin, why in HERE:
        if page == file and command.startswith(begin):
            return why
    for word, why in WORDS:
        if word in command:
            return why
    for part in simple(command):
        for words in (part[:1], behind(part)):
            if words and words[0].rpartition("/")[2] in PROGRAMS:
                return PROGRAMS[words[0].rpartition("/")[2]]
    return None


def simple(command: str) -> list[list[str]]:
    """The words of each simple command in it, without the variables in front; also of those inside of $(...)."""
    reader = shlex.shlex(command, posix=True, punctuation_chars=";()|&<>")
    reader.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in reader:
        if set(word) <= set(";()|&"):
            found.append([])
            continue
        inner = re.search(r"\$\((.*)\)", word)
        if inner:
            found[:0] = simple(inner[1])
        found[-1].append(word)
    parts = []
    for words in found:
        while words and re.match(r"^[A-Za-z_]\w*=", words[0]):
            words = words[1:]
        if words:
            parts.append(words)
    return parts


def behind(words: list[str]) -> list[str]:
    """The program that overlap-run or `overlap tune` starts in a simple command, and all behind it; or []."""
    if words[:2] == ["overlap", "tune"]:
        return words[words.index("--") + 1 :] if "--" in words else []
    at = next((at for at, word in enumerate(words) if word.rpartition("/")[2] == "overlap-run"), None)
    if at is None:
        return []
    rest = words[at + 1 :]
    while rest and rest[0].startswith("-"):
        value = rest[0] in ("--policy", "--simulate", "--report")
        rest = rest[2 if value else 1 :]
    return rest
