/* See names.h. A name is a chain of pieces of one size, so that no order of names leaves gaps. */
#include <string.h>

#include "../text.h"
#include "names.h"
#include "table.h"

enum { PIECE = 60 };
struct piece {
    uint32_t next; /* of the name, or of the free ones (table.h); 0: the last one */
    char text[PIECE];
};
static struct pool pieces = POOL_OF(piece, 1 << 18);

static struct piece *piece_at(uint32_t number) {
    return pool_at(&pieces, number);
}

void name_give(uint32_t number) {
    while (number) {
        const uint32_t next = piece_at(number)->next;
        pool_give(&pieces, number);
        number = next;
    }
}

uint32_t name_keep(const char *name) {
    const size_t length = overlap_length(name, NAME_LIMIT);
    uint32_t first = 0, last = 0;
    for (size_t from = 0; from <= length; from += PIECE) { /* the last piece has room for the NUL */
        const uint32_t number = pool_take(&pieces);
        if (!number) {
            name_give(first);
            return 0;
        }
        struct piece *const piece = piece_at(number);
        const size_t size = length - from < PIECE ? length - from : PIECE;
        memcpy(piece->text, name + from, size);
        if (size < PIECE)
            piece->text[size] = 0;
        piece->next = 0;
        if (last)
            piece_at(last)->next = number;
        else
            first = number;
        last = number;
    }
    return first;
}

const char *name_text(uint32_t number) {
    static char text[NAME_LIMIT + 2 * PIECE];
    char *at = text;
    for (; number; number = piece_at(number)->next, at += PIECE)
        memcpy(at, piece_at(number)->text, PIECE);
    *at = 0;
    return text;
}

uint64_t name_hash(const char *name) {
    const uint64_t hash = overlap_hash(OVERLAP_FNV, name, overlap_length(name, NAME_LIMIT));
    return hash ? hash : 1;
}
