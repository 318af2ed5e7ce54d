"""Settings that people search by hand, by name: `--set nccl`. docs/how-to/tune.md lists them with their sources.

Each value gained somewhere, measured here or published. Never in a set: NCCL_P2P_USE_CUDA_MEMCPY and
NCCL_SHM_USE_CUDA_MEMCPY, with which programs hang or end; NCCL_P2P_LEVEL, with which GPUs behind an IOMMU may hang;
NCCL_ALGO and NCCL_PROTO, which choose how NCCL computes.
"""

from __future__ import annotations

from typing import NamedTuple

_NCCL = "https://github.com/NVIDIA/nccl/issues"
HERE = ""  # a source: measured by this project


class Setting(NamedTuple):
    variable: str
    values: tuple[str, ...]  # those that gained most first
    gained: str  # where, and how much
    source: str  # an address, or HERE


# A variable that a set has twice is one variable with all these values.
SETS: dict[str, tuple[Setting, ...]] = {
    "nccl": (
        Setting(
            "NCCL_MIN_CTAS",
            ("16", "8", "32"),
            "two H200 without peer access: FSDP2 -11.5 % (16), DDP -6 % (8, 16), tensor parallel -4 % (16, 32)",
            HERE,
        ),
        Setting(
            "NCCL_BUFFSIZE",
            ("1048576",),
            "with NCCL_MIN_CTAS=16 on two H200 without peer access: FSDP2 -22 % (measured here); reported to mend the"
            " bandwidth of all_reduce_perf, 8 RTX 4090 over PCIe",
            f"{_NCCL}/1530",
        ),
    ),
    "nccl-network": (
        Setting(
            "NCCL_NCHANNELS_PER_NET_PEER",
            ("4",),
            "sendrecv_perf of 32 GH200 over Slingshot: 24.2 instead of 18.3 GB/s",
            f"{_NCCL}/1272",
        ),
        Setting(
            "NCCL_NET_GDR_LEVEL",
            ("SYS",),
            "all_reduce of two GH200, four ports each: 96.1 instead of 79.7 GB/s",
            f"{_NCCL}/1579",
        ),
        Setting(
            "NCCL_IB_QPS_PER_CONNECTION",
            ("2", "4"),
            "reported to raise the bandwidth of bonded RoCE ports",
            f"{_NCCL}/1015",
        ),
        Setting("NCCL_CROSS_NIC", ("1",), "ring all_reduce between nodes: more bandwidth than with 0", f"{_NCCL}/1411"),
        Setting(
            "NCCL_NET_GDR_READ", ("0",), "reported faster than 1 between nodes whose GPUs are on PCIe", f"{_NCCL}/1295"
        ),
    ),
    "pytorch": (
        Setting(
            "CUDA_DEVICE_MAX_CONNECTIONS",
            ("1",),
            "two H200: tensor parallel -1 %, without peer access -6 % (and FSDP2 +5 %)",
            HERE,
        ),
        Setting(
            "CUDA_DEVICE_MAX_CONNECTIONS",
            ("32",),
            "NVIDIA's NeMo sets it for tensor parallel on Blackwell",
            "https://github.com/NVIDIA/NeMo-Framework-Launcher/pull/451",
        ),
    ),
    "mpi": (
        Setting(
            "UCX_RNDV_THRESH",
            ("8192",),
            "16 to 128 KiB between GPUs of a node: 13 to 18 instead of 45 to 349 us",
            "https://github.com/openucx/ucx/pull/5132",
        ),
        Setting(
            "UCX_RNDV_THRESH",
            ("66000",),
            "osu_mbw_mr between two nodes: 10.4 instead of 8.9 GB/s",
            "https://github.com/openucx/ucx/issues/1832",
        ),
    ),
}
