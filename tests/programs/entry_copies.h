/* Copies, fills and whatever else goes to a stream, for entry_recipes.h: a line for each line of copy.def, with the
 * arguments of the call. `at` is the stream. */
#pragma once

typedef struct {
    size_t from_x, from_y;
    int from_kind;
    const void *from_host;
    uint64_t from_device;
    void *from_array;
    size_t from_pitch, to_x, to_y;
    int to_kind;
    void *to_host;
    uint64_t to_device;
    void *to_array;
    size_t to_pitch, width, height;
} Copy2D;

enum { FROM = 1024, HOST_MEMORY = 1, DEVICE_MEMORY = 2 };
static unsigned char sent[AREA], got[AREA];
static uint64_t lent; /* memory of a stream */
static int called;

static void count_call(void *data) {
    called += data == &called;
}
static void count_callback(CUstream on, CUresult status, void *data) {
    called += on != NULL && status == CUDA_SUCCESS && data == &called;
}
static Copy2D *rows_of(int kind) {
    static Copy2D rows;
    rows = (Copy2D){.from_kind = kind,
                    .from_host = sent,
                    .from_device = area + FROM,
                    .from_pitch = 64,
                    .to_kind = DEVICE_MEMORY,
                    .to_device = area,
                    .to_pitch = 96,
                    .width = 48,
                    .height = 5};
    return &rows;
}
static uint64_t lend(void) {
    CUresult result = cuMemAllocAsync(&lent, 256, stream);
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
    RAW(cuMemcpyHtoD_v2)(area + FROM, sent + 512, AREA - FROM);
    called = 0;
}
/* What is where in the end. */
static void print_memory(void) {
    static unsigned char there[AREA];
    printf("over: %d\n", cuCtxSynchronize());
    printf("host %u, ", checksum(got, AREA));
    CUresult result = RAW(cuMemcpyDtoH_v2)(there, area, AREA);
    printf("device %d %u, called %d\n", result, checksum(there, AREA), called);
}

/* On the default stream; and on another. Legacy, it orders `beside`, which is blocking, behind the communication. */
#define ON_STREAM_ONE(name, ...)                                                                                       \
    static void recipe_##name(type_##name *call) {                                                                     \
        make_streams(0, 0);                                                                                            \
        set_memory();                                                                                                  \
        communicate_on(carrier);                                                                                       \
        look();                                                                                                        \
        CUstream at = NULL;                                                                                            \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
        look();                                                                                                        \
        at = stream;                                                                                                   \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
        print_memory();                                                                                                \
    }
/* The host waits for the thread's default stream, which is what communicates; legacy, for all that are blocking. */
#define BY_HOST_ONE(name, ...)                                                                                         \
    static void recipe_##name(type_##name *call) {                                                                     \
        make_streams(1, 1);                                                                                            \
        set_memory();                                                                                                  \
        communicate_on((CUstream)CU_STREAM_PER_THREAD);                                                                \
        look();                                                                                                        \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
        look();                                                                                                        \
        print_memory();                                                                                                \
    }
#define ON_STREAM(name, ...) ON_STREAM_ONE(name, __VA_ARGS__) ON_STREAM_ONE(name##_ptsz, __VA_ARGS__)
#define BY_HOST(name, ...) BY_HOST_ONE(name, __VA_ARGS__) BY_HOST_ONE(name##_ptds, __VA_ARGS__)

BY_HOST(cuMemcpy, area, area + FROM, 100)
BY_HOST(cuMemcpy2DUnaligned_v2, rows_of(HOST_MEMORY))
BY_HOST(cuMemcpy2D_v2, rows_of(DEVICE_MEMORY))
BY_HOST(cuMemcpy3DPeer, NULL)
BY_HOST(cuMemcpy3D_v2, NULL)
BY_HOST(cuMemcpyAtoA_v2, NULL, 0, NULL, 0, 16)
BY_HOST(cuMemcpyAtoD_v2, area, NULL, 0, 16)
BY_HOST(cuMemcpyAtoH_v2, got, NULL, 0, 16)
BY_HOST(cuMemcpyDtoA_v2, NULL, 0, area, 16)
BY_HOST(cuMemcpyDtoD_v2, area, area + FROM, 100)
BY_HOST(cuMemcpyDtoH_v2, got, area + FROM, 100)
BY_HOST(cuMemcpyHtoA_v2, NULL, 0, sent, 16)
BY_HOST(cuMemcpyHtoD_v2, area, sent, 100)
BY_HOST(cuMemcpyPeer, area, primary, area + FROM, primary, 100)
BY_HOST(cuMemsetD16_v2, area, 0x1234, 100)
BY_HOST(cuMemsetD2D16_v2, area, 96, 0x1234, 10, 5)
BY_HOST(cuMemsetD2D32_v2, area, 96, 0x12345678, 10, 5)
BY_HOST(cuMemsetD2D8_v2, area, 96, 0x12, 10, 5)
BY_HOST(cuMemsetD32_v2, area, 0x12345678, 100)
BY_HOST(cuMemsetD8_v2, area, 0x12, 100)

