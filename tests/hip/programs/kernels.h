// Kernels of the sizes that matter: what RCCL launches, and what rocBLAS does. Nothing in them is ever executed.
#pragma once

#include <hip/hip_runtime.h>

// Uses so much LDS that the compiler must keep it.
#define KEEP_LDS(bytes)                                                                                                \
    __shared__ volatile int kept[(bytes) / 4];                                                                         \
    kept[threadIdx.x] = *data;                                                                                         \
    *data = kept[255 - threadIdx.x]

// 248 vector and 32 accumulation registers, as librccl of ROCm 7.2 on gfx90a.
extern "C" __global__ void __launch_bounds__(256) ncclDevKernel_Generic_2(int *data) {
    KEEP_LDS(19808);
    asm volatile("v_mov_b32 v247, 0\n v_accvgpr_write_b32 a31, 0" ::: "v247", "a31");
}

extern "C" __global__ void __launch_bounds__(256) Cijk_Ailk_Bljk_SB_MT64x64x16(int *data) {
    KEEP_LDS(8192);
    asm volatile("v_mov_b32 v63, 0" ::: "v63");
}

extern "C" __global__ void __launch_bounds__(256) Cijk_Ailk_Bljk_SB_MT128x128x16(int *data) {
    KEEP_LDS(12288);
    asm volatile("v_mov_b32 v135, 0" ::: "v135");
}

// 64 of each kind: what a count of registers means is seen here.
extern "C" __global__ void __launch_bounds__(256) Cijk_Ailk_Bljk_SB_MFMA(int *data) {
    KEEP_LDS(8192);
    asm volatile("v_mov_b32 v63, 0\n v_accvgpr_write_b32 a63, 0" ::: "v63", "a63");
}

extern "C" __global__ void dynamic_only(int *data) {
    extern __shared__ int all[];
    all[threadIdx.x] = *data;
    *data = all[0];
}
