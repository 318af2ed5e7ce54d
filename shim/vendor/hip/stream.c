/* Streams that are created: with a priority where the policy names the library that creates them, and with fewer compute units
 * where the policy reserves some for communication. */
#include "hip.h"

enum { MASK_WORDS = 64 }; /* 2,048 compute units; a longer mask stays as it is */

/* With our priority; false: as asked. */
static bool created_raised(uintptr_t site, hipStream_t *stream, uint32_t flags) {
    type_hipStreamCreateWithPriority *create = real_own(HOOK_hipStreamCreateWithPriority);
    int raised = 0;
    if (!create || !stream_wanted(VENDOR_HIP, site, &raised) || raised == 0 ||
        HIP_ASK(create(stream, flags, raised)) != VENDOR_SUCCESS)
        return false;
    stream_note_raised(*stream);
    stream_created(VENDOR_HIP, site, stream, VENDOR_SUCCESS);
    return true;
}

hipError_t hip_stream_create_body(enum overlap_way way, enum hook hook, uintptr_t site, hipStream_t *stream) {
    REAL_OR_RETURN(hipStreamCreate);
    return created_raised(site, stream, 0) ? VENDOR_SUCCESS : stream_created(VENDOR_HIP, site, stream, real(stream));
}

hipError_t hip_stream_flags_body(enum overlap_way way, enum hook hook, uintptr_t site, hipStream_t *stream,
                                 uint32_t flags) {
    REAL_OR_RETURN(hipStreamCreateWithFlags);
    return created_raised(site, stream, flags) ? VENDOR_SUCCESS
                                               : stream_created(VENDOR_HIP, site, stream, real(stream, flags));
}

/* HIP knows a stream's priority when it is created (facts of HIP 5.2 to 7.2: there is no call that changes it). */
enum stream_raising hip_stream_raise(hipStream_t stream, int priority) {
    (void)stream, (void)priority;
    return STREAM_FIXED;
}

bool hip_stream_lower(hipStream_t stream) {
    (void)stream;
    return true;
}

/* Does the library launch communication? Its streams keep all that they ask for. */
static bool communicates(const struct overlap_policy *policy, uintptr_t site) {
    char library[256];
    library_of(site, library, sizeof library);
    const struct overlap_view view = overlap_table_view(overlap_armed()->table);
    return overlap_is_communication_library(library) || overlap_match_any(&view, policy->libraries, library);
}

/* The mask without the compute units of the highest numbers that the policy reserves. False: it stays as it is, or would be
 * empty. */
static bool reduced(uintptr_t site, uint32_t words, const uint32_t *mask, uint32_t *less) {
    const struct device *device = overlap_armed() ? device_current(VENDOR_HIP) : NULL;
    const struct overlap_policy *policy = device_policy(device);
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

hipError_t hip_stream_mask_body(enum overlap_way way, enum hook hook, uintptr_t site, hipStream_t *stream,
                                uint32_t words, const uint32_t *mask) {
    REAL_OR_RETURN(hipExtStreamCreateWithCUMask);
    uint32_t less[MASK_WORDS];
    if (reduced(site, words, mask, less) && HIP_ASK(real(stream, words, less)) == VENDOR_SUCCESS) {
        launch_count(OVERLAP_COUNTER_STREAMS_REDUCED);
        return stream_created(VENDOR_HIP, site, stream, VENDOR_SUCCESS);
    }
    return stream_created(VENDOR_HIP, site, stream, real(stream, words, mask));
}
