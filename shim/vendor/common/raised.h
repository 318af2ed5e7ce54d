/* Interface between critical_streams.c, which decides about a stream, and raised.c, which changes it and updates the
 * report. */
#pragma once

#include "../../core/sync_model.h"
#include "hook.h"

#pragma GCC visibility push(hidden)

struct critical_stream;
struct device;

/* How struct overlap_part stores the priority that a stream has without us: not read yet; variable, so read it each
 * time; or STREAM_PRIORITY_0 plus the priority. */
enum stream_priority { STREAM_PRIORITY_UNKNOWN = 0, STREAM_PRIORITY_CHANGES = 1, STREAM_PRIORITY_0 = 1 << 30 };

static inline uint32_t get(const uint32_t *field) {
    return __atomic_load_n(field, __ATOMIC_RELAXED);
}
static inline void set(uint32_t *field, uint32_t value) {
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

/* A try-lock: a thread that does not get it retries at the next opportunity, or skips the work. */
static inline bool take(uint32_t *lock) {
    uint32_t free = 0;
    return __atomic_compare_exchange_n(lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
static inline void leave(uint32_t *lock) {
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* Raise the stream, unless it is raised or cannot be; a priority that the program set stays. communication: a
 * communication launch waits for the stream. No-op while another thread raises or lowers a stream: the next wait
 * retries. */
void raised_raise(enum vendor vendor, struct overlap_stream *tracked, const struct device *device, bool communication);

/* Restore the stream's own priority; `status` is what the report says from now on. device: may be NULL. False: not
 * now, for the reason above or because the stream captures; or never, if the vendor cannot (HIP). */
bool raised_lower(enum vendor vendor, struct overlap_stream *tracked, const struct device *device,
                  enum overlap_stream_status status);

/* The stream has got by an attribute copy the priority that we gave `from`, and cannot be changed now: the program
 * must see its own priority. */
void raised_copied(struct overlap_stream *tracked, const struct critical_stream *from);

/* Stop tracking a stream that was destroyed or whose priority the program has set. */
void raised_drop(struct critical_stream *entry);

/* The stream is about to be destroyed: waits for a thread that is raising or lowering it, and lets none do so again. */
void raised_gone(struct overlap_stream *tracked);

/* *priority: the greatest if communication waits for the stream, else the next one if that is above 0, the default.
 * False: no priority is above 0. */
bool raised_level(enum vendor vendor, bool communication, int *priority);

/* True if launches continue on a raised stream that was not waited for lately. Then a period lasts until that is
 * settled. */
bool raised_in_doubt(void);

void raised_forked(void);

#pragma GCC visibility pop
