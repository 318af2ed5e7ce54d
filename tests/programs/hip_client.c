/* A program that does to a HIP runtime what its arguments say, one word each, and prints what every call answered.
 *
 *   code=FILE function=K  a module, and its kernel K by hipModuleGetFunction
 *   fat=FILE host=K       a fat binary of the program, and a function of the program that stands for its kernel K
 *   alias=K               from now on K is what hipGetFuncBySymbol makes of it       first=K  ...what it was at first
 *   nobody=K none=K       K is a function of the program that is no kernel, or NULL    wild=K  a handle of nothing
 *   launch ext items coop graph = K,blocks,threads,dynamic,stream    repeat=N  of the next launch
 *   ask=K,threads,dynamic occupancy                   available=K,blocks,threads
 *   unload                the last module             unregister  the last fat binary
 *   stream=P              with a priority (0: the default stream)    plain flags=F   without    priority=S flagsof=S
 *   begin=S end=S         a capture of stream S
 *   record=S wait=S       an event behind stream S; stream S waits for the last event    done=S destroy=S
 *   stops=K,blocks,stream a launch that records an event behind its kernel
 *   device=N count sync reset   library=PATH  calls liblaunch=, libstream=F, libpriority=P of that
 *   and the words of do_words.h
 *   default=NAME          what dlsym(RTLD_DEFAULT) answers
 * Built with -Dmain=plugin_main it is a library (plugin_host.c).
 */
#include "hip_client.h"

#include "do_words.h"
#include "freeze.h"

enum { FIELDS = 8 };
#if VERSION == 5
#define ITEMS_LAUNCH                                                                                                   \
    HIP(_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j)
#else
#define ITEMS_LAUNCH HIP(hipExtModuleLaunchKernel)
#endif

static hipStream_t streams[MOST];
static int stream_count = 1, repeat = 1;
static hipModule_t module;
static hipEvent_t event;
static void **binary, *other;
static uint64_t a;
static uint32_t b;
static void *parameters[] = {&a, &b};
static long fields[FIELDS];
static char first[256];

static void register_host(const char *name) {
    static char hosts[MOST][16];
    static int count;
    HIP(__hipRegisterFunction)(binary, hosts[count], strdup(name), strdup(name), 0, NULL, NULL, NULL, NULL, NULL);
    add_kernel(name, hosts[count++], true);
}

static hipError_t launch(const char *how, const struct kernel *kernel, uint32_t blocks, uint32_t threads,
                         uint32_t dynamic, hipStream_t stream) {
    const dim3 grid = {blocks, 1, 1}, block = {threads, 1, 1};
    void *function = kernel->handle;
    if (kernel->kind && strcmp(how, "coop") == 0)
        return HIP(hipLaunchCooperativeKernel)(function, grid, block, parameters, dynamic, stream);
    if (kernel->kind && strcmp(how, "ext") == 0)
        return HIP(hipExtLaunchKernel)(function, grid, block, parameters, dynamic, stream, NULL, NULL, 0);
    if (kernel->kind)
        return HIP(hipLaunchKernel)(function, grid, block, parameters, dynamic, stream);
    if (strcmp(how, "items") == 0)
        return ITEMS_LAUNCH(function, blocks * threads, 1, 1, threads, 1, 1, dynamic, stream, parameters, NULL, NULL,
                            NULL, 0);
    return HIP(hipModuleLaunchKernel)(function, blocks, 1, 1, threads, 1, 1, dynamic, stream, parameters, NULL);
}

/* Captured, and run once. */
static hipError_t launch_by_graph(const struct kernel *kernel, uint32_t blocks, uint32_t threads, uint32_t dynamic,
                                  hipStream_t stream) {
    hipGraph_t graph = NULL;
    hipGraphExec_t exec = NULL;
    hipError_t result = HIP(hipStreamBeginCapture)(stream, 0);
    if (!result)
        result = launch("launch", kernel, blocks, threads, dynamic, stream);
    if (!result)
        result = HIP(hipStreamEndCapture)(stream, &graph);
    if (!result)
        result = HIP(hipGraphInstantiate)(&exec, graph, NULL, NULL, 0);
    return result ? result : HIP(hipGraphLaunch)(exec, stream);
}

