/* What hipcc's code registers before main: fat binaries, and host addresses that stand for kernels.
 *
 * Nothing is loaded until a kernel is used on a device, as in the real runtime.
 */
#include "../symbols.h"
#include "hip.h"

enum { WRAPPER_MAGIC = 0x48495046 };

/* What __hipRegisterFatBinary gets. */
struct wrapper {
    unsigned int magic, version;
    const void *data;
    void *unused;
};

struct binary {
    const void *image;
    CUmodule modules[MAX_DEVICES];
    hipError_t failed[MAX_DEVICES]; /* why it could not be loaded: that stays so, and is said once */
    struct binary *next;
};

static struct binary *binaries;

void **hip___hipRegisterFatBinary(const void *data) {
    const struct wrapper *const given = data;
    if (given->magic != WRAPPER_MAGIC || given->version != 1)
        return NULL;
    struct binary *const binary = sim_new(1, sizeof *binary);
    binary->image = given->data;
    pthread_mutex_lock(&lock);
    binary->next = binaries;
    binaries = binary;
    pthread_mutex_unlock(&lock);
    return (void **)(void *)binary;
}

void hip___hipUnregisterFatBinary(void **handle) {
    struct binary *const binary = (struct binary *)(void *)handle;
    if (binary == NULL)
        return;
    pthread_mutex_lock(&lock);
    forget_symbols(binary);
    SIM_UNLINK(binaries, binary);
    for (int device = 0; device < MAX_DEVICES; device++)
        if (binary->modules[device] != NULL)
            cuModuleUnload(binary->modules[device]);
    pthread_mutex_unlock(&lock);
    free(binary);
}

void hip___hipRegisterFunction(void **binary, const void *host, char *device, const char *name, unsigned int limit,
                               void *thread, void *block, dim3 *block_size, dim3 *grid_size, int *wave) {
    (void)device, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)wave;
    add(binary, host, name);
}

/* With the context of the device current. */
static hipError_t load(struct binary *binary, int device) {
    if (binary->modules[device] == NULL && binary->failed[device] == hipSuccess)
        binary->failed[device] = cuModuleLoadData(&binary->modules[device], binary->image);
    return binary->failed[device];
}

static hipError_t on_device(struct binary *binary, int device) {
    CUcontext context;
    hipError_t result = hip_context_of(device, &context);
    if (result == hipSuccess && binary->modules[device] == NULL) {
        result = cuCtxPushCurrent(context);
        if (result == hipSuccess) {
            result = load(binary, device);
            cuCtxPopCurrent(&context);
        }
    }
    return result;
}

hipError_t hip_function(const void *host, int device, hipFunction_t *function) {
    hipError_t result = hip_ready();
    if (result != hipSuccess)
        return result;
    pthread_mutex_lock(&lock);
    struct symbol *const symbol = find(host);
    if (symbol == NULL)
        result = hipErrorInvalidDeviceFunction;
    else if (symbol->found[device] == NULL) {
        result = on_device(symbol->binary, device);
        if (result == hipSuccess)
            result = cuModuleGetFunction((CUfunction *)(void *)&symbol->found[device], symbol->binary->modules[device],
                                         symbol->name);
        result = result == hipErrorNotFound ? hipErrorInvalidDeviceFunction : result;
    }
    *function = result == hipSuccess ? symbol->found[device] : NULL;
    pthread_mutex_unlock(&lock);
    return result;
}

/* After its context is gone, with all that was in it. */
void hip_forget_device(int device) {
    pthread_mutex_lock(&lock);
    for (struct binary *binary = binaries; binary != NULL; binary = binary->next) {
        binary->modules[device] = NULL;
        binary->failed[device] = hipSuccess;
    }
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct symbol *symbol = symbols[i]; symbol != NULL; symbol = symbol->next)
            symbol->found[device] = NULL;
    pthread_mutex_unlock(&lock);
}

hipError_t hip_hipGetFuncBySymbol(hipFunction_t *function, const void *symbol) {
    if (function == NULL)
        return hipErrorInvalidDeviceFunction;
    return hip_function(symbol, hip_device_of(NULL), function);
}
