/* SPDX-License-Identifier: Apache-2.0
 * demo-step: a program with the shape of a training step, on the CUDA driver API alone.
 *
 * It knows nothing of overlap-run: the same binary runs without it, under it, on a real GPU and on the simulated one.
 * The driver is opened by name at run time, so it builds and starts on machines that have none.
 *   demo_driver.c  opens the driver and the kernels for the GPU that is there
 *   demo_step.c    one step: GEMMs layer by layer, an all-reduce per bucket, the optimiser
 *   demo_main.c    options, repetition, the answer
 */
#ifndef OVERLAP_DEMO_H
#define OVERLAP_DEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct demo_api {
#define X(field, symbol, parameters) int(*field) parameters;
#include "demo_api.def"
#undef X
};

struct demo_kernel {
    const char *name;
    void *function;
    unsigned grid[2];
    unsigned threads;
    unsigned dynamic_shared;
    int registers;
    int static_shared;
};

struct demo_gpu {
    struct demo_api api;
    char name[256];
    int major;
    int minor;
    struct demo_kernel gemm;
    struct demo_kernel all_reduce;
    struct demo_kernel optimizer;
};

struct demo_options {
    bool concurrent;
    int layers;
    int buckets; /* at most as many as layers */
    int gemms;   /* of a layer */
    int warmup;  /* steps that are not measured */
    int steps;   /* measured ones */
    bool check;
    const char *cubins; /* folder; NULL: the one of this program */
};

#define DEMO_MAX_LAYERS 64

/* What a collective has to do; kernels.cu has the same. */
struct demo_work {
    uint64_t ours;
    uint64_t peer;
    int64_t piece; /* vectors of four numbers */
    int64_t steps;
};

/* Memory, streams and events of the steps. */
struct demo_job {
    void *compute;
    void *communication;
    void *start;
    void *stop;
    void *done;
    void *ready[DEMO_MAX_LAYERS];
    uint64_t left;
    uint64_t right;
    uint64_t scratch;
    uint64_t gradients;
    uint64_t peer;
    uint64_t weights;
    uint64_t work;
    struct demo_work plan[DEMO_MAX_LAYERS]; /* of each bucket, in the host's memory */
};

/* These return false after one line on stderr. */
bool demo_gpu_open(struct demo_gpu *gpu, const char *cubins);
bool demo_job_open(struct demo_job *job, struct demo_gpu *gpu, const struct demo_options *options);
bool demo_job_step(struct demo_job *job, const struct demo_gpu *gpu, const struct demo_options *options, double *ms);
bool demo_job_check(const struct demo_job *job, const struct demo_gpu *gpu, const struct demo_options *options);
bool demo_ok(const struct demo_api *api, int status, const char *what);
bool demo_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