static void launch_words(const char *how) {
    const struct kernel *kernel = find_kernel(first);
    const uint32_t blocks = (uint32_t)fields[0], threads = (uint32_t)fields[1], dynamic = (uint32_t)fields[2];
    const bool graph = strcmp(how, "graph") == 0;
    for (; repeat > 0; repeat--)
        printf("%s %s: %d\n", how, first,
               graph ? launch_by_graph(kernel, blocks, threads, dynamic, streams[fields[3]])
                     : launch(how, kernel, blocks, threads, dynamic, streams[fields[3]]));
    repeat = 1;
}

static void library_words(const char *word) {
    typedef int of_function(void *function, unsigned blocks, unsigned dynamic, void *stream);
    typedef void *of_number(int number);
    void *call = dlsym(other, word);
    if (strcmp(word, "liblaunch") == 0)
        printf("%s: %d\n", word,
               ((of_function *)call)(find_kernel(first)->handle, (unsigned)fields[0], (unsigned)fields[2],
                                     streams[fields[3]]));
    else
        streams[stream_count++] = ((of_number *)call)(atoi(first));
}

static hipError_t make_stream(const char *word, char *value) {
    hipStream_t *made = &streams[stream_count++];
    if (strcmp(word, "stream") == 0)
        return HIP(hipStreamCreateWithPriority)(made, 1, atoi(value));
    if (strcmp(word, "plain") == 0)
        return HIP(hipStreamCreate)(made);
    return HIP(hipStreamCreateWithFlags)(made, (uint32_t)atoi(value));
}

static hipError_t about_streams(const char *word, char *value, bool *known) {
    int number = -9;
    hipError_t result;
    if (strcmp(word, "priority") == 0) {
        result = HIP(hipStreamGetPriority)(streams[atoi(value)], &number);
        printf("priority %d\n", number);
    } else if (strcmp(word, "flagsof") == 0) {
        unsigned flags = 9;
        result = HIP(hipStreamGetFlags)(streams[atoi(value)], &flags);
        printf("flags %u\n", flags);
    } else if (strcmp(word, "begin") == 0)
        result = HIP(hipStreamBeginCapture)(streams[atoi(value)], 0);
    else if (strcmp(word, "end") == 0) {
        hipGraph_t graph = NULL;
        result = HIP(hipStreamEndCapture)(streams[atoi(value)], &graph);
    } else if (strcmp(word, "record") == 0) {
        result = HIP(hipEventCreateWithFlags)(&event, 2);
        result = result ? result : HIP(hipEventRecord)(event, streams[atoi(value)]);
    } else if (strcmp(word, "done") == 0)
        result = HIP(hipStreamSynchronize)(streams[atoi(value)]);
    else if (strcmp(word, "destroy") == 0)
        result = HIP(hipStreamDestroy)(streams[atoi(value)]);
    else if (strcmp(word, "wait") == 0)
        result = HIP(hipStreamWaitEvent)(streams[atoi(value)], event, 0);
    else if (strcmp(word, "stops") == 0) {
        result = HIP(hipEventCreateWithFlags)(&event, 2);
        result = result ? result
                        : HIP(hipExtLaunchKernel)(find_kernel(first)->handle, (dim3){(uint32_t)fields[0], 1, 1},
                                                  (dim3){256, 1, 1}, parameters, 0, streams[fields[1]], NULL, event, 0);
    } else if (strcmp(word, "stream") == 0 || strcmp(word, "plain") == 0 || strcmp(word, "flags") == 0)
        result = make_stream(word, value);
    else
        return *known = false, 0;
    return result;
}

