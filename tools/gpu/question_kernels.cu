// The kernels that driver_questions.cu loads: nvcc -cubin -arch=sm_90 question_kernels.cu -o question_kernels.cubin
extern "C" __global__ void empty() {}
extern "C" __global__ void lazy_one() {}
extern "C" __global__ void lazy_two() {}
extern "C" __global__ void lazy_three() {}
extern "C" __global__ void lazy_four() {}
extern "C" __global__ void ncclDevKernel_empty() {}

extern "C" __global__ void touch(int *out) {
    extern __shared__ int memory[];
    memory[threadIdx.x] = (int)threadIdx.x;
    __syncthreads();
    if (out && threadIdx.x == 0)
        *out = memory[blockDim.x - 1];
}

extern "C" __global__ void fixed_20k(int *out) {
    __shared__ int memory[5120];
    extern __shared__ int more[];
    memory[threadIdx.x] = more[0] = (int)threadIdx.x;
    __syncthreads();
    if (out && threadIdx.x == 0)
        *out = memory[blockDim.x - 1] + more[0];
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) pairs(int *out) {
    extern __shared__ int memory[];
    memory[threadIdx.x] = (int)threadIdx.x;
    __syncthreads();
    if (out && threadIdx.x == 0)
        *out = memory[blockDim.x - 1];
}

extern "C" __global__ void dynamic_size(unsigned *out) {
    unsigned dynamic, total;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic));
    asm("mov.u32 %0, %%total_smem_size;" : "=r"(total));
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        out[0] = dynamic;
        out[1] = total;
    }
}

extern "C" __global__ void hold_place(unsigned long long nanoseconds) {
    unsigned long long start, time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        __nanosleep(200);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    } while (time - start < nanoseconds);
}

// When it began and when it ended, each when it happens. out: pinned memory.
extern "C" __global__ void mark_time(unsigned long long nanoseconds, volatile unsigned long long *out) {
    unsigned long long start, time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    out[0] = start;
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    } while (time - start < nanoseconds);
    out[1] = time;
}

// When it began, when it ended, how often it did not run for more than 20 us in between, the longest and the sum.
extern "C" __global__ void watch_gaps(unsigned long long nanoseconds, volatile unsigned long long *out) {
    unsigned long long start, time, last, gaps = 0, longest = 0, sum = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    out[0] = last = start;
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
        if (time - last > 20000) {
            gaps++;
            sum += time - last;
            longest = time - last > longest ? time - last : longest;
        }
        last = time;
    } while (time - start < nanoseconds);
    out[1] = time;
    out[2] = gaps;
    out[3] = longest;
    out[4] = sum;
}

// One for each block: when it ran, and for which operation of which program (windows.cu).
struct Ran {
    unsigned long long start, end;
    unsigned operation, multiprocessor;
};

static __device__ void run_for(Ran *ran, unsigned *count, unsigned most, unsigned operation,
                               unsigned long long nanoseconds) {
    unsigned long long start, time;
    unsigned multiprocessor;
    if (threadIdx.x == 0) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
        do {
            __nanosleep(100);
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
        } while (time - start < nanoseconds);
        asm("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
        unsigned place = atomicAdd(count, 1);
        if (place < most) {
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
            ran[place] = {start, time, operation, multiprocessor};
        }
    }
    __syncthreads();
}

extern "C" __global__ void k(Ran *ran, unsigned *count, unsigned most, unsigned operation, unsigned long long time) {
    run_for(ran, count, most, operation, time);
}

extern "C" __global__ void ncclDevKernel_of_windows(Ran *ran, unsigned *count, unsigned most, unsigned operation,
                                                    unsigned long long time) {
    run_for(ran, count, most, operation, time);
}
