/* SPDX-License-Identifier: Apache-2.0
 * demo-step --arm sequential|concurrent [...]: one JSON line on stdout; on any failure one line on stderr, status 1.
 * Without words it runs twenty steps and prints a sentence about them.
 */
#include "demo.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STEPS = 1000, SENTENCE_STEPS = 20, LAST = 5 };

static const char USAGE[] = "usage: demo-step [--arm sequential|concurrent [--layers N] [--buckets N] [--gemms N]\n"
                            "                  [--warmup N] [--steps N] [--check] [--cubins DIR]]\n";

static bool number(const char *text, int minimum, int maximum, int *value) {
    char *end = NULL;
    const long parsed = strtol(text, &end, 10);
    if (end == text || *end != '\0' || parsed < minimum || parsed > maximum)
        return demo_fail("%s is not a number from %d to %d", text, minimum, maximum);
    *value = (int)parsed;
    return true;
}

/* With words an arm is named; without any it is the one of a program that overlaps, long enough to see it learn. */
static bool parse(struct demo_options *options, int count, char **words) {
    static const struct option LONG[] = {
        {"arm", required_argument, NULL, 'a'},
        {"layers", required_argument, NULL, 'l'},
        {"buckets", required_argument, NULL, 'b'},
        {"gemms", required_argument, NULL, 'g'},
        {"warmup", required_argument, NULL, 'w'},
        {"steps", required_argument, NULL, 's'},
        {"check", no_argument, NULL, 'c'},
        {"cubins", required_argument, NULL, 'f'},
        {NULL, 0, NULL, 0},
    };
    const char *arm = count == 1 ? "concurrent" : NULL;
    bool good = true;
    options->steps = count == 1 ? SENTENCE_STEPS : options->steps;
    for (int option; good && (option = getopt_long(count, words, "", LONG, NULL)) != -1;) {
        switch (option) {
        case 'a':
            arm = optarg;
            break;
        case 'l':
            good = number(optarg, 1, DEMO_MAX_LAYERS, &options->layers);
            break;
        case 'b':
            good = number(optarg, 1, DEMO_MAX_LAYERS, &options->buckets);
            break;
        case 'g':
            good = number(optarg, 1, 100, &options->gemms);
            break;
        case 'w':
            good = number(optarg, 0, MAX_STEPS, &options->warmup);
            break;
        case 's':
            good = number(optarg, 1, MAX_STEPS, &options->steps);
            break;
        case 'c':
            options->check = true;
            break;
        case 'f':
            options->cubins = optarg;
            break;
        default:
            good = false;
        }
    }
    if (!good || arm == NULL || optind != count || (strcmp(arm, "sequential") != 0 && strcmp(arm, "concurrent") != 0)) {
        fputs(USAGE, stderr);
        return false;
    }
    options->concurrent = strcmp(arm, "concurrent") == 0;
    if (options->buckets > options->layers || (options->check && options->layers % options->buckets != 0))
        return demo_fail("%d layers do not make %d buckets", options->layers, options->buckets);
    return true;
}

static int compare(const void *left, const void *right) {
    const double difference = *(const double *)left - *(const double *)right;
    return (difference > 0.0) - (difference < 0.0);
}

static void print_kernel(const char *role, const struct demo_kernel *kernel) {
    printf(", \"%s\": {\"kernel\": \"%s\", \"blocks\": %u, \"threads\": %u, \"registers\": %d, \"static_shared\": %d, "
           "\"dynamic_shared\": %u}",
           role, kernel->name, kernel->grid[0] * kernel->grid[1], kernel->threads, kernel->registers,
           kernel->static_shared, kernel->dynamic_shared);
}

static void print_answer(const struct demo_gpu *gpu, const struct demo_options *options, double *milliseconds) {
    printf("{\"gpu\": \"");
    for (const char *at = gpu->name; *at != '\0'; ++at)
        if (*at >= ' ' && *at != '"' && *at != '\\')
            putchar(*at);
    printf("\", \"arm\": \"%s\", \"layers\": %d, \"buckets\": %d, \"gemms\": %d, \"checked\": %s, \"steps\": [",
           options->concurrent ? "concurrent" : "sequential", options->layers, options->buckets, options->gemms,
           options->check ? "true" : "false");
    for (int step = 0; step < options->steps; ++step)
        printf("%s%.6f", step == 0 ? "" : ", ", milliseconds[step]);
    qsort(milliseconds, (size_t)options->steps, sizeof *milliseconds, compare);
    const int middle = options->steps / 2;
    const double median =
        options->steps % 2 != 0 ? milliseconds[middle] : (milliseconds[middle - 1] + milliseconds[middle]) / 2.0;
    printf("], \"milliseconds\": %.6f", median);
    print_kernel("compute", &gpu->gemm);
    print_kernel("communication", &gpu->all_reduce);
    print_kernel("optimizer", &gpu->optimizer);
    puts("}");
}

static void print_sentence(const struct demo_gpu *gpu, const struct demo_options *options, const double *milliseconds) {
    double sum = 0.0;
    for (int step = options->steps - LAST; step < options->steps; ++step)
        sum += milliseconds[step];
    printf("demo-step: %d steps on %s: %.3f ms a step, mean of the last %d\n", options->steps, gpu->name,
           sum / (double)LAST, LAST);
}

int main(int count, char **words) {
    static double milliseconds[MAX_STEPS];
    /* The grid of the GEMM: 4096 rows and 3840 columns in tiles of 128 by 64. NCCL launches 544 threads for a ring, a
     * block a channel, with 20 x 4,112 bytes of dynamic shared memory whatever the threads. */
    struct demo_gpu gpu = {
        .gemm = {.name = "sgemm_128x64_nn", .grid = {60, 32}, .threads = 256},
        .all_reduce = {.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                       .grid = {24, 1},
                       .threads = 544,
                       .dynamic_shared = 82240},
        .optimizer = {.name = "optimizer_step", .grid = {2048, 1}, .threads = 256},
    };
    struct demo_options options = {.layers = 4, .buckets = 4, .gemms = 1, .warmup = 0, .steps = 1};
    struct demo_job job = {0};
    if (!parse(&options, count, words))
        return 2;
    if (!demo_gpu_open(&gpu, options.cubins) || !demo_job_open(&job, &gpu, &options))
        return 1;
    for (int step = -options.warmup; step < options.steps; ++step) {
        double elapsed = 0.0;
        if (!demo_job_step(&job, &gpu, &options, &elapsed))
            return 1;
        if (step >= 0)
            milliseconds[step] = elapsed;
    }
    if (options.check && !demo_job_check(&job, &gpu, &options))
        return 1;
    if (count == 1)
        print_sentence(&gpu, &options, milliseconds);
    else
        print_answer(&gpu, &options, milliseconds);
    return fflush(stdout) == 0 ? 0 : 1;
}
