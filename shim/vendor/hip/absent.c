/* Operations of common/vendor_ops.def for what HIP does not have. */
#include "../common/handle.h"
#include "../common/launch.h"
#include "hip.h"

bool hip_prepare(struct handle *handle, uint32_t dynamic) {
    (void)handle, (void)dynamic;
    return true;
}

uint32_t hip_over_app_limit(struct handle *handle, int device, uint32_t dynamic) {
    (void)handle, (void)device, (void)dynamic;
    return 0;
}

void hip_prefer_shared(struct handle *handle, int device) {
    (void)handle, (void)device;
}

bool hip_prefers_cache(struct handle *handle, int device) {
    (void)handle, (void)device;
    return false;
}

/* AMD's launches have no clusters. */
bool hip_cluster_is_other(const struct request *request) {
    (void)request;
    return false;
}

bool hip_cluster_fits(const struct request *request, struct handle *handle, const struct overlap_rule *rule,
                      uint32_t dynamic) {
    (void)request, (void)handle, (void)rule, (void)dynamic;
    return false;
}
