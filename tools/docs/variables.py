"""What the commands read and set in the environment besides what the library reads (shim/sys/env.def)."""

from __future__ import annotations

# Read by overlap-run and overlap. A test compares with what the sources say.
READ = {
    "OVERLAP_POLICY": "the default of `--policy`, or `off`; the TaskProlog and the modulefiles go by it, too",
    "OVERLAP_POLICY_PATH": "folders with policies, with colons, looked through before the shipped ones",
    "OVERLAP_PROGRESS": "`off`: `overlap` says nothing of what takes long, as with `--quiet`",
    "NO_COLOR": "set and not empty: no colours",
    "FORCE_COLOR": "set and not empty: colours also into a file or a pipe",
    "COLUMNS": "the width of what is printed (60 to 100)",
}
# Set by others of ours, and by whom.
SET = {
    "OVERLAP_HOME": "by the modulefile: the folder that `make site` made",
    "OVERLAP_BUILD": "read when the package is built: `off` builds no library",
}
# Of other programs; read, never set.
OTHERS = {
    "LD_PRELOAD": "kept; the library comes first, but behind sanitizer runtimes, and once",
    "LD_LIBRARY_PATH": "where drivers are looked for; with `--simulate`, the simulated driver comes first",
    "NCCL_CONF_FILE": "a file whose variables count as the user's, as do `~/.nccl.conf` and `/etc/nccl.conf`",
    "CUDA_GRAPHS_USE_NODE_PRIORITY": "NVIDIA's: 0 keeps communication in graphs from being raised",
    "OMPI_MCA_mca_base_env_list": "Open MPI's: with `mpirun` ours are added to it, so that they reach other hosts",
}
