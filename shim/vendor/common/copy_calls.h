/* How copies, fills and similar calls (copy.def) order streams. The assembler includes this file for the numbers. */
#pragma once

#define COPY_KIND_STREAM 0   /* ordered on its stream only */
#define COPY_KIND_CALLBACK 1 /* the same, and the host is called back when the stream gets there */
#define COPY_KIND_HOST 2     /* on the default stream; the host waits */
#define COPY_KIND_WAITS_ON 3 /* on its stream; the host waits */
#define COPY_KIND_DEVICE 4   /* like HOST for overlap windows, but the host does not wait */

/* Layout of the stub's stack frame (thunks_x86_64.S): saved registers lie below COPY_FRAME; frame pointer, return
 * address and the program's stack arguments lie above. */
#define COPY_FRAME 432

#ifndef __ASSEMBLER__
#include "../../core/sync_model.h"
#include "resolve.h"

#pragma GCC visibility push(hidden)

struct copy {
    struct overlap_sync_model *model; /* NULL: nothing to do after the call */
    uint32_t waits, asleep;           /* the host waits; the model sleeps */
    struct overlap_completion completion;
};
/* Called before and after the real call. stream: NULL if the call names none. */
void copy_before(struct copy *copy, enum hook hook, int kind, vendor_stream stream);
void copy_after(const struct copy *copy, enum vendor vendor, vendor_result result);

#pragma GCC visibility pop

/* Bodies of copies in C, generated from a vendor's copy.def, which is included after this file. On x86-64 the stub
 * calls these functions and passes all arguments through unchanged. */
#define COPY_BODY(kind, on, name, parameters, ...)                                                                     \
    vendor_result copy_##name(ENTRY, PARAMETERS_OF parameters) {                                                       \
        BEHIND(parameters);                                                                                            \
        struct copy copy_;                                                                                             \
        copy_before(&copy_, hook, kind, on);                                                                           \
        vendor_result result = real(__VA_ARGS__);                                                                      \
        copy_after(&copy_, hook_vendor(hook), result);                                                                 \
        return result;                                                                                                 \
    }
#define COPY_HOST(name, parameters, ...) COPY_BODY(COPY_KIND_HOST, NULL, name, parameters, __VA_ARGS__)
#define COPY_DEVICE(name, parameters, ...) COPY_BODY(COPY_KIND_DEVICE, NULL, name, parameters, __VA_ARGS__)
#define COPY_STREAM(name, parameters, ...) COPY_BODY(COPY_KIND_STREAM, stream, name, parameters, __VA_ARGS__)
#define COPY_CALLBACK(name, parameters, ...) COPY_BODY(COPY_KIND_CALLBACK, stream, name, parameters, __VA_ARGS__)
#define COPY_WAITS_ON(name, parameters, ...) COPY_BODY(COPY_KIND_WAITS_ON, stream, name, parameters, __VA_ARGS__)

#ifdef __x86_64__
struct copy_call {
    struct copy copy;
    uint64_t noted; /* this call recorded the caller (struct hip_target) */
    uint64_t pad;
    uint64_t thunk, registers[6];
    uint64_t frame; /* at offset COPY_FRAME */
    uintptr_t site;
    uint64_t stack[];
};
#pragma GCC visibility push(hidden)
/* Called by the stub; returns the function to call. row: of the vendor's table of bodies, kind << 4 | index of the
 * stream argument. */
void *copy_enter(struct copy_call *call, ENTRY, int32_t row);
#pragma GCC visibility pop
#endif
#endif
