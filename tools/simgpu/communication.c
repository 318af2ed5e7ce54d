/* Which kernels are communication, by the names that libraries give them. For the timeline's flag only. */
#include <string.h>

#include "sim.h"

/* A pattern is found anywhere in the name, mangled or not. */
static const char *const parts[] = {
    "oneRankReduce",
    "mscclKernel",
    "mscclpp",
    "nvshmem",
    "deep_ep",
    "cross_device_reduce",
    "all_reduce_kernel",
    "multimem_all_gather_kernel",
    "multimem_one_shot_reduce_kernel",
    "symmetric_memory",
    "nccl_extension",
    "allreduce_prototype",
    "allreduce_fusion_kernel",
    "oneShotAllReduceKernel",
    "twoShotAllReduceKernel",
    "oneshotAllreduceFusionKernel",
    "twoshotAllreduceKernel",
    "moeA2A",
    "moeAllToAllKernel",
    "helixAllToAllKernel",
    "allreduce_allgather_kernel",
    "reducescatter_allreduce_kernel",
    "userbuffers",
    "UCC_REDUCE",
    "ibgda_",
    "ddaAllReduce",
    "ddaReduceScatter",
    "ddaAllToAll",
    "ddaAllGather",
    "_on_stream_kernel",
};

/* nccl(Dev|Sym|Symk)?(Dev)?Kernel */
static bool is_nccl(const char *name) {
    for (const char *at = name; (at = strstr(at, "nccl")) != NULL; at += 4) {
        const char *rest = at + 4;
        if (strncmp(rest, "Symk", 4) == 0)
            rest += 4;
        else if (strncmp(rest, "Sym", 3) == 0)
            rest += 3;
        if (strncmp(rest, "Dev", 3) == 0)
            rest += 3;
        if (strncmp(rest, "Kernel", 6) == 0)
            return true;
    }
    return false;
}

bool sim_is_communication(const char *kernel) {
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(kernel, parts[i]) != NULL)
            return true;
    return is_nccl(kernel);
}
