/* What dlsym costs, in nanoseconds: symbols NAME COUNT. Prints the median over chunks. */
#include <dlfcn.h>

#include "measure.h"

static const char *name;

static void look_up(long count, void *handle) {
    for (long i = 0; i < count; i++)
        dlsym(handle, name);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return fprintf(stderr, "usage: symbols NAME COUNT\n"), 2;
    name = argv[1];
    printf("%.3f\n", median_of(look_up, atol(argv[2]), dlopen(NULL, RTLD_NOW)));
    return 0;
}
