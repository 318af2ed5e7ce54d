/* unseen_stream LIBRARY: two streams that LIBRARY (deep.c) creates, bound to the driver itself; with no current context a small kernel
 * is launched on one and waited for, and a large one launched on the other. How often was the driver asked for a stream's context? */
#define WAY_LINKED
#include "driver.h"

static int asked;

static void told(const char *name, const uintptr_t *words) {
    (void)words;
    asked += strcmp(name, "cuStreamGetCtx") == 0;
}

int main(int argc, char **argv) {
    void *small, *large, *streams[2];
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
    int (*create)(void **) = library ? (int (*)(void **))dlsym(library, "test_stream") : NULL;
    void (*tell)(void (*)(const char *, const uintptr_t *)) = dlsym(RTLD_DEFAULT, "driver_tell");
    if (!create || !tell)
        return 3;
    driver_start();
    small = kernel_of("small"), large = kernel_of("large");
    int bad = create(&streams[0]) + create(&streams[1]) + cuCtxSetCurrent(NULL);
    tell(told);
    for (int i = 0; i < 100; i++)
        bad += launch_kernel(small, 8, 256, streams[0]) + launch_kernel(large, 1000, 256, streams[1]) +
               cuStreamSynchronize(streams[0]);
    tell(NULL);
    printf("bad: %d\ndriver says %d\n", bad, asked);
    return bad;
}
