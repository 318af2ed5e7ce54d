/* Copies, fills and whatever else goes to a stream, for hip_entry_recipes.h: a line for each line of HIP's copy.def, with the
 * arguments of the call. `at` is the stream. */
#pragma once

enum { FROM = 1024, TO_DEVICE = 1, TO_HOST = 2, INSIDE = 3 };
#define HERE (area + FROM)
static unsigned char sent[AREA], got[AREA];
static void *lent; /* memory of a stream */
static int called;

static void count_call(void *data) {
    called += data == &called;
}
static void count_callback(hipStream_t on, hipError_t status, void *data) {
    called += on != NULL && status == VENDOR_SUCCESS && data == &called;
}
static void *lend(void) {
    hipError_t result = hipMallocAsync(&lent, 256, stream);
    printf("lent %d ", result);
    return lent;
}
static unsigned checksum(const unsigned char *bytes, size_t count) {
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++)
        sum = sum * 31 + bytes[i];
    return sum;
}
static void set_memory(void) {
    for (size_t i = 0; i < AREA; i++)
        sent[i] = (unsigned char)(i * 7 + 1), got[i] = 0;
    hipMemcpyAsync(HERE, sent + 512, AREA - FROM, TO_DEVICE, stream);
    hipStreamSynchronize(stream);
    called = 0;
}
/* What is where in the end. */
static void print_memory(void) {
    static unsigned char there[AREA];
    printf("over: %d\n", hipDeviceSynchronize());
    printf("host %u, ", checksum(got, AREA));
    hipError_t result = hipMemcpy(there, area, AREA, TO_HOST);
    printf("device %d %u, called %d\n", result, checksum(there, AREA), called);
}

/* On the default stream; and on another. The device's orders `beside`, which is blocking, behind the communication. */
#define ON_STREAM(name, ...)                                                                                           \
    static void recipe_##name(type_##name *call) {                                                                     \
        make_streams(0, 0);                                                                                            \
        set_memory();                                                                                                  \
        communicate_on(carrier);                                                                                       \
        look();                                                                                                        \
        hipStream_t at = NULL;                                                                                         \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
        look();                                                                                                        \
        at = stream;                                                                                                   \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
        print_memory();                                                                                                \
    }
/* The host waits for a default stream: the device's, and with it for all that are blocking; or the thread's, which then is what
 * communicates. */
#define BY_HOST_OF(name, communicates, ...)                                                                            \
    static void recipe_##name(type_##name *call) {                                                                     \
        make_streams(0, 1);                                                                                            \
        set_memory();                                                                                                  \
        communicate_on(communicates);                                                                                  \
        look();                                                                                                        \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
        look();                                                                                                        \
        print_memory();                                                                                                \
    }
#define BY_HOST(name, ...) BY_HOST_OF(name, carrier, __VA_ARGS__)
#define BY_HOST_SPT(name, ...) BY_HOST_OF(name##_spt, (hipStream_t)PER_THREAD, __VA_ARGS__)
#define BOTH_BY_HOST(name, ...) BY_HOST(name, __VA_ARGS__) BY_HOST_SPT(name, __VA_ARGS__)
#define BOTH_ON_STREAM(name, ...) ON_STREAM(name, __VA_ARGS__) ON_STREAM(name##_spt, __VA_ARGS__)

BOTH_BY_HOST(hipMemcpy, area, HERE, 100, INSIDE)
BOTH_BY_HOST(hipMemcpy2D, area, 96, HERE, 64, 48, 5, INSIDE)
BOTH_BY_HOST(hipMemcpy2DFromArray, got, 64, NULL, 0, 0, 16, 1, TO_HOST)
BOTH_BY_HOST(hipMemcpy2DToArray, NULL, 0, 0, sent, 64, 16, 1, TO_DEVICE)
BOTH_BY_HOST(hipMemcpy3D, NULL)
BOTH_BY_HOST(hipMemcpyFromArray, got, NULL, 0, 0, 16, TO_HOST)
BOTH_BY_HOST(hipMemcpyFromSymbol, got, variable, 32, 16, TO_HOST)
BOTH_BY_HOST(hipMemcpyToSymbol, variable, sent, 32, 16, TO_DEVICE)
BOTH_BY_HOST(hipMemset, area, 0x12, 100)
BOTH_BY_HOST(hipMemset2D, area, 96, 0x12, 10, 5)
BOTH_BY_HOST(hipMemset3D, (hipPitchedPtr){area, 64, 64, 4}, 0x12, (hipExtent){10, 2, 1})
BY_HOST(hipDrvMemcpy2DUnaligned, NULL)
BY_HOST(hipDrvMemcpy3D, NULL)
BY_HOST(hipMemcpy2DArrayToArray, NULL, 0, 0, NULL, 0, 0, 16, 1, INSIDE)
BY_HOST(hipMemcpy3DPeer, NULL)
BY_HOST(hipMemcpyAtoA, NULL, 0, NULL, 0, 16)
BY_HOST(hipMemcpyAtoD, area, NULL, 0, 16)
BY_HOST(hipMemcpyAtoH, got, NULL, 0, 16)
BY_HOST(hipMemcpyDtoA, NULL, 0, area, 16)
BY_HOST(hipMemcpyDtoD, area, HERE, 100)
BY_HOST(hipMemcpyDtoH, got, HERE, 100)
BY_HOST(hipMemcpyHtoA, NULL, 0, sent, 16)
BY_HOST(hipMemcpyHtoD, area, sent, 100)
BY_HOST(hipMemcpyParam2D, NULL)
BY_HOST(hipMemcpyPeer, area, 0, HERE, 0, 100)
BY_HOST(hipMemcpyToArray, NULL, 0, 0, sent, 16, TO_DEVICE)
BY_HOST(hipMemcpyWithStream, got, HERE, 100, TO_HOST, carrier)
BY_HOST(hipMemsetD16, area, 0x1234, 100)
BY_HOST(hipMemsetD2D16, area, 96, 0x1234, 10, 5)
BY_HOST(hipMemsetD2D32, area, 96, 0x12345678, 10, 5)
BY_HOST(hipMemsetD2D8, area, 96, 0x12, 10, 5)
BY_HOST(hipMemsetD32, area, 0x12345678, 100)
BY_HOST(hipMemsetD8, area, 0x12, 100)

