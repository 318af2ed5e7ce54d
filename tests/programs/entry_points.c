/* Every row of driver.def, called by one route. entry_points symbol | dlsym | proc_address LIBRARY
 *
 * LIBRARY (entry_points_raw.c) is bound to the driver itself and tells what the driver has really got. For each row:
 *   == NAME
 *   address: whose function the way gives out, or `none`
 *   driver: ... what the driver has, and how it was launched
 *   ... what the program sees
 * A row without a recipe (entry_recipes.h) does not compile.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../shim/vendor/cuda/cuda_abi.h"

#define DRIVER(name, body, parameters, ...)                                                                            \
    typedef CUresult type_##name parameters;                                                                           \
    extern type_##name name;                                                                                           \
    static void recipe_##name(type_##name *call);
#include "../../shim/vendor/cuda/driver.def"
#undef DRIVER

/* What scenes are made of besides. */
extern CUresult cuCtxSetCurrent(CUcontext), cuModuleLoadData(CUmodule *, const void *);
extern CUresult cuLibraryLoadData(CUlibrary *, const void *, int *, void **, unsigned, int *, void **, unsigned);
extern CUresult cuGraphCreate(CUgraph *, unsigned), cuFuncSetBlockShape(CUfunction, int, int, int);
extern CUresult cuGraphAddChildGraphNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph);
extern CUresult cuParamSetSize(CUfunction, unsigned), cuParamSetv(CUfunction, int, void *, unsigned);
extern CUresult cuDeviceGetDevResource(CUdevice, void *, int);
extern CUresult cuDevSmResourceSplitByCount(void *, unsigned *, const void *, void *, unsigned, unsigned);
extern CUresult cuDevResourceGenerateDesc(void **, void *, unsigned), cuCtxGetCurrent(CUcontext *);
extern CUresult cuMemAlloc_v2(uint64_t *, size_t);

static void *(*raw)(const char *name);

#define FIELDS "kernel", "blocks", "result", "dynamic_shared", "priority", "cluster"
#include "entry_log.h"

#define RAW(name) ((type_##name *)raw(#name))
#include "entry_recipes.h"

/* ---- The routes ---- */

static void *library;
static type_cuGetProcAddress_v2 *find;

static const struct {
    const char *base, *symbol;
    int version, per_thread;
} known[] = {
#define STUB(symbol)
#define PROC(base, version, per_thread, symbol) {#base, #symbol, version, per_thread},
#include "../../tools/simgpu/api.def"
#undef PROC
#undef STUB
};

/* As a program asks that wants this very version. */
static void *by_proc_address(const char *name) {
    void *found = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].symbol, name) == 0 &&
            find(known[i].base, &found, known[i].version, known[i].per_thread ? 2 : 0, NULL) != CUDA_SUCCESS)
            found = NULL;
    return found;
}

static void *by_dlsym(const char *name) {
    return dlsym(library, name);
}

static void *by_symbol(const char *name) {
#define DRIVER(row, body, parameters, ...)                                                                             \
    if (strcmp(name, #row) == 0)                                                                                       \
        return (void *)row;
#include "../../shim/vendor/cuda/driver.def"
#undef DRIVER
    return NULL;
}

int main(int argc, char **argv) {
    void *(*way)(const char *) = argc < 3                               ? NULL
                                 : strcmp(argv[1], "symbol") == 0       ? by_symbol
                                 : strcmp(argv[1], "dlsym") == 0        ? by_dlsym
                                 : strcmp(argv[1], "proc_address") == 0 ? by_proc_address
                                                                        : NULL;
    void *deep = way ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
    launches = getenv("SIMGPU_LAUNCHES") ? fopen(getenv("SIMGPU_LAUNCHES"), "a+") : NULL;
    if (!deep || !launches)
        return 2;
    raw = (void *(*)(const char *))dlsym(deep, "raw_symbol");
    library = dlopen("libcuda.so.1", RTLD_NOW);
    find = (type_cuGetProcAddress_v2 *)dlsym(library, "cuGetProcAddress_v2");
    if (cuInit(0) != CUDA_SUCCESS)
        return 3;
#define DRIVER(name, body, parameters, ...)                                                                            \
    {                                                                                                                  \
        type_##name *call = (type_##name *)way(#name);                                                                 \
        printf("== %s\naddress: %s\n", #name, owner_of((void *)call));                                                 \
        set_scene();                                                                                                   \
        if (call)                                                                                                      \
            recipe_##name(call);                                                                                       \
        printf("end: %d\n", cuCtxSynchronize());                                                                       \
        print_launches();                                                                                              \
        fflush(stdout);                                                                                                \
    }
#include "../../shim/vendor/cuda/driver.def"
#undef DRIVER
    return 0;
}
