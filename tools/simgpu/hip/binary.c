/* What hipcc's code registers before main: fat binaries, and host addresses that stand for kernels and variables.
 *
 * Nothing is loaded until a kernel or a variable is used on a device, as in the real runtime.
 */
#include <pthread.h>
#include <stdlib.h>

#include "hip.h"

enum { BUCKETS = 1024, WRAPPER_MAGIC = 0x48495046 };

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

struct symbol {
    const void *host;
    const char *name; /* the program's own, like host */
    struct binary *binary;
    size_t bytes; /* of a variable; 0: a kernel */
    CUfunction functions[MAX_DEVICES];
    struct symbol *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct symbol *symbols[BUCKETS];
static struct binary *binaries;

static struct symbol **bucket_of(const void *host) {
    return &symbols[((uintptr_t)host >> 4) % BUCKETS];
}

static struct symbol *find(const void *host, bool variable) {
    struct symbol *symbol = *bucket_of(host);
    while (symbol != NULL && (symbol->host != host || (symbol->bytes > 0) != variable))
        symbol = symbol->next;
    return symbol;
}

static void add(void **binary, const void *host, const char *name, size_t bytes) {
    if (binary == NULL)
        return; /* a launch of it will say that there is no such function */
    struct symbol *const symbol = sim_new(1, sizeof *symbol);
    *symbol = (struct symbol){.host = host, .name = name, .binary = (struct binary *)(void *)binary, .bytes = bytes};
    pthread_mutex_lock(&lock);
    struct symbol **const bucket = bucket_of(host);
    symbol->next = *bucket;
    *bucket = symbol;
    pthread_mutex_unlock(&lock);
}

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
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct symbol **at = &symbols[i]; *at != NULL;) {
            struct symbol *const symbol = *at;
            if (symbol->binary != binary) {
                at = &symbol->next;
                continue;
            }
            *at = symbol->next;
            free(symbol);
        }
    for (struct binary **at = &binaries; *at != NULL; at = &(*at)->next)
        if (*at == binary) {
            *at = binary->next;
            break;
        }
    for (int device = 0; device < MAX_DEVICES; device++)
        if (binary->modules[device] != NULL)
            cuModuleUnload(binary->modules[device]);
    pthread_mutex_unlock(&lock);
    free(binary);
}

void hip___hipRegisterFunction(void **binary, const void *host, char *device, const char *name, unsigned int limit,
                               void *thread, void *block, dim3 *block_size, dim3 *grid_size, int *wave) {
    (void)device, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)wave;
    add(binary, host, name, 0);
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
    struct symbol *const symbol = find(host, false);
    if (symbol == NULL)
        result = hipErrorInvalidDeviceFunction;
    else if (symbol->functions[device] == NULL) {
        result = on_device(symbol->binary, device);
        if (result == hipSuccess)
            result = cuModuleGetFunction(&symbol->functions[device], symbol->binary->modules[device], symbol->name);
        result = result == hipErrorNotFound ? hipErrorInvalidDeviceFunction : result;
    }
    *function = result == hipSuccess ? symbol->functions[device] : NULL;
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
            symbol->functions[device] = NULL;
    pthread_mutex_unlock(&lock);
}

hipError_t hip_hipGetFuncBySymbol(hipFunction_t *function, const void *symbol) {
    if (function == NULL)
        return hipErrorInvalidDeviceFunction;
    return hip_function(symbol, hip_device_of(NULL), function);
}
