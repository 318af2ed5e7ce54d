/* Streams of a library that the policy does not name, for hip_entry_points.c. */
#include <stdint.h>

extern int hipStreamCreateWithFlags(void **stream, uint32_t flags);

void *scene_stream(uint32_t flags) {
    void *made = 0;
    return hipStreamCreateWithFlags(&made, flags) ? 0 : made;
}
