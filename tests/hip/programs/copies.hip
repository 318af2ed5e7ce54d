// Moves bytes by every way that HIP has and compares with what the host would do; prints the ways that differ, then their number.
#include <hip/hip_runtime.h>
#include <stdio.h>
#include <string.h>

#include <vector>

enum { SIZE = 1 << 20 };

static std::vector<unsigned char> expected(SIZE), got(SIZE);
static unsigned char *device, *other;
static int wrong;

static void check(const char *way, hipError_t result) {
    if (result == hipSuccess)
        result = hipDeviceSynchronize();
    hipError_t back = hipMemcpy(got.data(), device, SIZE, hipMemcpyDeviceToHost);
    if (result == hipSuccess && back == hipSuccess && got == expected)
        return;
    size_t at = 0;
    while (at < SIZE && got[at] == expected[at])
        at++;
    printf("%s: %d, %d, first difference at %zu\n", way, (int)result, (int)back, at);
    wrong++;
    hipMemcpy(device, expected.data(), SIZE, hipMemcpyHostToDevice);
}

static void inside(size_t to, size_t from, size_t size) {
    char way[80];
    snprintf(way, sizeof way, "device to device, %zu bytes from %zu to %zu", size, from, to);
    hipMemcpy(other, expected.data(), SIZE, hipMemcpyHostToDevice);
    memcpy(&expected[to], std::vector<unsigned char>(&expected[from], &expected[from] + size).data(), size);
    check(way, hipMemcpy(device + to, other + from, size, hipMemcpyDeviceToDevice));
}

static void fill(size_t to, int value, size_t size) {
    char way[80];
    snprintf(way, sizeof way, "memset, %zu bytes at %zu", size, to);
    memset(&expected[to], value, size);
    check(way, hipMemset(device + to, value, size));
}

static void plane(size_t pitch, size_t width, size_t rows, hipMemcpyKind kind) {
    char way[80];
    snprintf(way, sizeof way, "2D, kind %d, %zu x %zu of %zu", (int)kind, width, rows, pitch);
    std::vector<unsigned char> source(width * rows);
    for (size_t i = 0; i < source.size(); i++)
        source[i] = (unsigned char)(i * 31);
    hipMemcpy(other, source.data(), source.size(), hipMemcpyHostToDevice);
    for (size_t y = 0; y < rows; y++)
        memcpy(&expected[1024 + y * pitch], &source[y * width], width);
    const void *from = kind == hipMemcpyHostToDevice ? (const void *)source.data() : other;
    check(way, hipMemcpy2D(device + 1024, pitch, from, width, width, rows, kind));
}

int main() {
    int devices = 0;
    hipGetDeviceCount(&devices);
    if (hipMalloc((void **)&device, SIZE) != hipSuccess || hipMalloc((void **)&other, SIZE) != hipSuccess)
        return 1;
    for (size_t i = 0; i < SIZE; i++)
        expected[i] = (unsigned char)(i ^ i >> 8);
    check("host to device", hipMemcpy(device, expected.data(), SIZE, hipMemcpyHostToDevice));
    inside(0, 4096, 65536);
    inside(0, 0, SIZE);
    inside(4096, 8192, SIZE / 2);
    inside(16, 64, 1000);
    inside(3, 100, 777);
    inside(4, 8, 12);
    inside(1, 0, 1);
    fill(0, 0x5a, 4096);
    fill(5, 0x77, 333);
    fill(4096, 0, 16);
    plane(512, 128, 64, hipMemcpyHostToDevice);
    plane(512, 128, 64, hipMemcpyDeviceToDevice);
    plane(1024, 512, 256, hipMemcpyDeviceToDevice);
    plane(512, 132, 64, hipMemcpyDeviceToDevice);
    plane(333, 77, 31, hipMemcpyHostToDevice);
    plane(333, 77, 31, hipMemcpyDeviceToDevice);
    for (size_t i = 0; i < 1000; i++)
        memcpy(&expected[8192 + 4 * i], "\1\2\3\4", 4);
    check("words", hipMemsetD32(device + 8192, 0x04030201, 1000));
    hipStream_t stream;
    hipStreamCreate(&stream);
    void *pinned;
    hipHostMalloc(&pinned, 8192, 0);
    memset(pinned, 9, 8192);
    memset(&expected[100], 9, 8192);
    check("pinned", hipMemcpyAsync(device + 100, pinned, 8192, hipMemcpyHostToDevice, stream));
    for (size_t y = 0; y < 20; y++)
        memset(&expected[y * 1000 + 12], 0x33, 400);
    check("memset, 2D", hipMemset2D(device + 12, 1000, 0x33, 400, 20));
    hipError_t result = hipSuccess; // more copies than a queue has room for at a time
    for (size_t i = 0; i < 10000 && result == hipSuccess; i++) {
        ((unsigned char *)pinned)[i % 8192] = expected[i] = (unsigned char)(i * 7);
        result = hipMemcpyAsync(device + i, (unsigned char *)pinned + i % 8192, 1, hipMemcpyHostToDevice, stream);
        if (i % 4096 == 4095)
            hipStreamSynchronize(stream);
    }
    check("many", result);
    if (devices > 1) {
        unsigned char *peer;
        hipSetDevice(1);
        hipMalloc((void **)&peer, SIZE);
        hipMemset(peer, 0x42, SIZE);
        hipDeviceSynchronize();
        hipSetDevice(0);
        memset(&expected[512], 0x42, 2048);
        check("from another device", hipMemcpyPeer(device + 512, 0, peer, 1, 2048));
    }
    printf("wrong: %d, devices: %d\n", wrong, devices);
    return wrong != 0;
}