BOTH_ON_STREAM(hipLaunchHostFunc, at, (void *)count_call, &called)
BOTH_ON_STREAM(hipMemcpy2DAsync, area, 96, HERE, 64, 48, 5, INSIDE, at)
BOTH_ON_STREAM(hipMemcpy2DFromArrayAsync, got, 64, NULL, 0, 0, 16, 1, TO_HOST, at)
BOTH_ON_STREAM(hipMemcpy2DToArrayAsync, NULL, 0, 0, sent, 64, 16, 1, TO_DEVICE, at)
BOTH_ON_STREAM(hipMemcpy3DAsync, NULL, at)
BOTH_ON_STREAM(hipMemcpyAsync, area, HERE, 100, INSIDE, at)
BOTH_ON_STREAM(hipMemcpyFromSymbolAsync, got, variable, 32, 16, TO_HOST, at)
BOTH_ON_STREAM(hipMemcpyToSymbolAsync, variable, sent, 32, 16, TO_DEVICE, at)
BOTH_ON_STREAM(hipMemset2DAsync, area, 96, 0x12, 10, 5, at)
BOTH_ON_STREAM(hipMemset3DAsync, (hipPitchedPtr){area, 64, 64, 4}, 0x12, (hipExtent){10, 2, 1}, at)
BOTH_ON_STREAM(hipMemsetAsync, area, 0x12, 100, at)
BOTH_ON_STREAM(hipStreamAddCallback, at, (void *)count_callback, &called, 0)
ON_STREAM(hipDrvMemcpy3DAsync, NULL, at)
ON_STREAM(hipFreeAsync, lend(), at)
ON_STREAM(hipGraphicsMapResources, 0, NULL, at)
ON_STREAM(hipGraphicsUnmapResources, 0, NULL, at)
ON_STREAM(hipMallocAsync, &lent, 256, at)
ON_STREAM(hipMallocFromPoolAsync, &lent, 256, NULL, at)
ON_STREAM(hipMemMapArrayAsync, NULL, 0, at)
ON_STREAM(hipMemPrefetchAsync, area, 64, 0, at)
ON_STREAM(hipMemPrefetchAsync_v2, area, 64, 1, 0, at)
ON_STREAM(hipMemcpy3DBatchAsync, 0, NULL, NULL, 0, at)
ON_STREAM(hipMemcpy3DPeerAsync, NULL, at)
ON_STREAM(hipMemcpyAtoHAsync, got, NULL, 0, 16, at)
ON_STREAM(hipMemcpyBatchAsync, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, at)
ON_STREAM(hipMemcpyDtoDAsync, area, HERE, 100, at)
ON_STREAM(hipMemcpyDtoHAsync, got, HERE, 100, at)
ON_STREAM(hipMemcpyHtoAAsync, NULL, 0, sent, 16, at)
ON_STREAM(hipMemcpyHtoDAsync, area, sent, 100, at)
ON_STREAM(hipMemcpyParam2DAsync, NULL, at)
ON_STREAM(hipMemcpyPeerAsync, area, 0, HERE, 0, 100, at)
ON_STREAM(hipMemsetD16Async, area, 0x1234, 100, at)
ON_STREAM(hipMemsetD2D16Async, area, 96, 0x1234, 10, 5, at)
ON_STREAM(hipMemsetD2D32Async, area, 96, 0x12345678, 10, 5, at)
ON_STREAM(hipMemsetD2D8Async, area, 96, 0x12, 10, 5, at)
ON_STREAM(hipMemsetD32Async, area, 0x12345678, 100, at)
ON_STREAM(hipMemsetD8Async, area, 0x12, 100, at)
ON_STREAM(hipSignalExternalSemaphoresAsync, NULL, NULL, 0, at)
ON_STREAM(hipStreamAttachMemAsync, at, area, 0, 4)
ON_STREAM(hipStreamWriteValue32, at, area, 7, 0)
ON_STREAM(hipStreamWriteValue64, at, area, 9, 0)
