/* Loads a librccl as a plugin would and asks it what needs no GPU: rccl_load LIBRARY prints its version. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **words) {
    void *const library = count > 1 ? dlopen(words[1], RTLD_NOW) : NULL;
    if (library == NULL) {
        fprintf(stderr, "%s\n", count > 1 ? dlerror() : "rccl_load LIBRARY");
        return 1;
    }
    int (*const version_of)(int *) = (int (*)(int *))dlsym(library, "ncclGetVersion");
    const char *(*const text_of)(int) = (const char *(*)(int))dlsym(library, "ncclGetErrorString");
    int version = 0;
    if (version_of == NULL || text_of == NULL || version_of(&version) != 0)
        return 1;
    printf("%d %s\n", version, text_of(0));
    return 0;
}
