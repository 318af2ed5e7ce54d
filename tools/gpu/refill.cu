// How long does a freed place stay empty, and how far apart do blocks end? A long grid alone, bound by several things.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 refill.cu -o refill && ./refill [REPETITIONS]
//
// A gap: from the i-th end on a multiprocessor to the i-th start behind those of the first wave, of all blocks of the grid but
// those of its last two waves. The GPU's clock ticks every 32 ns, so a histogram loses nothing. One JSON line a run:
// gaps_ns and durations_us ({value: count}), and ends_us: between two ends on one multiprocessor, likewise.
#include "blocks.h"

#include <map>

static const int WAVES = 12;

struct Low {
    const char *name;
    int k, block_us, spread; // of blocks that just take their time
};
static const Low LOWS[] = {
    {"hold", 1, 20, 0},  {"hold", 4, 20, 0},   {"hold", 16, 20, 0}, {"hold", 1, 200, 1},      {"hold", 4, 200, 1},
    {"hold", 8, 200, 1}, {"hold", 16, 200, 1}, {"hold", 16, 20, 1}, {"arithmetic", 16, 0, 0}, {"copy", 16, 0, 0},
};

typedef std::map<long, int> Counts;

static void print(const char *name, const Counts &counts) {
    printf(",\"%s\":{", name);
    for (auto entry = counts.begin(); entry != counts.end(); ++entry)
        printf("%s\"%ld\":%d", entry == counts.begin() ? "" : ",", entry->first, entry->second);
    printf("}");
}

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? atoi(argv[1]) : 5;
    cudaDeviceProp device;
    cudaStream_t stream;
    Mark *marks;
    float4 *source, *target;
    CHECK(cudaGetDeviceProperties(&device, 0));
    int sms = device.multiProcessorCount;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&marks, sizeof(Mark) * (size_t)(sms * 16 * WAVES)));
    CHECK(cudaMalloc(&source, WORDS * sizeof *source + (1 << 20)));
    CHECK(cudaMalloc(&target, WORDS * sizeof *target + (1 << 20)));
    CHECK(cudaMemset(source, 0, WORDS * sizeof *source));
    allow(spin, 100);
    describe_machine("refill");
    for (int repetition = 0; repetition < repetitions; repetition++)
        for (const Low &low : LOWS) {
            int blocks = sms * low.k * WAVES;
            size_t k = (size_t)low.k, bytes = std::min((device.sharedMemPerMultiprocessor / k - 1024) / 128 * 128,
                                                       device.sharedMemPerBlockOptin);
            if (!strcmp(low.name, "hold"))
                launch({stream, blocks, 128, bytes, 1}, spin, marks, (Nanoseconds)low.block_us * 1000, low.spread);
            else if (!strcmp(low.name, "copy"))
                launch({stream, blocks, 128, 0, 1}, copy, marks, (const float4 *)source, target, 64);
            else
                launch({stream, blocks, 128, 0, 1}, arithmetic, marks, (float *)target, 3000);
            CHECK(cudaDeviceSynchronize());
            Counts gaps, durations, between;
            size_t most = 0;
            for (const auto &list : by_multiprocessor(read_marks(marks, blocks), sms)) {
                std::vector<Nanoseconds> ends;
                for (const Mark &mark : list) {
                    ends.push_back(mark.end);
                    durations[(long)((mark.end - mark.start + 500) / 1000)]++;
                }
                std::sort(ends.begin(), ends.end());
                for (size_t i = 0; i + 2 * k < ends.size() && i + k < list.size(); i++) {
                    gaps[(long)list[i + k].start - (long)ends[i]]++;
                    between[(long)((ends[i + 1] - ends[i] + 500) / 1000)]++;
                }
                most = std::max(most, list.size());
            }
            printf("{\"low\":\"%s\",\"k\":%d,\"block_us\":%d,\"spread\":%d,\"repetition\":%d,\"blocks\":%d,"
                   "\"most_on_one\":%zu",
                   low.name, low.k, low.block_us, low.spread, repetition, blocks, most);
            print("gaps_ns", gaps);
            print("durations_us", durations);
            print("ends_us", between);
            printf("}\n");
        }
    return 0;
}
