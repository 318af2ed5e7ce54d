// How many blocks of a kernel does the driver say are resident? For many kernels, block sizes and dynamic sizes.
//
//   nvcc -O1 -std=c++17 -arch=sm_90 occupancy.cu -o occupancy -lcuda
//   ./occupancy [SAMPLES]                    a line of CSV for each sample
//   ./occupancy kernels                      what each kernel takes: of number 0, 1, ...
//   ./occupancy ask                          for each line KERNEL THREADS DYNAMIC of stdin: the answer, largest carve-out
//
// compare_occupancy.py compares the answers with the library's own arithmetic, and with what the planner promises.
#include "gpu.h"

#include <cstring>
#include <random>
#include <utility>

// So many values alive at once that the compiler needs about as many registers.
template <int LIVE, int STATIC> __global__ void kernel(float *data, int rounds) {
    extern __shared__ float dynamic[];
    __shared__ char fixed[STATIC ? STATIC : 1];
    float value[LIVE];
#pragma unroll
    for (int i = 0; i < LIVE; i++)
        value[i] = data[threadIdx.x * LIVE + i];
    for (int round = 0; round < rounds; round++)
#pragma unroll
        for (int i = 0; i < LIVE; i++)
            value[i] = value[i] * value[(i + 7) % LIVE] + value[(i + 3) % LIVE];
    if (STATIC)
        fixed[threadIdx.x % (STATIC ? STATIC : 1)] = (char)rounds;
    dynamic[threadIdx.x] = value[0];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < LIVE; i++)
        data[threadIdx.x * LIVE + i] = value[i] + dynamic[i] + (STATIC ? fixed[i % (STATIC ? STATIC : 1)] : 0);
}

typedef void (*Kernel)(float *, int);
static std::vector<Kernel> kernels;

template <int STATIC, int... LIVE> static void add(std::integer_sequence<int, LIVE...>) {
    (kernels.push_back(kernel<2 + 10 * LIVE, STATIC>), ...);
}

static CUresult resident(Kernel kernel, int threads, int dynamic, int *blocks) {
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, (const void *)kernel));
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, (size_t)dynamic);
}

static void list(const cudaDeviceProp &device) {
    printf("registers,static,maximum_threads,maximum_dynamic\n");
    for (Kernel kernel : kernels) {
        cudaFuncAttributes attributes;
        CHECK(cudaFuncGetAttributes(&attributes, kernel));
        printf("%d,%zu,%d,%d\n", attributes.numRegs, attributes.sharedSizeBytes, attributes.maxThreadsPerBlock,
               (int)(device.sharedMemPerBlockOptin - attributes.sharedSizeBytes));
    }
}

static void ask(const cudaDeviceProp &device) {
    int number, threads, dynamic;
    for (Kernel kernel : kernels) {
        cudaFuncAttributes attributes;
        CHECK(cudaFuncGetAttributes(&attributes, kernel));
        int optin = (int)(device.sharedMemPerBlockOptin - attributes.sharedSizeBytes);
        CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, optin));
        CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    }
    while (scanf("%d %d %d", &number, &threads, &dynamic) == 3) {
        int blocks = -1;
        CUresult result = resident(kernels[(size_t)number], threads, dynamic, &blocks);
        printf("%d\n", result == CUDA_SUCCESS ? blocks : -(int)result);
    }
}

int main(int argc, char **argv) {
    int samples = argc > 1 ? atoi(argv[1]) : 1500;
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    add<0>(std::make_integer_sequence<int, 22>());
    add<1000>(std::make_integer_sequence<int, 22>());
    add<17000>(std::make_integer_sequence<int, 22>());
    add<48000>(std::make_integer_sequence<int, 22>());
    if (argc > 1 && !strcmp(argv[1], "kernels"))
        return list(device), 0;
    if (argc > 1 && !strcmp(argv[1], "ask"))
        return ask(device), 0;
    std::mt19937 random(20090);
    printf("carveout,registers,static,maximum_threads,threads,dynamic,blocks\n");
    for (Kernel kernel : kernels)
        for (int carveout : {-1, 100, 25}) {
            cudaFuncAttributes attributes;
            CHECK(cudaFuncGetAttributes(&attributes, kernel));
            int optin = (int)(device.sharedMemPerBlockOptin - attributes.sharedSizeBytes);
            CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, optin));
            CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, carveout));
            for (int i = 0; i < (carveout == -1 ? samples : samples / 4); i++) {
                int threads = 1 + (int)(random() % 1024), dynamic = (int)(random() % (unsigned)(optin + 1)),
                    blocks = -1;
                if (i % 3 == 1)
                    threads = (threads + 31) / 32 * 32;
                if (i % 2) // around the sizes at which one block less fits
                    dynamic = (int)(device.sharedMemPerMultiprocessor / (1 + random() % 32)) - 1024 -
                              (int)attributes.sharedSizeBytes + (int)(random() % 384) - 192;
                if (threads > attributes.maxThreadsPerBlock || dynamic < 0 || dynamic > optin)
                    continue;
                CUresult result = resident(kernel, threads, dynamic, &blocks);
                printf("%d,%d,%zu,%d,%d,%d,%d\n", carveout, attributes.numRegs, attributes.sharedSizeBytes,
                       attributes.maxThreadsPerBlock, threads, dynamic, result == CUDA_SUCCESS ? blocks : -(int)result);
            }
        }
    return 0;
}
