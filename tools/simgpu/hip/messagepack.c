/* Reading MessagePack, with every bound checked. */
#include "messagepack.h"

#include <string.h>

enum { DEEPEST = 32 };

static bool big_endian(struct packed *packed, size_t bytes, uint64_t *number) {
    if ((size_t)(packed->end - packed->at) < bytes)
        return false;
    *number = 0;
    while (bytes-- > 0)
        *number = *number << 8 | *packed->at++;
    return true;
}

static bool text(struct packed *packed, struct packed_value *value, enum packed_kind kind) {
    if (value->number > (size_t)(packed->end - packed->at))
        return false;
    value->kind = kind;
    value->text = (const char *)packed->at;
    packed->at += value->number;
    return true;
}

bool hip_packed_next(struct packed *packed, struct packed_value *value) {
    uint64_t first;
    *value = (struct packed_value){.kind = PACKED_OTHER};
    if (!big_endian(packed, 1, &first))
        return false;
    const uint8_t code = (uint8_t)first;
    const size_t wide = (size_t)1 << (code & 3);
    if (code < 0x80 || code >= 0xe0) {
        value->kind = PACKED_NUMBER;
        value->number = code < 0x80 ? code : (uint64_t)(int64_t)(int8_t)code;
        return true;
    }
    if (code < 0xa0) {
        value->kind = code < 0x90 ? PACKED_MAP : PACKED_ARRAY;
        value->number = code & 15;
        return true;
    }
    if (code < 0xc0) {
        value->number = code & 31;
        return text(packed, value, PACKED_TEXT);
    }
    switch (code) {
    case 0xc0: /* nothing, false, true */
    case 0xc2:
    case 0xc3:
        value->number = code == 0xc3;
        return true;
    case 0xc4: /* bytes */
    case 0xc5:
    case 0xc6:
        return big_endian(packed, wide, &value->number) && text(packed, value, PACKED_OTHER);
    case 0xca: /* floating point */
        return big_endian(packed, 4, &value->number);
    case 0xcb:
        return big_endian(packed, 8, &value->number);
    case 0xcc: /* integers; those with a sign are never negative here */
    case 0xcd:
    case 0xce:
    case 0xcf:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        value->kind = PACKED_NUMBER;
        return big_endian(packed, wide, &value->number);
    case 0xd9:
    case 0xda:
    case 0xdb:
        return big_endian(packed, (size_t)1 << (code - 0xd9), &value->number) && text(packed, value, PACKED_TEXT);
    case 0xdc:
    case 0xdd:
        value->kind = PACKED_ARRAY;
        return big_endian(packed, code == 0xdc ? 2 : 4, &value->number);
    case 0xde:
    case 0xdf:
        value->kind = PACKED_MAP;
        return big_endian(packed, code == 0xde ? 2 : 4, &value->number);
    default:
        return false;
    }
}

bool hip_packed_skip(struct packed *packed) {
    struct packed_value value;
    if (!hip_packed_next(packed, &value) || packed->depth == DEEPEST)
        return false;
    packed->depth++;
    bool good = true;
    if (value.kind == PACKED_ARRAY || value.kind == PACKED_MAP)
        for (uint64_t i = 0; good && i < value.number; i++)
            good = hip_packed_skip(packed) && (value.kind == PACKED_ARRAY || hip_packed_skip(packed));
    packed->depth--;
    return good;
}

bool hip_packed_is(const struct packed_value *value, const char *expected) {
    return value->kind == PACKED_TEXT && value->number == strlen(expected) &&
           memcmp(value->text, expected, (size_t)value->number) == 0;
}
