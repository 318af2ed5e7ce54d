"""Settings that people search by hand, by name: `--set nccl`. docs/how-to/tune.md lists them with their sources.

Never in a set: NCCL_P2P_USE_CUDA_MEMCPY, with which programs hang, and NCCL_ALGO and NCCL_PROTO, which choose how NCCL
computes.
"""

from __future__ import annotations

from typing import NamedTuple

_CONNECTIONS = "https://docs.nvidia.com/deploy/topics/topic_5_2_4.html"
_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
_UCX = "https://github.com/openucx/ucx/blob/master/src/ucp/core/ucp_context.c"


class Setting(NamedTuple):
    variable: str
    values: tuple[str, ...]
    what: str
    source: str


_QUEUES = Setting(
    "CUDA_DEVICE_MAX_CONNECTIONS", ("1", "32"), "hardware queues; with 1, launches start in program order", _CONNECTIONS
)
SETS: dict[str, tuple[Setting, ...]] = {
    "nccl": (
        Setting(
            "NCCL_MAX_CTAS", ("4", "8", "16"), "the most blocks of a communication kernel", f"{_NCCL}#nccl-max-ctas"
        ),
        Setting(
            "NCCL_CGA_CLUSTER_SIZE",
            ("0", "1", "2"),
            "blocks that must start together, on Hopper and newer",
            f"{_NCCL}#nccl-cga-cluster-size",
        ),
    ),
    "pytorch": (
        Setting(
            "TORCH_NCCL_HIGH_PRIORITY",
            ("1",),
            "streams of communication have the greatest priority",
            "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html",
        ),
        _QUEUES,
    ),
    "mpi": (
        Setting("UCX_RNDV_THRESH", ("8192", "65536"), "bytes from which a message waits for its receiver", _UCX),
        Setting("UCX_RNDV_FRAG_MEM_TYPE", ("cuda",), "memory through which large messages are sent in pieces", _UCX),
        _QUEUES,
    ),
}
