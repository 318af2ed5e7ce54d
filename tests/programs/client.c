/* A program that does to the driver what its arguments say, one word each, and prints what every call answered.
 *
 *   ptx=K,K..      load a module; kernels by cuModuleGetFunction       lib=  a library; kernels by cuLibraryGetKernel
 *   enum=K,K..     ...by cuModuleEnumerateFunctions                    enumlib=  ...by cuLibraryEnumerateKernels
 *   again=I,K      ask module I for kernel K once more                 ptxonly=K libonly=K  load one, ask for nothing
 *   function=K     from now on K is its CUfunction                     kernel=I,K  ...that of library I again
 *   unload=I       the I-th module or library                          addresses  was a handle's address used again?
 *   device=N       from now on
 *   stream=P       a stream of priority P (0 is the default stream)    plain  by cuStreamCreate
 *   blocking=P     likewise, one that waits for the legacy stream
 *   launch ex coop launch_ptsz ex_ptsz coop_ptsz extra without = K,blocks,threads,dynamic,stream
 *   attr=ID:V[:V:V],...  attributes of the next ex, at the end of a page with nothing behind it
 *   driver=PATH,K,A[,V]        attribute A of kernel K as the driver tells it, likewise, or set to V
 *   repeat=N       of the next launch
 *   nccl=PATH      a library that launches (ncclk=) and creates streams (nccls) itself
 *   ncclp=P nccli=P,I          it creates a stream of priority P, of green context I
 *   deep=PATH,K    ask for kernel K of the last module behind everybody's back
 *   forks=N        first of all: N children, which do the same as their parent
 *   module=I       module of library I, from now on the last module; its kernels by get_from=K enum_from=K
 *   module_of=K    likewise, the module that its function K is of
 * and the words of do_words.h, client_graph.h, client_query.h, client_process.h.
 */
#define DRIVER_MORE
#include "driver.h"

#include "do_words.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#ifndef RTLD_DEEPBIND /* musl has none */
#define RTLD_DEEPBIND 0
#endif

enum { MOST_FIELDS = 16 };

static struct {
    void *handle;
    int is_library;
} images[MOST];
static void *streams[MOST], *nccl, *seen[MOST];
static int device;
static int image_count, stream_count = 1, seen_count, reused;
static Attribute *attributes;
static uint32_t attribute_count, repeat = 1;
static uint64_t parameter_a;
static char *words[MOST_FIELDS];
static int word_count;

static void add_handle(const char *name, void *handle, int is_kernel) {
    add_kernel(name, handle, is_kernel);
    for (int i = 0; i < seen_count; i++)
        reused += seen[i] == handle;
    seen[seen_count++] = handle;
}

static int load(const char *names, int is_library, int enumerated, int quiet) {
    char *text = ptx_of(names);
    void *image = NULL, *found[MOST];
    int result = is_library ? CU(cuLibraryLoadData)(&image, text, NULL, NULL, 0, NULL, NULL, 0)
                            : CU(cuModuleLoadData)(&image, text);
    free(text);
    images[image_count].handle = image;
    images[image_count++].is_library = is_library;
    if (result)
        return result;
    if (quiet)
        return result;
    if (enumerated)
        result = is_library ? CU(cuLibraryEnumerateKernels)(found, MOST, image)
                            : CU(cuModuleEnumerateFunctions)(found, MOST, image);
    for (int i = 0; i < word_count && result == 0; i++) {
        if (!enumerated)
            result = is_library ? CU(cuLibraryGetKernel)(&found[i], image, words[i])
                                : CU(cuModuleGetFunction)(&found[i], image, words[i]);
        add_handle(words[i], found[i], is_library);
    }
    return result;
}

/* The last module, of one kernel. */
static int enumerate_module(void) {
    void *found = NULL;
    const int result = CU(cuModuleEnumerateFunctions)(&found, 1, images[image_count - 1].handle);
    add_handle(words[0], found, 0);
    return result;
}

/* "8:-3" -> attribute 8 with value -3. They end where the page ends. */
static void set_attributes(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + page, page, PROT_NONE);
    attribute_count = (uint32_t)word_count;
    attributes = (Attribute *)(pages + page) - attribute_count;
    for (int i = 0; i < word_count; i++) {
        char *at = words[i];
        attributes[i].id = (uint32_t)strtol(at, &at, 0);
        for (int k = 0; k < 3 && *at == ':'; k++)
            attributes[i].value.dimension[k] = (uint32_t)strtol(at + 1, &at, 0);
    }
}

