/* A library bound to the driver directly: it asks behind everybody's back. */
#define WAY_LINKED
#include "driver.h"

int test_init(void), test_stream(void **stream);
int test_function(void **function, void *module, const char *name);
int test_attribute(int *value, int attribute, void *handle, int is_kernel, int device);
int test_set_attribute(const int *value, int attribute, void *handle, int is_kernel, int device);

int test_function(void **function, void *module, const char *name) {
    return cuModuleGetFunction(function, module, name);
}

int test_attribute(int *value, int attribute, void *handle, int is_kernel, int device) {
    return is_kernel ? cuKernelGetAttribute(value, attribute, handle, device)
                     : cuFuncGetAttribute(value, attribute, handle);
}

int test_set_attribute(const int *value, int attribute, void *handle, int is_kernel, int device) {
    return is_kernel ? cuKernelSetAttribute(attribute, *value, handle, device)
                     : cuFuncSetAttribute(handle, attribute, *value);
}

/* It initialises the driver, whatever is preloaded. */
int test_init(void) {
    return cuInit(0);
}

int test_stream(void **stream) {
    return cuStreamCreate(stream, 1);
}
