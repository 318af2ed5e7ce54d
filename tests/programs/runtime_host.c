/* Launches and creates streams by the names of NVIDIA's runtime, and by the driver's, as its arguments say:
 *
 *   ptx=K,K..              a library of the runtime's with these kernels
 *   by=PATH by=main        who calls from now on: a library (runtime_caller.c), or the program itself
 *   launch=NAME,K,blocks[,dynamic[,stream]]   256 threads; K: - is no kernel
 *   symbol=K,blocks dlsym=K,blocks            by the driver's cuLaunchKernel, bound or asked for
 *   repeat=N               of the next launch
 *   create=NAME[,priority] a stream; of=I  its priority, by the runtime
 *   where=NAME             the file that has the function which the program is bound to
 *   threads=N,COUNT,K      each launches so often, by each of the runtime's launches in turn and then by the driver's
 *
 * -DBARE: a runtime that has only the rows; no driver is linked and kernels are what nobody looks at.
 */
#ifndef BARE
#define WAY_LINKED
#include "driver.h"
extern int cudaLibraryLoadData(void **, const void *, int *, void **, unsigned, int *, void **, unsigned);
extern int cudaLibraryGetKernel(void **, void *, const char *), cudaStreamGetPriority(void *, int *);
extern int cudaDeviceSynchronize(void);
#endif
#include "runtime_caller.c"

#include <pthread.h>

enum { MOST = 64, THREADS = 256 };

static struct {
    char name[64];
    void *handle;
} kernels[MOST];
static int kernel_count, stream_count = 1, repeat = 1;
static void *streams[MOST];
static void *(*caller)(const char *) = runtime_caller;
static char *words[8];
static int word_count;

static int number(int index) {
    return index < word_count ? atoi(words[index]) : 0;
}

