/* A program that uses NVIDIA's driver and AMD's runtime: hip_both CODE (cuda | hip | cuda-comm | hip-comm)... Each word is a
 * launch: of the kernel k, or of communication, on two streams of either. */
#define WAY_LINKED
#include "driver.h"

#include "hip_client.h"

enum { BLOCKS = 400, CUDA_THREADS = 256, HIP_THREADS = 64, COMMUNICATION = 16 };
#define NCCL "ncclDevKernel_Generic_2"

static uint64_t a;
static uint32_t b;
static void *parameters[] = {&a, &b};
static void *cuda[2], *hip[2]; /* k, communication */
static void *cuda_streams[2], *hip_streams[2];

static int start_cuda(void) {
    int bad = 0;
    driver_start();
    cuda[0] = kernel_of("k"), cuda[1] = kernel_of(NCCL);
    for (int i = 0; i < 2; i++)
        bad += CU(cuStreamCreateWithPriority)(&cuda_streams[i], 1, 0);
    return bad;
}

static int start_hip(const char *file) {
    hipModule_t module = NULL;
    int bad = hipModuleLoadData(&module, read_file(file)) + hipModuleGetFunction(&hip[0], module, "k") +
              hipModuleGetFunction(&hip[1], module, NCCL);
    for (int i = 0; i < 2; i++)
        bad += hipStreamCreateWithFlags(&hip_streams[i], 1);
    return bad;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    printf("started: %d %d\n", start_cuda(), start_hip(argv[1]));
    for (int i = 2; i < argc; i++) {
        const int comm = strstr(argv[i], "-comm") != NULL;
        const uint32_t blocks = comm ? COMMUNICATION : BLOCKS;
        printf("%s: %d\n", argv[i],
               argv[i][0] == 'c' ? launch_kernel(cuda[comm], blocks, CUDA_THREADS, cuda_streams[comm])
                                 : hipModuleLaunchKernel(hip[comm], blocks, 1, 1, HIP_THREADS, 1, 1, 0,
                                                         hip_streams[comm], parameters, NULL));
    }
    return 0;
}