static int launch_once(const char *verb) {
    void *function = find_kernel(words[0])->handle;
    unsigned blocks = (unsigned)atol(words[1]), threads = (unsigned)atol(words[2]), shared = (unsigned)atol(words[3]);
    void *stream = streams[word_count > 4 ? atoi(words[4]) : 0];
    struct {
        uint64_t a;
        uint32_t b, pad;
    } packed = {++parameter_a, 7, 0};
    size_t size = 12;
    void *parameters[] = {&packed.a, &packed.b};
    void *extra[] = {(void *)1, &packed, (void *)2, &size, NULL};
    const Config config = {{blocks, 1, 1}, {threads, 1, 1}, shared, 0, stream, attributes, attribute_count, 0};
    if (strcmp(verb, "launch") == 0)
        return CU(cuLaunchKernel)(function, blocks, 1, 1, threads, 1, 1, shared, stream, parameters, NULL);
    if (strcmp(verb, "launch_ptsz") == 0)
        return CU(cuLaunchKernel_ptsz)(function, blocks, 1, 1, threads, 1, 1, shared, stream, parameters, NULL);
    if (strcmp(verb, "extra") == 0)
        return CU(cuLaunchKernel)(function, blocks, 1, 1, threads, 1, 1, shared, stream, NULL, extra);
    if (strcmp(verb, "without") == 0) /* parameters */
        return CU(cuLaunchKernel)(function, blocks, 1, 1, threads, 1, 1, shared, stream, NULL, NULL);
    if (strcmp(verb, "coop") == 0)
        return CU(cuLaunchCooperativeKernel)(function, blocks, 1, 1, threads, 1, 1, shared, stream, parameters);
    if (strcmp(verb, "coop_ptsz") == 0)
        return CU(cuLaunchCooperativeKernel_ptsz)(function, blocks, 1, 1, threads, 1, 1, shared, stream, parameters);
    if (strcmp(verb, "ex") == 0)
        return CU(cuLaunchKernelEx)(&config, function, parameters, NULL);
    if (strcmp(verb, "ex_ptsz") == 0)
        return CU(cuLaunchKernelEx_ptsz)(&config, function, parameters, NULL);
    int (*foreign)(void *, unsigned, unsigned, unsigned, void *, void **) = dlsym(nccl, "test_launch");
    return foreign(function, blocks, threads, shared, stream, parameters);
}

static int is_launch(const char *verb) {
    static const char *const verbs[] = {"launch",    "launch_ptsz", "extra",   "coop", "without",
                                        "coop_ptsz", "ex",          "ex_ptsz", "ncclk"};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verb, verbs[i]) == 0)
            return 1;
    return 0;
}

static int launch(const char *verb) {
    int result = 0;
    for (uint32_t i = 0; i < repeat && result == 0; i++)
        result = launch_once(verb);
    repeat = 1;
    attributes = NULL;
    attribute_count = 0;
    return result;
}

#include "client_graph.h"
#include "client_process.h"
#include "client_query.h"
#include "freeze.h"

static int add_stream(int result) {
    stream_count += result == 0;
    return result;
}

