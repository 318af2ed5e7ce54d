/* Stream creation: at a priority, if the policy names the creating library or if the stream that the same code
 * created before was critical; and with fewer compute units, if the policy reserves some for communication. */
#include "../../core/core.h"
#include "../common/comm_streams.h"
#include "../common/critical_streams.h"
#include "../common/device.h"
#include "../common/facts.h"
#include "../common/launch_slow.h"
#include "../common/vendor_ops.h"
#include "hip.h"

enum { MASK_WORDS = 64 }; /* 2,048 compute units; longer masks stay as they are */

static __thread bool made_critical __attribute__((tls_model("initial-exec"))); /* for the stream being created */

/* Create the stream at our priority; false: create it as asked. */
static bool created_raised(uintptr_t site, hipStream_t *stream, uint32_t flags) {
    type_hipStreamCreateWithPriority *create = real_own(HOOK_hipStreamCreateWithPriority);
    int raised = 0;
    const bool wanted = stream_wanted(VENDOR_HIP, site, &raised);
    if (!create || !(wanted || critical_site_priority(VENDOR_HIP, site, &raised)) || raised == 0 ||
        HIP_ASK(create(stream, flags, raised)) != VENDOR_SUCCESS)
        return false;
    if (wanted)
        stream_note_raised(*stream);
    made_critical = !wanted;
    stream_created(VENDOR_HIP, site, stream, VENDOR_SUCCESS);
    made_critical = false;
    return true;
}

hipError_t hip_stream_create_body(ENTRY, hipStream_t *stream) {
    REAL_OR_RETURN(hipStreamCreate);
    return created_raised(site, stream, 0) ? VENDOR_SUCCESS : stream_created(VENDOR_HIP, site, stream, real(stream));
}

hipError_t hip_stream_flags_body(ENTRY, hipStream_t *stream, uint32_t flags) {
    REAL_OR_RETURN(hipStreamCreateWithFlags);
    return created_raised(site, stream, flags) ? VENDOR_SUCCESS
                                               : stream_created(VENDOR_HIP, site, stream, real(stream, flags));
}

/* HIP sets a stream's priority at creation and has no call that changes it (hip_runtime_api.h of 5.2 to 7.2). */
enum stream_raising hip_stream_raise(hipStream_t stream, int priority) {
    type_hipStreamGetPriority *get = real_own(HOOK_hipStreamGetPriority);
    int now = 0;
    (void)priority;
    if (made_critical)
        return STREAM_RAISED;
    return get && HIP_ASK(get(stream, &now)) == VENDOR_SUCCESS && now != 0 ? STREAM_PROGRAMS : STREAM_FIXED;
}

/* The stream stays raised, and is reported so. */
bool hip_stream_lower(hipStream_t stream) {
    (void)stream;
    return false;
}

/* Return what the program asked for if we created the stream at another priority. */
hipError_t hip_stream_get_priority_body(ENTRY, hipStream_t stream, int *priority) {
    REAL_OR_RETURN(hipStreamGetPriority);
    const hipError_t result = real(stream, priority);
    if (result == VENDOR_SUCCESS && critical_find(stream))
        *priority = 0;
    return result;
}

/* True for a library that launches communication: its streams keep all their compute units. */
static bool communicates(const struct overlap_policy *policy, uintptr_t site) {
    char library[256];
    library_of(site, library, sizeof library);
    const struct overlap_view view = overlap_table_view(overlap_armed()->table);
    return overlap_is_communication_library(library) || overlap_match_any(&view, policy->libraries, library);
}

/* Remove the compute units with the highest numbers, which the policy reserves, from the mask. False: the mask stays
 * as it is, or would be empty. */
static bool reduced(uintptr_t site, uint32_t words, const uint32_t *mask, uint32_t *less) {
    const struct device *device = overlap_armed() ? device_current(VENDOR_HIP) : NULL;
    const struct overlap_policy *policy = device_policy_for(device, true);
    uint32_t left = 0, taken = 0;
    if (!device || !policy || !policy->reserve_cus || !mask || words > MASK_WORDS || communicates(policy, site) ||
        policy->reserve_cus >= device->gpu.multiprocessors)
        return false;
    const uint32_t first = device->gpu.multiprocessors - policy->reserve_cus;
    for (uint32_t i = 0; i < words; i++) {
        const uint32_t from = i * 32, keep = first <= from        ? 0
                                             : first - from >= 32 ? UINT32_MAX
                                                                  : (UINT32_C(1) << (first - from)) - 1;
        less[i] = mask[i] & keep;
        taken |= mask[i] & ~keep;
        left |= less[i];
    }
    return taken && left;
}

hipError_t hip_stream_mask_body(ENTRY, hipStream_t *stream, uint32_t words, const uint32_t *mask) {
    REAL_OR_RETURN(hipExtStreamCreateWithCUMask);
    uint32_t less[MASK_WORDS];
    if (reduced(site, words, mask, less) && HIP_ASK(real(stream, words, less)) == VENDOR_SUCCESS) {
        launch_count(OVERLAP_COUNTER_STREAMS_REDUCED);
        return stream_created(VENDOR_HIP, site, stream, VENDOR_SUCCESS);
    }
    return stream_created(VENDOR_HIP, site, stream, real(stream, words, mask));
}
