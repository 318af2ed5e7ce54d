/* What the compiler makes of overlap_abi.h: `struct SIZE`, and `struct.field OFFSET SIZE` for every field, from
 * abi_fields.h. */
#include <stddef.h>
#include <stdio.h>

#include "core/core.h"

#define STRUCT(type) printf(#type " %zu\n", sizeof(struct type));
#define FIELD(type, field)                                                                                             \
    printf(#type "." #field " %zu %zu\n", offsetof(struct type, field), sizeof(((struct type *)0)->field));

int main(void) {
#ifdef ABI_FIELDS
#include ABI_FIELDS
#endif
    printf("reasons %d %d\n", (int)OVERLAP_REASON_COUNT, OVERLAP_REASONS);
    return 0;
}
