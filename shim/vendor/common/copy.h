/* Copies, fills and the like (copy.def): what a call does about the order of streams. Included by the assembler for the numbers. */
#pragma once

#define COPY_KIND_STREAM 0   /* on its stream */
#define COPY_KIND_CALLBACK 1 /* the same, and the host is called when the stream has come so far */
#define COPY_KIND_HOST 2     /* on the default stream, and the host waits */
#define COPY_KIND_WAITS_ON 3 /* on its stream, and the host waits */
#define COPY_KIND_DEVICE 4   /* as HOST for overlap windows, but the host does not wait */

/* A call on the stack of its stub (thunks_x86_64.S): registers lie below COPY_FRAME, then frame pointer, caller and stack. */
#define COPY_FRAME 432

#ifndef __ASSEMBLER__
#include "windows.h"

#pragma GCC visibility push(hidden)

struct copy {
    struct overlap_order *order; /* NULL: nobody wants to know what the host has seen behind it */
    uint32_t waits, asleep;      /* the host waits; the model sleeps */
    struct overlap_seen seen;
};
/* Before a call, and after it. stream: NULL where it names none. */
void copy_before(struct copy *copy, enum hook hook, int kind, vendor_stream stream);
void copy_after(const struct copy *copy, enum vendor vendor, vendor_result result);

#pragma GCC visibility pop

/* The bodies of copies in C, made from a vendor's copy.def, which is included behind this. On x86-64 the stub calls these
 * functions, and passes all arguments on as they are. */
#define COPY_BODY(kind, on, name, parameters, ...)                                                                     \
    vendor_result copy_##name(enum overlap_way way, enum hook hook, uintptr_t site, PARAMETERS_OF parameters) {        \
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
    uint64_t noted; /* the caller was noted by this call (struct hip_route) */
    uint64_t pad;
    uint64_t thunk, registers[6];
    uint64_t frame; /* COPY_FRAME behind the beginning */
    uintptr_t site;
    uint64_t stack[];
};
#pragma GCC visibility push(hidden)
/* In the stub, before the call: what is called. row: of the vendor's table of bodies, kind << 4 | place of the stream. */
void *copy_enter(struct copy_call *call, enum overlap_way way, enum hook hook, uintptr_t site, int32_t row);
#pragma GCC visibility pop
#endif
#endif
