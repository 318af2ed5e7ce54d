/* Writes down every cuGetProcAddress request of a CUDA runtime, and what it is answered.
 *
 *   asked LIBRARY FUNCTION   opens the library and calls a function of it that needs the driver
 *   asked --replay FILE      asks what is in the file, a line each: name version flags
 *   asked                    (-DLINKED) calls cudaGetDeviceCount of the runtime that is linked into this program
 *
 * The runtime's dlsym is this program's, which comes before everybody's: it gives the real answer for cuGetProcAddress_v2
 * to a function that writes, and does the same with what a request for cuGetProcAddress itself is answered. ASKED_LOG says
 * where to: lines of "symbol NAME" for dlsym, and "WAY NAME VERSION FLAGS RESULT STATUS FILE OFFSET" for the others, where
 * WAY is what was asked: dlsym's answer, or the form with four or with five arguments.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__
#define FIRST_NODE "GLIBC_2.2.5"
#else
#define FIRST_NODE "GLIBC_2.17"
#endif

typedef int get_v1(const char *symbol, void **function, int version, uint64_t flags);
typedef int get_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);
typedef void *find_symbol(void *handle, const char *name);

static FILE *out;
/* What dlsym found, and what requests for cuGetProcAddress itself were answered. */
static get_v2 *found_by_dlsym, *five_arguments;
static get_v1 *four_arguments;

static int asked_first(const char *symbol, void **function, int version, uint64_t flags, int *status);
static int asked_four(const char *symbol, void **function, int version, uint64_t flags);
static int asked_five(const char *symbol, void **function, int version, uint64_t flags, int *status);

static const char *place(void *address, size_t *offset) {
    Dl_info info;
    *offset = 0;
    if (!address || !dladdr(address, &info))
        return "-";
    *offset = (size_t)((char *)address - (char *)info.dli_fbase);
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

/* Writes, and keeps for itself what would lead past it. */
static int answered(const char *way, const char *symbol, void **function, int version, uint64_t flags, int *status,
                    int result) {
    size_t offset;
    const char *file = place(function ? *function : NULL, &offset);
    fprintf(out, "%s %s %d %d %d %d %s %zx\n", way, symbol[0] ? symbol : "-", version, (int)flags, result,
            status ? *status : -1, file, offset);
    if (result || strcmp(symbol, "cuGetProcAddress") != 0)
        return result;
    if (version < 12000) {
        memcpy(&four_arguments, function, sizeof *function);
        *function = (void *)asked_four;
    } else {
        memcpy(&five_arguments, function, sizeof *function);
        *function = (void *)asked_five;
    }
    return result;
}

static int asked_first(const char *symbol, void **function, int version, uint64_t flags, int *status) {
    int result = found_by_dlsym(symbol, function, version, flags, status);
    return answered("dlsym", symbol, function, version, flags, status, result);
}

static int asked_four(const char *symbol, void **function, int version, uint64_t flags) {
    int result = four_arguments(symbol, function, version, flags);
    return answered("four", symbol, function, version, flags, NULL, result);
}

static int asked_five(const char *symbol, void **function, int version, uint64_t flags, int *status) {
    int result = five_arguments(symbol, function, version, flags, status);
    return answered("five", symbol, function, version, flags, status, result);
}

void *dlsym(void *handle, const char *name) {
    static find_symbol *next;
    if (!next)
        next = (find_symbol *)dlvsym(RTLD_NEXT, "dlsym", FIRST_NODE);
    void *found = next(handle, name);
    if (out && strncmp(name, "cu", 2) == 0 && name[2] != 'd')
        fprintf(out, "symbol %s\n", name);
    if (!found || strcmp(name, "cuGetProcAddress_v2") != 0)
        return found;
    found_by_dlsym = (get_v2 *)found;
    return (void *)asked_first;
}

static int replay(const char *path) {
    char name[256];
    int version, flags, status;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *function;
    FILE *file = fopen(path, "r");
    if (!driver || !file || !dlsym(driver, "cuGetProcAddress_v2"))
        return 2;
    while (fscanf(file, "%255s %d %d", name, &version, &flags) == 3) {
        function = NULL;
        asked_first(strcmp(name, "-") == 0 ? "" : name, &function, version, (uint64_t)flags, &status);
    }
    fclose(file);
    return 0;
}

#ifdef LINKED
int cudaGetDeviceCount(int *count);
static int call(char **words) {
    int count = 0;
    (void)words;
    printf("%d\n", cudaGetDeviceCount(&count));
    return 0;
}
#else
/* Any function that is content with a place to write to, 1, and nothing. */
static int call(char **words) {
    void *room[16] = {NULL};
    void *library = dlopen(words[1], RTLD_NOW);
    int (*function)(void *, int, void *) = library ? (int (*)(void *, int, void *))dlsym(library, words[2]) : NULL;
    if (!function) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    printf("%d\n", function(room, 1, NULL));
    return 0;
}
#endif

int main(int count, char **words) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW); /* kept: a runtime that gives up closes it */
    out = fopen(getenv("ASKED_LOG"), "w");
    if (!driver || !out)
        return 2;
    int status = count == 3 && strcmp(words[1], "--replay") == 0 ? replay(words[2]) : call(words);
    /* Both forms, whether the runtime has called what it was answered or not. */
    void *function = NULL;
    int ignored = -1;
    if (four_arguments)
        asked_four("cuLaunchKernel", &function, 4000, 0);
    if (five_arguments)
        asked_five("cuLaunchKernel", &function, 7000, 2, &ignored);
    fclose(out);
    return status;
}
