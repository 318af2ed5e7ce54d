/* SPDX-License-Identifier: Apache-2.0
 * One step of training, as data-parallel programs do it: while the gradients of the next layers are computed, those
 * that are complete are all-reduced on a stream of their own, bucket by bucket; the optimiser waits for both.
 *
 * Every layer's gradient comes out as 1. The peer's buffer starts at PEER and is both read and written by every
 * collective, so the values at the end tell how many collectives ran, and in which order (demo_job_check). */
#include "demo.h"

enum {
    SIZE_M = 4096, /* whole tiles of 128 by 64 (kernels.cu) */
    SIZE_N = 3840,
    SIZE_K = 1024,
    GRADIENTS = SIZE_M * SIZE_N, /* of a layer */
    PIECES = 8,                  /* of a bucket, each reduced and then copied */
    STREAM_NON_BLOCKING = 1,
    EVENT_DISABLE_TIMING = 2
};

static const float PEER = 2.0F;
static const float RATE = 0.0009765625F; /* 2^-10: sums stay exact */

static unsigned bits_of(float value) {
    const union {
        float value;
        unsigned bits;
    } word = {.value = value};
    return word.bits;
}

static int first_layer(const struct demo_options *options, int bucket) {
    return bucket * options->layers / options->buckets;
}

/* Without a check nobody looks at the values, and filling would only take time. */
static bool buffer(const struct demo_api *api, const struct demo_options *options, uint64_t *address, size_t count,
                   float value) {
    return demo_ok(api, api->allocate(address, count * sizeof(float)), "memory") &&
           (!options->check || demo_ok(api, api->fill(*address, bits_of(value), count), "memory"));
}

static void plan(struct demo_job *job, const struct demo_options *options) {
    for (int bucket = 0; bucket < options->buckets; ++bucket) {
        const int begin = first_layer(options, bucket);
        const int layers = first_layer(options, bucket + 1) - begin;
        job->plan[bucket] = (struct demo_work){
            .ours = job->gradients + (uint64_t)begin * GRADIENTS * sizeof(float),
            .peer = job->peer,
            .piece = (int64_t)layers * GRADIENTS / 4 / PIECES,
            .steps = 2 * PIECES,
        };
    }
}

bool demo_job_open(struct demo_job *job, struct demo_gpu *gpu, const struct demo_options *options) {
    const struct demo_api *api = &gpu->api;
    const size_t all = (size_t)options->layers * GRADIENTS;
    for (int bucket = 0; bucket < options->buckets; ++bucket)
        if (!demo_ok(api, api->event_create(&job->ready[bucket], EVENT_DISABLE_TIMING), "event"))
            return false;
    const bool opened = demo_ok(api, api->stream_create(&job->compute, STREAM_NON_BLOCKING), "stream") &&
                        demo_ok(api, api->stream_create(&job->communication, STREAM_NON_BLOCKING), "stream") &&
                        demo_ok(api, api->event_create(&job->start, 0), "event") &&
                        demo_ok(api, api->event_create(&job->stop, 0), "event") &&
                        demo_ok(api, api->event_create(&job->done, EVENT_DISABLE_TIMING), "event") &&
                        buffer(api, options, &job->left, (size_t)SIZE_M * SIZE_K, 1.0F) &&
                        buffer(api, options, &job->right, (size_t)SIZE_K * SIZE_N, 1.0F / (float)SIZE_K) &&
                        buffer(api, options, &job->scratch, GRADIENTS, 0.0F) &&
                        buffer(api, options, &job->gradients, all, 0.0F) &&
                        buffer(api, options, &job->peer, all, PEER) && buffer(api, options, &job->weights, all, 0.0F) &&
                        demo_ok(api, api->allocate(&job->work, sizeof job->plan), "memory") &&
                        demo_ok(api, api->synchronize(), "memory");
    plan(job, options);
    return opened;
}

static bool launch(const struct demo_api *api, const struct demo_kernel *kernel, void *stream, void **arguments) {
    return demo_ok(api,
                   api->launch(kernel->function, kernel->grid[0], kernel->grid[1], 1, kernel->threads, 1, 1,
                               kernel->dynamic_shared, stream, arguments, NULL),
                   kernel->name);
}