ON_STREAM(cuLaunchHostFunc, at, (void *)count_call, &called)
ON_STREAM(cuMemAllocAsync, &lent, 256, at)
ON_STREAM(cuMemAllocFromPoolAsync, &lent, 256, NULL, at)
ON_STREAM(cuMemDiscardAndPrefetchBatchAsync, &area, &(size_t){64}, 1, &(uint64_t){1}, &(size_t){0}, 1, 0, at)
ON_STREAM(cuMemDiscardBatchAsync, &area, &(size_t){64}, 1, 0, at)
ON_STREAM(cuMemFreeAsync, lend(), at)
ON_STREAM(cuGraphicsMapResources, 0, NULL, at)
ON_STREAM(cuGraphicsUnmapResources, 0, NULL, at)
ON_STREAM(cuMemBatchDecompressAsync, NULL, 0, 0, NULL, at)
ON_STREAM(cuMemMapArrayAsync, NULL, 0, at)
ON_STREAM(cuMemPrefetchAsync, area, 64, 0, at)
ON_STREAM(cuMemPrefetchAsync_v2, area, 64, 1, 0, at)
ON_STREAM(cuMemPrefetchBatchAsync, &area, &(size_t){64}, 1, &(uint64_t){1}, &(size_t){0}, 1, 0, at)
ON_STREAM(cuMemcpy2DAsync_v2, rows_of(HOST_MEMORY), at)
ON_STREAM(cuMemcpy3DAsync_v2, NULL, at)
ON_STREAM(cuMemcpy3DBatchAsync, 0, NULL, NULL, 0, at)
ON_STREAM(cuMemcpy3DBatchAsync_v2, 0, NULL, 0, at)
ON_STREAM(cuMemcpy3DPeerAsync, NULL, at)
ON_STREAM(cuMemcpyAsync, area, area + FROM, 100, at)
ON_STREAM(cuMemcpyAtoHAsync_v2, got, NULL, 0, 16, at)
ON_STREAM(cuMemcpyBatchAsync, &area, &(uint64_t){area + FROM}, &(size_t){64}, 1, NULL, NULL, 0, NULL, at)
ON_STREAM(cuMemcpyBatchAsync_v2, &area, &(uint64_t){area + FROM}, &(size_t){64}, 1, NULL, NULL, 0, at)
ON_STREAM(cuMemcpyDtoDAsync_v2, area, area + FROM, 100, at)
ON_STREAM(cuMemcpyDtoHAsync_v2, got, area + FROM, 100, at)
ON_STREAM(cuMemcpyHtoAAsync_v2, NULL, 0, sent, 16, at)
ON_STREAM(cuMemcpyHtoDAsync_v2, area, sent, 100, at)
ON_STREAM(cuMemcpyPeerAsync, area, primary, area + FROM, primary, 100, at)
ON_STREAM(cuMemsetD16Async, area, 0x1234, 100, at)
ON_STREAM(cuMemsetD2D16Async, area, 96, 0x1234, 10, 5, at)
ON_STREAM(cuMemsetD2D32Async, area, 96, 0x12345678, 10, 5, at)
ON_STREAM(cuMemsetD2D8Async, area, 96, 0x12, 10, 5, at)
ON_STREAM(cuMemsetD32Async, area, 0x12345678, 100, at)
ON_STREAM(cuMemsetD8Async, area, 0x12, 100, at)
ON_STREAM(cuSignalExternalSemaphoresAsync, NULL, NULL, 0, at)
ON_STREAM(cuStreamAddCallback, at, (void *)count_callback, &called, 0)
ON_STREAM(cuStreamAttachMemAsync, at, area, 0, 4)
ON_STREAM(cuStreamWriteValue32, at, area, 7, 0)
ON_STREAM(cuStreamWriteValue32_v2, at, area, 8, 0)
ON_STREAM(cuStreamWriteValue64, at, area, 9, 0)
ON_STREAM(cuStreamWriteValue64_v2, at, area, 10, 0)