static int run(const char *verb, const char *whole) {
    int result = 0;
    if (is_launch(verb))
        return launch(verb);
    if (strcmp(verb, "enum_from") == 0)
        return enumerate_module();
    if (strcmp(verb, "ptx") == 0 || strcmp(verb, "lib") == 0 || strncmp(verb, "enum", 4) == 0)
        return load(strchr(whole, '=') + 1, strstr(verb, "lib") != NULL, strncmp(verb, "enum", 4) == 0, 0);
    if (strcmp(verb, "ptxonly") == 0 || strcmp(verb, "libonly") == 0)
        return load(strchr(whole, '=') + 1, *verb == 'l', 0, 1);
    if (strcmp(verb, "again") == 0)
        return CU(cuModuleGetFunction)(&find_kernel(words[1])->handle, images[atoi(words[0])].handle, words[1]);
    if (strcmp(verb, "function") == 0) {
        struct kernel *kernel = find_kernel(words[0]);
        void *function = NULL;
        result = CU(cuKernelGetFunction)(&function, kernel->handle);
        add_handle(words[0], function, 0);
        return result;
    }
    if (strcmp(verb, "kernel") == 0) {
        void *kernel = NULL;
        result = CU(cuLibraryGetKernel)(&kernel, images[atoi(words[0])].handle, words[1]);
        add_handle(words[1], kernel, 1);
        return result;
    }
    if (strcmp(verb, "unload") == 0) {
        int index = atoi(words[0]);
        return images[index].is_library ? CU(cuLibraryUnload)(images[index].handle)
                                        : CU(cuModuleUnload)(images[index].handle);
    }
    if (strcmp(verb, "addresses") == 0)
        return reused;
    if (strcmp(verb, "stream") == 0)
        return add_stream(CU(cuStreamCreateWithPriority)(&streams[stream_count], 1, atoi(words[0])));
    if (strcmp(verb, "blocking") == 0)
        return add_stream(CU(cuStreamCreateWithPriority)(&streams[stream_count], 0, atoi(words[0])));
    if (strcmp(verb, "module") == 0)
        return CU(cuLibraryGetModule)(&images[image_count++].handle, images[atoi(words[0])].handle);
    if (strcmp(verb, "module_of") == 0)
        return CU(cuFuncGetModule)(&images[image_count++].handle, find_kernel(words[0])->handle);
    if (strcmp(verb, "get_from") == 0) {
        void *function = NULL;
        result = CU(cuModuleGetFunction)(&function, images[image_count - 1].handle, words[0]);
        add_handle(words[0], function, 0);
        return result;
    }
    if (strcmp(verb, "plain") == 0)
        return add_stream(CU(cuStreamCreate)(&streams[stream_count], 1));
    if (strcmp(verb, "attr") == 0)
        return set_attributes(), 0;
    if (strcmp(verb, "repeat") == 0)
        return repeat = (uint32_t)atol(words[0]), 0;
    if (graph_word(verb, &result) || query_word(verb, &result))
        return result;
    if (strcmp(verb, "nccl") == 0)
        return (nccl = dlopen(words[0], RTLD_NOW | RTLD_LOCAL)) == NULL;
    if (strcmp(verb, "nccls") == 0) {
        int (*make)(void **) = dlsym(nccl, "test_stream");
        return add_stream(make(&streams[stream_count]));
    }
    if (strcmp(verb, "ncclp") == 0 || strcmp(verb, "nccli") == 0) {
        int (*make)(void **, void *, int) = dlsym(nccl, "test_stream_of");
        void *const green = verb[4] == 'i' ? greens[atoi(words[1])] : NULL;
        return add_stream(make(&streams[stream_count], green, atoi(words[0])));
    }
    if (strcmp(verb, "deep") == 0) {
        void *function = NULL, *library = dlopen(words[0], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
        int (*ask)(void **, void *, const char *) = library ? dlsym(library, "test_function") : NULL;
        result = ask ? ask(&function, images[image_count - 1].handle, words[1]) : -1;
        add_handle(words[1], function, 0);
        return result;
    }
    if (strcmp(verb, "driver") == 0) {
        void *library = dlopen(words[0], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
        const int sets = word_count > 3;
        int (*call)(int *, int, void *, int, int) =
            library ? dlsym(library, sets ? "test_set_attribute" : "test_attribute") : NULL;
        const struct kernel *kernel = find_kernel(words[1]);
        int value = sets ? atoi(words[3]) : -1;
        result = call ? call(&value, atoi(words[2]), kernel->handle, kernel->kind, device) : -1;
        if (!sets)
            printf("driver says %d\n", value);
        return result;
    }
    if (strcmp(verb, "device") == 0) {
        void *context = NULL;
        result = CU(cuDevicePrimaryCtxRetain)(&context, device = atoi(words[0]));
        return result ? result : CU(cuCtxSetCurrent)(context);
    }
    if (strcmp(verb, "freeze") == 0)
        return library_frozen(atoi(words[0])), 0;
    if (strcmp(verb, "sync") == 0)
        return CU(cuCtxSynchronize)();
    return surroundings(verb);
}

static void do_word(const char *whole) {
    char copy[4096], *fields;
    snprintf(copy, sizeof copy, "%s", whole);
    fields = strchr(copy, '=');
    if (fields)
        *fields++ = 0;
    word_count = 0;
    for (char *field = fields ? strtok(fields, ",") : NULL; field && word_count < MOST_FIELDS;
         field = strtok(NULL, ","))
        words[word_count++] = field;
    if (strcmp(copy, "print") == 0)
        printf("%s\n", words[0]);
    else
        printf("%s: %d\n", copy, run(copy, whole));
}

static void enter_thread(void) {
    void *context = NULL;
    CU(cuDevicePrimaryCtxRetain)(&context, 0);
    CU(cuCtxSetCurrent)(context);
}

int main(int argc, char **argv) {
    char **words_left = argv + (argc > 0);
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    self = argv[0];
    if (*words_left && strncmp(*words_left, "forks=", 6) == 0)
        for (int left = atoi(*words_left++ + 6); left > 0; left--) {
            pid_t child = fork();
            if (child == 0)
                break;
            wait_and_say(child);
            fflush(stdout);
        }
    while (*words_left && strncmp(*words_left, "before:", 7) == 0)
        do_word(*words_left++ + 7);
    driver_start();
    do_words(words_left);
    return 0;
}
