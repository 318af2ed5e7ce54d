#include <stddef.h>

/* Arguments of a launch; what a call does not have is 0. */
struct echo {
    const void *function;
    unsigned grid[3], block[3];
    size_t shared;
    void *stream, **parameters, **extra, *start, *stop;
    unsigned flags;
};
const struct echo *echo_last(void);
