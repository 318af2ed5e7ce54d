/* unseen_stream LIBRARY: two streams that LIBRARY creates (-DUNSEEN), bound to the driver itself; with no current context a small kernel
 * is launched on one and waited for, and a large one launched on the other. How often was the driver asked for a stream's context? */
#ifdef UNSEEN
extern int cuStreamCreate(void **, unsigned);
int unseen_stream(void **);
int unseen_stream(void **stream) {
    return cuStreamCreate(stream, 1);
}
#else
#define WAY_LINKED
#define DRIVER_MORE_FILE "driver_streams.h"
#include "driver.h"

static int asked;

static void told(const char *name, const uintptr_t *words) {
    (void)words;
    asked += strcmp(name, "cuStreamGetCtx") == 0;
}

static int launch(void *kernel, unsigned blocks, void *stream) {
    uint64_t a = 0;
    uint32_t b = 0;
    void *parameters[] = {&a, &b};
    return cuLaunchKernel(kernel, blocks, 1, 1, 256, 1, 1, 0, stream, parameters, NULL);
}

int main(int argc, char **argv) {
    void *module, *small, *large, *streams[2];
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
    int (*create)(void **) = library ? (int (*)(void **))dlsym(library, "unseen_stream") : NULL;
    void (*tell)(void (*)(const char *, const uintptr_t *)) = dlsym(RTLD_DEFAULT, "driver_tell");
    char *text = ptx_of("small,large");
    if (!create || !tell)
        return 3;
    driver_start();
    int bad = cuModuleLoadData(&module, text) + cuModuleGetFunction(&small, module, "small") +
              cuModuleGetFunction(&large, module, "large") + create(&streams[0]) + create(&streams[1]) +
              cuCtxSetCurrent(NULL);
    tell(told);
    for (int i = 0; i < 100; i++)
        bad += launch(small, 8, streams[0]) + launch(large, 1000, streams[1]) + cuStreamSynchronize(streams[0]);
    tell(NULL);
    printf("bad: %d\ndriver says %d\n", bad, asked);
    free(text);
    return bad;
}
#endif