static void *find_kernel(const char *name) {
    for (int i = 0; i < kernel_count; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return kernels[i].handle;
    return NULL;
}

static int launch(const char *row, void *kernel, unsigned blocks, size_t dynamic, void *stream) {
    uint64_t a = 1;
    uint32_t b = 2;
    void *parameters[] = {&a, &b}, *call = caller(row);
    const struct { /* cudaLaunchConfig_t */
        dim3 grid, block;
        size_t dynamic;
        void *stream, *attributes;
        unsigned count;
    } config = {{blocks, 1, 1}, {THREADS, 1, 1}, dynamic, stream, NULL, 0};
    if (!call)
        return -2;
    if (strstr(row, "ExC"))
        return ((LaunchEx *)call)(&config, kernel, parameters);
    return ((Launch *)call)(kernel, config.grid, config.block, parameters, dynamic, stream);
}

static int create(const char *row, void **stream, int priority) {
    void *call = caller(row);
    if (!call)
        return -2;
    if (strcmp(row, "cudaStreamCreate") == 0)
        return ((Create *)call)(stream);
    if (strcmp(row, "cudaStreamCreateWithFlags") == 0)
        return ((CreateFlags *)call)(stream, 1);
    return ((CreatePriority *)call)(stream, 1, priority);
}

static const char *file_of(const char *row) {
    void *found = NULL;
    Dl_info info;
#define EACH_ROW(name, ...)                                                                                            \
    if (strcmp(row, #name) == 0)                                                                                       \
        found = (void *)name;
#include "../../shim/cuda/runtime.def"
#undef EACH_ROW
    const char *path = found && dladdr(found, &info) ? info.dli_fname : "/nobody";
    return strrchr(path, '/') + 1;
}

#ifndef BARE
static int by_driver(int asked, void *kernel, unsigned blocks) {
    static int(*found) LAUNCH_ARGUMENTS;
    uint64_t a = 1;
    uint32_t b = 2;
    void *parameters[] = {&a, &b};
    if (asked && !found)
        found = (int(*) LAUNCH_ARGUMENTS)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel");
    return (asked ? found : cuLaunchKernel)(kernel, blocks, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL);
}

static int load(const char *names) {
    char *text = ptx_of(names);
    void *library = NULL;
    int result = cudaLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0);
    free(text);
    for (int i = 0; i < word_count && result == 0; i++) {
        snprintf(kernels[kernel_count].name, sizeof kernels->name, "%s", words[i]);
        result = cudaLibraryGetKernel(&kernels[kernel_count++].handle, library, words[i]);
    }
    return result;
}

static struct {
    int count;
    void *kernel;
} task;

/* Half of the threads begin with the driver's. */
static void *thread(void *index) {
    static const char *const rows[] = {"cudaLaunchKernel", "__cudaLaunchKernel", "cudaLaunchKernelExC",
                                       "cudaLaunchKernel_ptsz"};
    intptr_t bad = 0, first = (intptr_t)index & 1;
    if (first)
        bad += launch("cudaLaunchKernel", NULL, 1, 0, NULL) == 0; /* which fails, and makes the context current */
    for (int i = 0; i < task.count; i++) {
        bad += first && by_driver(0, task.kernel, 10) != 0;
        bad += launch(rows[i % 4], task.kernel, 10, 0, NULL) != 0;
        bad += !first && by_driver(0, task.kernel, 10) != 0;
    }
    return (void *)bad;
}

static int threads(int count) {
    pthread_t made[MOST];
    intptr_t bad = 0;
    for (intptr_t i = 0; i < count; i++)
        pthread_create(&made[i], NULL, thread, (void *)i);
    for (int i = 0; i < count; i++) {
        void *result;
        pthread_join(made[i], &result);
        bad += (intptr_t)result;
    }
    return (int)bad;
}
#endif

static int run(const char *verb, const char *rest) {
    int result = 0;
    if (strcmp(verb, "by") == 0) {
        void *library = strcmp(rest, "main") == 0 ? NULL : dlopen(rest, RTLD_NOW | RTLD_LOCAL);
        caller = library ? (void *(*)(const char *))dlsym(library, "runtime_caller") : runtime_caller;
        if (!library && strcmp(rest, "main") != 0)
            printf("%s\n", dlerror());
    } else if (strcmp(verb, "launch") == 0) {
        for (; repeat > 0; repeat--)
            result |=
                launch(words[0], find_kernel(words[1]), (unsigned)number(2), (size_t)number(3), streams[number(4)]);
        repeat = 1;
    } else if (strcmp(verb, "repeat") == 0) {
        repeat = number(0);
    } else if (strcmp(verb, "create") == 0) {
        result = create(words[0], &streams[stream_count++], number(1));
    } else if (strcmp(verb, "where") == 0) {
        printf("%s is in %s\n", words[0], file_of(words[0]));
#ifndef BARE
    } else if (strcmp(verb, "ptx") == 0) {
        result = load(rest);
    } else if (strcmp(verb, "symbol") == 0 || strcmp(verb, "dlsym") == 0) {
        for (; repeat > 0; repeat--)
            result |= by_driver(*verb == 'd', find_kernel(words[0]), (unsigned)number(1));
        repeat = 1;
    } else if (strcmp(verb, "of") == 0) {
        int priority = 99;
        result = cudaStreamGetPriority(streams[number(0)], &priority);
        printf("priority %d\n", priority);
    } else if (strcmp(verb, "threads") == 0) {
        task.count = number(1);
        task.kernel = find_kernel(words[2]);
        result = threads(number(0));
    } else if (strcmp(verb, "sync") == 0) {
        result = cudaDeviceSynchronize();
#endif
    } else {
        exit(5);
    }
    return result;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char copy[4096], whole[4096], *fields;
        snprintf(copy, sizeof copy, "%s", argv[i]);
        if ((fields = strchr(copy, '=')))
            *fields++ = 0;
        snprintf(whole, sizeof whole, "%s", fields ? fields : "");
        word_count = 0;
        for (char *field = fields ? strtok(fields, ",") : NULL; field && word_count < 8; field = strtok(NULL, ","))
            words[word_count++] = field;
        printf("%s: %d\n", copy, run(copy, whole));
    }
    return 0;
}
