// What does communication that is there first cost a grid of one wave? 132 blocks that take a whole multiprocessor each, and
// 0 to 32 resident blocks of communication, which hold one each.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 quantisation.cu -o quantisation && ./quantisation [REPETITIONS]
//
// The grid has 132 x 20 tiles of 10 us. Ways: `own share`: block i of n does the tiles i, i + n, ...; `queue`: a block takes the
// next tile that nobody has; `fewer blocks`: own shares of 132 - c blocks. Communication lasts for 2 ms, or for 100 us. One
// JSON line a run; held: multiprocessors with communication, late: blocks that started 50 us or more behind the first.
#include "blocks.h"

static const int TILES = 20, MOST = 32;
static const Nanoseconds TILE_NS = 10000;
static const char *const WAYS[] = {"own share", "queue", "fewer blocks"};
static const double COMMUNICATION_US[] = {2000, 100};

__global__ void tiles(Mark *marks, int count, unsigned *queue) {
    if (threadIdx.x == 0) {
        Nanoseconds start = gpu_clock();
        int tile = queue ? (int)atomicAdd(queue, 1) : (int)blockIdx.x;
        while (tile < count) {
            Nanoseconds begun = gpu_clock();
            while (gpu_clock() - begun < TILE_NS)
                __nanosleep(100);
            tile = queue ? (int)atomicAdd(queue, 1) : tile + (int)gridDim.x;
        }
        marks[blockIdx.x] = {start, gpu_clock(), multiprocessor(), 0};
    }
    __syncthreads();
}

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? atoi(argv[1]) : 5;
    cudaDeviceProp device;
    cudaStream_t computing, communicating;
    Mark *marks, *others;
    float *numbers;
    unsigned *queue;
    CHECK(cudaGetDeviceProperties(&device, 0));
    int sms = device.multiProcessorCount;
    CHECK(cudaStreamCreateWithFlags(&computing, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&communicating, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&marks, sizeof(Mark) * (size_t)sms));
    CHECK(cudaMalloc(&others, sizeof(Mark) * MOST));
    CHECK(cudaMalloc(&numbers, 4096));
    CHECK(cudaMemset(numbers, 0, 4096));
    CHECK(cudaMalloc(&queue, sizeof *queue));
    allow(tiles, 100);
    allow(hold_registers<96>, 100);
    describe_machine("quantisation");
    for (int repetition = 0; repetition < repetitions; repetition++)
        for (double duration : COMMUNICATION_US)
            for (const char *way : WAYS)
                for (int c = 0; c <= MOST; c++) {
                    int blocks = !strcmp(way, "fewer blocks") ? sms - c : sms, held = 0, late = 0;
                    CHECK(cudaMemset(queue, 0, sizeof *queue));
                    CHECK(cudaDeviceSynchronize());
                    if (c)
                        launch({communicating, c, 640, 119040, 1}, hold_registers<96>, others,
                               (Nanoseconds)(duration * 1e3), (volatile float *)numbers);
                    wait_us(30);
                    launch({computing, blocks, 384, device.sharedMemPerBlockOptin, 1}, tiles, marks, sms * TILES,
                           !strcmp(way, "queue") ? queue : (unsigned *)nullptr);
                    CHECK(cudaDeviceSynchronize());
                    std::vector<Mark> lows = read_marks(marks, blocks);
                    Span span = span_of(lows);
                    if (c)
                        for (auto &list : by_multiprocessor(read_marks(others, c), sms))
                            held += !list.empty();
                    for (const Mark &mark : lows)
                        late += (double)mark.start > span.first + 50e3;
                    printf("{\"way\":\"%s\",\"communication_us\":%.0f,\"c\":%d,\"repetition\":%d,\"held\":%d,"
                           "\"late\":%d,\"grid_us\":%.1f}\n",
                           way, duration, c, repetition, held, late, (span.end - span.first) / 1e3);
                }
    return 0;
}
