/* The part of MessagePack in which code objects describe their kernels: maps, arrays, strings, integers. */
#ifndef SIMGPU_MESSAGEPACK_H
#define SIMGPU_MESSAGEPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packed {
    const uint8_t *at, *end;
    int depth;
};

enum packed_kind { PACKED_OTHER, PACKED_NUMBER, PACKED_TEXT, PACKED_ARRAY, PACKED_MAP };

struct packed_value {
    enum packed_kind kind;
    uint64_t number;  /* or bytes, items, pairs */
    const char *text; /* not ended by a zero */
};

/* Reads one value; of an array or a map only its beginning. False: broken. */
bool hip_packed_next(struct packed *packed, struct packed_value *value);
bool hip_packed_skip(struct packed *packed); /* a whole value */
bool hip_packed_is(const struct packed_value *value, const char *text);

#endif
