/* Opens a library past everything preloaded before any constructor has run; so early the C library may not be ready. */
#include <dlfcn.h>
#include <stdio.h>

#ifndef PATH
#define PATH "libm.so.6"
#endif

static int value = -1;

static void preinit(int argc, char **argv, char **environment) {
    (void)argc, (void)argv, (void)environment;
    void *library = dlopen(PATH, RTLD_NOW | RTLD_DEEPBIND);
    int (*function)(void) = library ? (int (*)(void))dlsym(library, "value") : NULL;
    value = function ? function() : -2;
}
__attribute__((section(".preinit_array"), used)) static void (*const entry)(int, char **, char **) = preinit;

int main(void) {
    printf("opened early: %d\n", value);
    return 0;
}
