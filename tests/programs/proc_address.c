/* Questions to cuGetProcAddress_v2, with and without a place for the status, and for functions that nobody should stand in
 * front of. NAME...: prints the answer, whether the status was written, whether there is a function, and whether it is
 * the driver's own. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int (*Find)(const char *, void **, int, uint64_t, int *);
enum { UNTOUCHED = -77 };

static const char *file_of(void *function) {
    Dl_info info;
    const char *slash = function && dladdr(function, &info) ? strrchr(info.dli_fname, '/') : NULL;
    return slash ? slash + 1 : "none";
}

int main(int argc, char **argv) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    Find find = (Find)dlsym(library, "cuGetProcAddress_v2");
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    printf("init %d\n", init(0));
    for (int i = 1; i < argc; i++) {
        for (int with = 0; with < 2; with++) {
            int status = UNTOUCHED;
            void *function = NULL;
            int result = find(argv[i], &function, 13000, 0, with ? &status : NULL);
            printf("%s: %d %d %d %s\n", argv[i], result, with ? status : 0, function != NULL, file_of(function));
        }
    }
    return 0;
}
