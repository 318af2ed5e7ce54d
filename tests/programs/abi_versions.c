/* Functions of which cuGetProcAddress gives out another one from some version on: each is called with exactly the parameters
 * of the version that was asked for. Parameters end where a page ends, so that nobody reads those of a newer version. */
#define WAY_PROC2
#define QUIET
#include "driver.h"

#include <sys/mman.h>
#include <unistd.h>

typedef struct {
    void *function;
    uint32_t grid[3], block[3], shared;
    void **parameters, **extra;
} OldNode; /* CUDA_KERNEL_NODE_PARAMS_v1 */
typedef struct {
    OldNode old;
    void *kernel, *context;
} NewNode;

static Find find;

static void *at(const char *name, int version) {
    void *function = NULL;
    int result = find(name, &function, version, 0, NULL);
    printf("%s@%d: %d\n", name, version, result);
    return result ? NULL : function;
}

/* So many bytes in front of a page that cannot be read. */
static void *last(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + page, page, PROT_NONE);
    return pages + page - size;
}

int main(void) {
    driver_start();
    find = (Find)dlsym(driver_library(), FIRST);
    void *context = NULL, *graph = NULL, *node = NULL, *instance = NULL, *module = NULL, *function = NULL;
    int (*two)(void **, unsigned, int) = (int (*)(void **, unsigned, int))at("cuCtxCreate", 11030);
    printf("%d\n", two ? two(&context, 0, 0) : -1);
    int (*three)(void **, void *, int, unsigned, int) =
        (int (*)(void **, void *, int, unsigned, int))at("cuCtxCreate", 11040);
    printf("%d\n", three ? three(&context, NULL, 0, 0, 0) : -1);
    int (*four)(void **, void *, unsigned, int) = (int (*)(void **, void *, unsigned, int))at("cuCtxCreate", 12050);
    printf("%d\n", four ? four(&context, NULL, 0, 0) : -1);

    char *text = ptx_of("k");
    uint64_t a = 0;
    uint32_t b = 0;
    void *parameters[] = {&a, &b};
    printf("%d\n", CU(cuModuleLoadData)(&module, text) + CU(cuModuleGetFunction)(&function, module, "k"));
    int (*create)(void **, unsigned) = (int (*)(void **, unsigned))at("cuGraphCreate", 10000);
    printf("%d\n", create ? create(&graph, 0) : -1);
    static const int versions[] = {10000, 12000};
    for (int i = 0; i < 2; i++) {
        NewNode *new = i ? last(sizeof *new) : NULL;
        OldNode *old = i ? &new->old : last(sizeof *old);
        *old = (OldNode){function, {4000, 1, 1}, {256, 1, 1}, 0, parameters, NULL};
        if (new)
            new->kernel = new->context = NULL;
        int (*add)(void **, void *, const void *, size_t, const void *) =
            (int (*)(void **, void *, const void *, size_t, const void *))at("cuGraphAddKernelNode", versions[i]);
        printf("%d\n", add ? add(&node, graph, NULL, 0, old) : -1);
        int (*get)(void *, void *) = (int (*)(void *, void *))at("cuGraphKernelNodeGetParams", versions[i]);
        printf("%d", get ? get(node, old) : -1);
        printf(" %u blocks of %u, %u bytes\n", old->grid[0], old->block[0], old->shared);
        int (*set)(void *, const void *) = (int (*)(void *, const void *))at("cuGraphKernelNodeSetParams", versions[i]);
        printf("%d\n", set ? set(node, old) : -1);
    }
    printf("%d\n", CU(cuGraphInstantiateWithFlags)(&instance, graph, 0) + CU(cuGraphLaunch)(instance, NULL));
    printf("%d\n", CU(cuCtxSynchronize)());
    return 0;
}
