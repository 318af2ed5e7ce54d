/* Between critical.c, which says what becomes of a stream, and raised.c, which does it and tells the report. */
#pragma once

#include "windows.h"

#pragma GCC visibility push(hidden)

static inline uint32_t get(const uint32_t *field) {
    return __atomic_load_n(field, __ATOMIC_RELAXED);
}
static inline void set(uint32_t *field, uint32_t value) {
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

/* Nobody waits: who does not get it tries at the next opportunity, or does without. */
static inline bool take(uint32_t *lock) {
    uint32_t free = 0;
    return __atomic_compare_exchange_n(lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
static inline void leave(uint32_t *lock) {
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* The stream is raised, unless it is already or cannot be; the program's own priority stays. communication: something that communicates
 * waits for it. Where another thread raises or lowers one, nothing happens: the next wait tries again. */
void raised_raise(enum vendor vendor, struct overlap_stream *its, const struct device *device, bool communication);

/* It is as the program made it again, and status is what the report says of it from now on; device: NULL where it is not known. False: not now, as
 * above or because it captures; or never, where that is not possible (HIP). */
bool raised_lower(enum vendor vendor, struct overlap_stream *its, const struct device *device,
                  enum overlap_stream_status status);

/* It has got the priority that we gave another one, and cannot be changed now: what the program sees is as if it had not. */
void raised_copied(struct overlap_stream *its, const struct critical_stream *from);

/* It is not looked at any more: its priority is the program's now, or it is gone. */
void raised_drop(struct critical_stream *place);

/* The priority of a level: the greatest for those that communication waits for, else the next one, where that is still above 0, which
 * streams have that nobody cared about. False: there is none above 0. */
bool raised_level(enum vendor vendor, bool communication, int *priority);

/* Has one of them been launched on for a while although nobody waited for it? Then a period lasts until that is clear. */
bool raised_in_doubt(void);

void raised_forked(void);

#pragma GCC visibility pop
