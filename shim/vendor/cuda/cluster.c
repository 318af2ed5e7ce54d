/* Cluster launches: shaped only if enough clusters still fit on the whole device. */
#include "../common/handle.h"
#include "../common/launch.h"
#include "cuda.h"

uint64_t cluster_of(const CUlaunchConfig *config) {
    uint64_t required = 0, preferred = 0;
    for (uint32_t i = 0; config->attrs && i < config->numAttrs; i++) {
        const CUlaunchAttributeValue *value = &config->attrs[i].value;
        const uint64_t packed =
            (value->cluster.x & 255) | (value->cluster.y & 255) << 8 | (value->cluster.z & 255) << 16;
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            required = packed;
        else if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
            preferred = packed;
    }
    return preferred << 24 | required;
}

/* How many clusters of this launch fit on the whole device with so many dynamic bytes; -1: the driver does not say. */
static int clusters_with(const struct request *request, uint32_t dynamic) {
    type_cuOccupancyMaxActiveClusters *ask = real_own(HOOK_cuOccupancyMaxActiveClusters);
    CUlaunchConfig config = request->config;
    int clusters = -1, mode = cuda_relax();
    config.sharedMemBytes = dynamic;
    if (!ask || ask(&clusters, request->function, &config) != CUDA_SUCCESS)
        clusters = -1;
    cuda_restore(mode);
    return clusters;
}

bool cuda_cluster_fits(const struct request *request, struct handle *handle, const struct overlap_rule *rule,
                       uint32_t dynamic) {
    const uint64_t cluster = cluster_of(&request->config);
    uint64_t before = 0;
    /* Cached decisions do not hold the cluster size. So the size of the first launch is checked, and launches with
     * another size are left alone. */
(void)before;(void)cluster;(void)handle;    const int native = clusters_with(request, request->config.sharedMemBytes);
    int limit_raised = limit_raise(handle, dynamic) ? clusters_with(request, dynamic) : -1;
    return native > 0 && limit_raised > 0 && 100 * (int64_t)limit_raised >= (int64_t)rule->keep_at_least * native;
}

bool cuda_cluster_is_other(const struct request *request) {
    const struct handle *handle = handle_find(request->function);
    return !handle || 0 != cluster_of(&request->config) + 1;
}
