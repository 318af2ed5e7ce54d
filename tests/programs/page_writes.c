/* Which calls write to the statistics page: page_writes LIBRARY. Opens a GPU by the library, makes the page read-only, and
 * opens the GPU again: a call that writes to the page ends the process by SIGSEGV. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void *library;

#define CALL(name, types) ((int(*) types)dlsym(library, name))

static int open_hip(void) {
    void *memory;
    return CALL("hipSetDevice", (int))(0) || CALL("hipMalloc", (void **, size_t))(&memory, 64);
}

static int open_cuda(void) {
    void *primary, *context;
    return CALL("cuInit", (unsigned))(0) || CALL("cuDevicePrimaryCtxRetain", (void **, int))(&primary, 0) ||
           CALL("cuCtxCreate_v2", (void **, unsigned, int))(&context, 0, 0);
}

/* How many mappings of pages there are. */
static int protect(int protection) {
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (strstr(line, ".page") && sscanf(line, "%lx-%lx", &start, &end) == 2)
            found += mprotect((void *)start, end - start, protection) == 0;
    }
    if (maps)
        fclose(maps);
    return found;
}

int main(int argc, char **argv) {
    library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library)
        return 2;
    int (*const opens)(void) = strstr(argv[1], "hip") ? open_hip : open_cuda;
    if (opens())
        return 3;
    printf("pages: %d\n", protect(PROT_READ));
    fflush(stdout);
    printf("again: %d\n", opens());
    protect(PROT_READ | PROT_WRITE);
    return 0;
}
