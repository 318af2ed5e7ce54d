/* Every row of HIP's driver.def, called by one route. hip_entry_points WAY SCENE CODE
 *
 * WAY: symbol, dlsym, proc_address, driver_entry. SCENE: libhip_scene.so, whose streams are another library's. CODE: a code
 * object with the kernels k, leave, inside and ncclDevKernel. ROWS, of the build: a file with ROW(name) for each that this
 * version of the runtime has; it is linked to that. For each row:
 *   == NAME
 *   address: whose function the way gives out, or `none`
 *   driver: ... how it was launched; streams and masks as the runtime has them
 *   counted: WAY NUMBER ...   launches by way, and graph launches, that the statistics page has more than before
 *   ... what the program sees
 * A row without a recipe (hip_entry_recipes.h) does not compile.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../shim/overlap_abi.h"
#include "../../shim/vendor/hip/hip_abi.h"

#define DRIVER(name, body, parameters, ...)                                                                            \
    typedef hipError_t type_##name parameters;                                                                         \
    static void recipe_##name(type_##name *call);
#include "../../shim/vendor/hip/driver.def"
#undef DRIVER
#ifndef ROWS
#define ROWS "hip_rows_all.h"
#define RUNTIME "libamdhip64.so.7"
#endif
#define ROW(name) extern type_##name name;
#include ROWS
#undef ROW

/* What scenes are made of besides. */
extern hipError_t hipGraphCreate(hipGraph_t *, unsigned), hipStreamGetPriority(hipStream_t, int *), hipFree(void *);
extern hipError_t hipConfigureCall(dim3, dim3, size_t, hipStream_t), hipSetupArgument(const void *, size_t, size_t);
extern hipError_t hipExtStreamGetCUMask(hipStream_t, uint32_t, uint32_t *), hipMemGetInfo(size_t *, size_t *);
extern void **__hipRegisterFatBinary(const void *);
extern void __hipRegisterFunction(void **, const void *, char *, const char *, unsigned, void *, void *, void *, void *,
                                  int *);
extern void __hipRegisterVar(void **, void *, char *, char *, int, size_t, int, int);

static const char *code, *code_file; /* the code object */
static void *library;                /* the runtime */
static hipStream_t (*scene_stream)(uint32_t flags);

#define FIELDS "kernel", "blocks", "threads", "result", "dynamic_shared", "cooperative"
#include "entry_log.h"

/* ---- The statistics page of this process, where there is one ---- */

static const char *const ways[] = {
#define ROUTE(name) #name,
#include "../../shim/core/route.def"
#undef ROUTE
};
enum { WAYS = sizeof ways / sizeof *ways };

static const struct overlap_page *find_page(void) {
    static const struct overlap_page *page;
    char pattern[1024];
    glob_t found;
    const char *folder = getenv("OVERLAP_REPORT");
    if (page || !folder)
        return page;
    snprintf(pattern, sizeof pattern, "%s/*.page", folder);
    if (glob(pattern, 0, NULL, &found) == 0) {
        const int file = open(found.gl_pathv[0], O_RDONLY);
        void *mapped = mmap(NULL, sizeof *page, PROT_READ, MAP_SHARED, file, 0);
        page = mapped == MAP_FAILED ? NULL : mapped;
        globfree(&found);
    }
    return page;
}

static void print_counts(void) {
    static uint64_t before[WAYS + 1];
    uint64_t now[WAYS + 1] = {0};
    const struct overlap_page *page = find_page();
    for (int shard = 0; page && shard < OVERLAP_SHARDS_FIRST; shard++) { /* no more threads launch */
        for (int way = 0; way < WAYS; way++)
            now[way] += page->shards[shard].routes[way];
        now[WAYS] += page->shards[shard].counters[OVERLAP_COUNTER_GRAPH_LAUNCHES];
    }
    printf("counted:");
    for (int way = 0; way <= WAYS; way++)
        if (now[way] != before[way])
            printf(" %s %d", way < WAYS ? ways[way] : "graph_launches", (int)(now[way] - before[way]));
    printf("\n");
    memcpy(before, now, sizeof now);
}

#include "hip_entry_recipes.h"

/* ---- The routes ---- */

static void *by_dlsym(const char *name) {
    return dlsym(library, name);
}

static void *by_symbol(const char *name) {
#define ROW(row)                                                                                                       \
    if (strcmp(name, #row) == 0)                                                                                       \
        return (void *)row;
#include ROWS
#undef ROW
    return NULL;
}

static void *by_proc_address(const char *name) {
    type_hipGetProcAddress *find = (type_hipGetProcAddress *)dlsym(library, "hipGetProcAddress");
    void *found = NULL;
    int status = -1;
    return find && find(name, &found, 700, 0, &status) == 0 && status == 0 ? found : NULL;
}

/* Those of the thread's default stream by the function that is for them. */
static void *by_driver_entry(const char *name) {
    const size_t length = strlen(name);
    const bool thread = length > 4 && strcmp(name + length - 4, "_spt") == 0;
    type_hipGetDriverEntryPoint *find =
        (type_hipGetDriverEntryPoint *)dlsym(library, thread ? "hipGetDriverEntryPoint_spt" : "hipGetDriverEntryPoint");
    char base[256];
    void *found = NULL;
    int status = -1;
    snprintf(base, sizeof base, "%.*s", (int)(thread ? length - 4 : length), name);
    return find && find(base, &found, 0, &status) == 0 && status == 0 ? found : NULL;
}

int main(int argc, char **argv) {
    void *(*way)(const char *) = argc < 4                               ? NULL
                                 : strcmp(argv[1], "symbol") == 0       ? by_symbol
                                 : strcmp(argv[1], "dlsym") == 0        ? by_dlsym
                                 : strcmp(argv[1], "proc_address") == 0 ? by_proc_address
                                 : strcmp(argv[1], "driver_entry") == 0 ? by_driver_entry
                                                                        : NULL;
    void *scene = way ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    launches = getenv("SIMGPU_LAUNCHES") ? fopen(getenv("SIMGPU_LAUNCHES"), "a+") : NULL;
    code_file = argv[3];
    code = scene ? read_file(code_file) : NULL;
    if (!scene || !launches || !code)
        return 2;
    scene_stream = (hipStream_t (*)(uint32_t))dlsym(scene, "scene_stream");
    library = dlopen(RUNTIME, RTLD_NOW | RTLD_NOLOAD);
    if (hipInit(0) != 0 || !library)
        return 3;
#define DRIVER(name, body, parameters, ...)                                                                            \
    {                                                                                                                  \
        type_##name *call = (type_##name *)way(#name);                                                                 \
        printf("== %s\naddress: %s\n", #name, owner_of((void *)call));                                                 \
        if (call) {                                                                                                    \
            set_scene();                                                                                               \
            recipe_##name(call);                                                                                       \
        }                                                                                                              \
        printf("end: %d\n", hipDeviceSynchronize());                                                                   \
        print_launches();                                                                                              \
        print_counts();                                                                                                \
        fflush(stdout);                                                                                                \
    }
#include "../../shim/vendor/hip/driver.def"
#undef DRIVER
    return 0;
}
