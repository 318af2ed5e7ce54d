/* Opened with RTLD_DEEPBIND: its dlsym is the C library's own, so it finds the driver's own functions. */
#include <dlfcn.h>

void *raw_symbol(const char *name);

void *raw_symbol(const char *name) {
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name);
}
