/* Copies, fills and other stream operations (copy.def). On the legacy default stream they order the blocking streams
 * of the context; blocking ones also tell the host what is finished. */
#include "../../core/core.h"
#include "../../core/sync_model.h"
#include "copy_calls.h"
#include "critical_streams.h"
#include "resolve.h"
#include "sleep.h"
#include "sync_calls.h"
#include "windows.h"

void copy_made(vendor_stream stream, enum default_stream null_stream) {
    struct overlap_sync_model *model = !window_asleep() && window_is_legacy(stream, null_stream) ? windows() : NULL;
    if (model) {
        overlap_sync_action(model, window_stream(model, stream, null_stream));
        window_check_legacy(model);
    }
}

void copy_before(struct copy *copy, enum hook hook, int kind, vendor_stream stream) {
    copy->model = NULL;
    copy->asleep = window_asleep();
    copy->waits = kind != COPY_KIND_DEVICE;
    if (window_asleep_deeply() || (copy->asleep && (kind == COPY_KIND_STREAM || kind == COPY_KIND_DEVICE)))
        return;
    const enum default_stream null_stream = hook_default(hook);
    struct overlap_sync_model *const model = windows();
    const bool on_default = kind == COPY_KIND_HOST || kind == COPY_KIND_DEVICE;
    if (!on_default)
        copy_made(stream, null_stream);
    if (!model || kind == COPY_KIND_STREAM)
        return;
    struct overlap_stream *const tracked = window_stream(model, stream, null_stream);
    if (copy->asleep) {
        critical_completion_of_stream(tracked, &copy->completion);
    } else {
        if (on_default)
            overlap_sync_action(model, tracked);
        overlap_sync_completion_of_stream(model, tracked, &copy->completion);
    }
    if (kind == COPY_KIND_CALLBACK) /* the callback may signal anything; treat it as a host wait */
        critical_host_waits(model, hook_vendor(hook), &copy->completion);
    else
        copy->model = model;
}

void copy_after(const struct copy *copy, enum vendor vendor, vendor_result result) {
    if (copy->model && result == VENDOR_SUCCESS) {
        if (copy->waits)
            critical_host_waits(copy->model, vendor, &copy->completion);
        if (!copy->asleep)
            window_host_waited(copy->model, &copy->completion);
    }
}

#ifdef __x86_64__
_Static_assert(offsetof(struct copy_call, frame) == COPY_FRAME, "the frame of the stubs");
_Static_assert(COPY_FRAME % 16 == 0, "the stack is aligned");

static vendor_result not_initialized(void) {
    return VENDOR_NOT_INITIALIZED;
}

void *copy_enter(struct copy_call *call, ENTRY, int32_t row) {
    const int kind = row >> 4, argument = row & 15;
    void *const real = real_function(route, hook, site);
    call->copy.model = NULL;
    call->noted = 0;
    if (!real)
        return (void *)not_initialized;
    const uint64_t stream = kind == COPY_KIND_HOST || kind == COPY_KIND_DEVICE ? 0
                            : argument < 6                                     ? call->registers[argument]
                                                                               : call->stack[argument - 6];
    copy_before(&call->copy, hook, kind, (vendor_stream)(uintptr_t)stream); /* NOLINT(performance-no-int-to-ptr) */
    return real;
}
#endif