static hipError_t about_kernels(const char *word, char *value, bool *known) {
    hipError_t result = 0;
    hipFunction_t function = NULL;
    int blocks = -1;
    size_t bytes = 0;
    if (strcmp(word, "code") == 0)
        result = HIP(hipModuleLoadData)(&module, read_file(value));
    else if (strcmp(word, "function") == 0) {
        result = HIP(hipModuleGetFunction)(&function, module, value);
        add_kernel(value, function, false);
    } else if (strcmp(word, "fat") == 0)
        result = (binary = register_file(value)) == NULL;
    else if (strcmp(word, "host") == 0)
        register_host(value);
    else if (strcmp(word, "nobody") == 0 || strcmp(word, "none") == 0)
        add_kernel(value, word[2] == 'b' ? (void *)(uintptr_t)read_file : NULL, true);
    else if (strcmp(word, "wild") == 0)
        add_kernel(value, (void *)0x12340, false);
    else if (strcmp(word, "first") == 0) {
        for (int i = kernel_count - 1; i >= 0; i--)
            if (strcmp(kernels[i].name, value) == 0)
                kernels[kernel_count] = kernels[i];
        kernel_count++;
    }
#if VERSION >= 7
    else if (strcmp(word, "alias") == 0) {
        result = HIP(hipGetFuncBySymbol)(&function, find_kernel(value)->handle);
        add_kernel(value, function, false);
    } else if (strcmp(word, "available") == 0) {
        result = HIP(hipOccupancyAvailableDynamicSMemPerBlock)(&bytes, find_kernel(first)->handle, (int)fields[0],
                                                               (int)fields[1]);
        printf("available %zu\n", bytes);
    }
#endif
    else if (strcmp(word, "ask") == 0) {
        const struct kernel *kernel = find_kernel(first);
        result = kernel->kind ? HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, kernel->handle,
                                                                                  (int)fields[0], (size_t)fields[1])
                              : HIP(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)(
                                    &blocks, kernel->handle, (int)fields[0], (size_t)fields[1]);
        printf("blocks %d\n", blocks);
    } else if (strcmp(word, "unload") == 0)
        result = HIP(hipModuleUnload)(module);
    else if (strcmp(word, "unregister") == 0)
        HIP(__hipUnregisterFatBinary)(binary);
    else
        *known = false;
    (void)bytes;
    return result;
}

static void do_word(const char *whole) {
    const char *const value = strchr(whole, '=');
    static char text[4096];
    char word[32], *at;
    bool known = true;
    hipError_t result;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(whole, "="), whole);
    snprintf(text, sizeof text, "%s", value ? value + 1 : "");
    memset(fields, 0, sizeof fields);
    snprintf(first, sizeof first, "%.*s", (int)strcspn(text, ","), text);
    at = strchr(text, ',');
    for (int i = 0; at && i < FIELDS; i++, at = strchr(at, ','))
        fields[i] = strtol(at + 1, &at, 0);
    if (strcmp(word, "repeat") == 0)
        repeat = atoi(text);
    else if (strstr("launch ext items coop graph", word))
        launch_words(word);
    else if (strncmp(word, "lib", 3) == 0 && other)
        library_words(word);
    else if (strcmp(word, "library") == 0)
        printf("library: %d\n", !(other = dlopen(text, RTLD_NOW | RTLD_LOCAL)));
    else if (strcmp(word, "default") == 0)
        printf("%s: %s\n", text, dlsym(RTLD_DEFAULT, text) ? "found" : "none");
    else if (strcmp(word, "device") == 0)
        printf("device: %d\n", HIP(hipSetDevice)(atoi(text)));
    else if (strcmp(word, "freeze") == 0)
        library_frozen(atoi(text));
    else if (strcmp(word, "sync") == 0)
        printf("sync: %d\n", HIP(hipDeviceSynchronize)());
    else if (strcmp(word, "reset") == 0)
        printf("reset: %d\n", HIP(hipDeviceReset)());
    else if (strcmp(word, "count") == 0) {
        int count = -1;
        printf("count: %d", HIP(hipGetDeviceCount)(&count));
        printf(" %d\n", count);
    } else {
        result = about_kernels(word, text, &known);
        if (!known) {
            known = true;
            result = about_streams(word, text, &known);
        }
        printf("%s: %d\n", known ? word : "what?", known ? result : 9);
    }
}

static void enter_thread(void) {}

int main(int argc, char **argv) {
    self = argv[0];
    do_words(argv + (argc > 0));
    return 0;
}
