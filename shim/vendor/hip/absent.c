/* Operations of common/vendor_ops.def for what HIP does not have. */
#include "../common/handle.h"
#include "hip.h"

bool hip_prepare(struct handle *handle, uint32_t dynamic) {
    (void)handle, (void)dynamic;
    return true;
}

uint32_t hip_over_app_limit(struct handle *handle, int device, uint32_t dynamic) {
    (void)handle, (void)device, (void)dynamic;
    return 0;
}

bool hip_prefers_cache(struct handle *handle, int device) {
    (void)handle, (void)device;
    return false;
}