/* The gradients of a layer: its last GEMM writes them. */
static bool layer(const struct demo_job *job, const struct demo_gpu *gpu, const struct demo_options *options,
                  int index) {
    int columns = SIZE_N;
    int depth = SIZE_K;
    for (int gemm = 0; gemm < options->gemms; ++gemm) {
        uint64_t left = job->left;
        uint64_t right = job->right;
        uint64_t to =
            gemm + 1 < options->gemms ? job->scratch : job->gradients + (uint64_t)index * GRADIENTS * sizeof(float);
        if (!launch(&gpu->api, &gpu->gemm, job->compute, (void *[]){&left, &right, &to, &columns, &depth}))
            return false;
    }
    return true;
}

/* Communication waits for the gradients alone, not for what the host launches behind them. NCCL uploads a description
 * of the work in front of its kernel, and so it comes to the GPU a moment after the next GEMM, also here. */
static bool all_reduce(const struct demo_job *job, const struct demo_gpu *gpu, const struct demo_options *options,
                       int bucket) {
    const struct demo_api *api = &gpu->api;
    uint64_t work = job->work + (uint64_t)bucket * sizeof(struct demo_work);
    void *const stream = options->concurrent ? job->communication : job->compute;
    if (options->concurrent && !(demo_ok(api, api->event_record(job->ready[bucket], job->compute), "event") &&
                                 demo_ok(api, api->stream_wait(stream, job->ready[bucket], 0), "event")))
        return false;
    return demo_ok(api, api->upload(work, &job->plan[bucket], sizeof job->plan[bucket], stream), "memory") &&
           launch(api, &gpu->all_reduce, stream, (void *[]){&work});
}

static bool optimizer(const struct demo_job *job, const struct demo_gpu *gpu, const struct demo_options *options) {
    const struct demo_api *api = &gpu->api;
    uint64_t weights = job->weights;
    uint64_t gradients = job->gradients;
    float rate = RATE;
    long count = (long)options->layers * GRADIENTS / 4;
    if (options->concurrent && !(demo_ok(api, api->event_record(job->done, job->communication), "event") &&
                                 demo_ok(api, api->stream_wait(job->compute, job->done, 0), "event")))
        return false;
    return launch(api, &gpu->optimizer, job->compute, (void *[]){&weights, &gradients, &rate, &count});
}

bool demo_job_step(struct demo_job *job, const struct demo_gpu *gpu, const struct demo_options *options, double *ms) {
    const struct demo_api *api = &gpu->api;
    float elapsed = 0.0F;
    if (!demo_ok(api, api->event_record(job->start, job->compute), "event"))
        return false;
    int bucket = 0;
    for (int index = 0; index < options->layers; ++index) {
        if (!layer(job, gpu, options, index))
            return false;
        if (index + 1 == first_layer(options, bucket + 1) && !all_reduce(job, gpu, options, bucket++))
            return false;
    }
    if (!optimizer(job, gpu, options) || !demo_ok(api, api->event_record(job->stop, job->compute), "event") ||
        !demo_ok(api, api->event_synchronize(job->stop), "step") ||
        !demo_ok(api, api->event_elapsed(&elapsed, job->start, job->stop), "event"))
        return false;
    *ms = (double)elapsed;
    return true;
}

/* The first and the last number of every bucket. Collectives must be of equal size: layers a multiple of buckets. */
bool demo_job_check(const struct demo_job *job, const struct demo_gpu *gpu, const struct demo_options *options) {
    const struct demo_api *api = &gpu->api;
    const int steps = options->warmup + options->steps;
    for (int bucket = 0; bucket < options->buckets; ++bucket) {
        float gradient = 0.0F;
        float weight = 0.0F;
        for (int step = 0; step < steps; ++step) {
            gradient = PEER + (float)(step * options->buckets + bucket + 1);
            weight -= RATE * gradient;
        }
        for (int end = 0; end < 2; ++end) {
            const uint64_t at =
                ((uint64_t)first_layer(options, bucket + end) * GRADIENTS - (uint64_t)end) * sizeof(float);
            float found[2] = {0.0F, 0.0F};
            if (!demo_ok(api, api->read(&found[0], job->gradients + at, sizeof(float)), "memory") ||
                !demo_ok(api, api->read(&found[1], job->weights + at, sizeof(float)), "memory"))
                return false;
            if (bits_of(found[0]) != bits_of(gradient) || bits_of(found[1]) != bits_of(weight))
                return demo_fail("wrong result in bucket %d: gradient %g, not %g; weight %g, not %g", bucket,
                                 (double)found[0], (double)gradient, (double)found[1], (double)weight);
        }
    }
    return true;
}
