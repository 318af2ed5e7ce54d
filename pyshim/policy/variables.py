"""The variables that a policy sets for the program: which names and values it may say, and where.

What ranks must agree on: an algorithm, a protocol, a number of threads, channels or blocks, a size of buffers that
differs in one rank makes the job hang, because each rank works out for itself what the others will do. A policy sets
no such variable, because it may be for some of the ranks only. NCCL_CGA_CLUSTER_SIZE is not among them: it only groups
the blocks of a launch of this rank.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from pyshim.policy.finding import quote
from pyshim.policy.values import Bad

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST = 1000
# What YAML 1.1 reads as neither text nor number.
_BOOLEANS = ("true", "false", "yes", "no", "on", "off")

# Repeated by those who read a site's folder without Python (tests/slurm/test_readers.py names and compares them).
MUST_AGREE = (
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_*NTHREADS",
    "NCCL_*CTAS",
    "NCCL_CTA_POLICY",
    "NCCL_*NCHANNELS*",
    "NCCL_*NRINGS",
    "NCCL_*BUFFSIZE",
    "NCCL_*CHUNKSIZE",
    "NCCL_NVLS_ENABLE",
    "NCCL_COLLNET_ENABLE",
    "RCCL_UNROLL_FACTOR",
    "RCCL_THREADS_PER_BLOCK",
    "RCCL_WARP_SPEED_*",
    "RCCL_MSCCL*",
)
# Ours, the loader's, the shell's and the interpreter's, and what launchers say to ranks.
NEVER = (
    "OVERLAP_*",
    "LD_*",
    "SIMGPU*",
    "TRITON_LIBCUDA_PATH",
    "GLIBC_TUNABLES",
    "PATH",
    "HOME",
    "SHELL",
    "IFS",
    "ENV",
    "BASH_ENV",
    "PYTHON*",
    "SLURM_*",
    "PMI*",
    "OMPI_*",
    "*VISIBLE_DEVICES",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
)


def name(text: str) -> str:
    if not NAME.fullmatch(text):
        hint = "use letters, digits and _, and begin with no digit"
        raise Bad("variable", f"{quote(text)} is not the name of a variable", hint)
    if _any(text, NEVER):
        raise Bad("variable", f"a policy does not set {quote(text)}", "set it where the program is started")
    if _any(text, MUST_AGREE):
        sentence = f"all ranks must agree on {quote(text)}, or the job hangs, and a policy may be for some of them only"
        raise Bad("must-agree", sentence, "set it where the job is started, for all ranks")
    return text


def value(text: str) -> str:
    if len(text) > LONGEST:
        sentence = f"{quote(text)} is longer than {LONGEST:,} characters"
        raise Bad("variable", sentence, "set it where the program is started")
    if not all(" " <= character <= "~" for character in text):
        raise Bad("variable", f"{quote(text)} holds a character that not every launcher passes on", "use ASCII")
    return text


def is_boolean(text: str) -> bool:
    return text.casefold() in _BOOLEANS


def _any(text: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, glob) for glob in globs)
