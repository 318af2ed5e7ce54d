/* Trials of a program whose paces are made up. trial_paces RUNS WORTH MODEL STEP_NS NOISE LAG EFFECT...
 *
 * WORTH: parts per million. NOISE of a step, and EFFECT of each arm but the reference: per cent. LAG: turns after which
 * a time is known. Prints how often each arm was kept (of the reference: how often none was), how often a trial was
 * noisy, how many arms were dropped, and the median of the marks that a trial took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trial.h"

enum { LAG = 64 };

static uint64_t state;

static double uniform(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

/* Of variance 1, from four uniform ones. */
static double normal(void) {
    const uint64_t bits = (uint64_t)(uniform() * 9007199254740992.0);
    uint64_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += bits >> 13 * i & 8191;
    return ((double)sum / 8191 - 2) * 1.7320508075688772;
}

enum kind { PLAIN, CORRELATED, DRIFT, BURSTS, TWO, BIMODAL, OUTLIERS, STALL, STALLS, LOST, KINDS };
static const char *const kinds[KINDS] = {"plain",   "correlated", "drift", "bursts", "two",
                                         "bimodal", "outliers",   "stall", "stalls", "lost"};

/* The length of the mark's step, as a multiple of the mean. */
static double pace(enum kind kind, uint64_t mark) {
    static double slow, mode;
    switch (kind) {
    case CORRELATED: /* over 50 marks, standard deviation 1 */
        slow = mark ? 0.98 * slow + 0.2 * normal() : 0;
        return 1 + 0.02 * slow;
    case DRIFT:
        return 1 + (double)mark / 1e5;
    case BURSTS: /* 16 collectives a step, with computation behind the last */
        return mark % 16 == 15 ? 8.5 : 0.5;
    case TWO:
        return mark % 5 == 0 ? 3 : 0.5;
    case BIMODAL:
        if (mark == 0 || uniform() < 1 / 200.)
            mode = uniform() < 0.5 ? -1 : 1;
        return 1 + 0.05 * mode;
    case OUTLIERS:
        return uniform() < 1 / 500. ? 20 : 1;
    case STALL:
        return mark == 2000 ? 10000 : 1;
    case STALLS: /* a checkpoint is written now and then */
        return mark % 150 == 140 ? 500 : 1;
    default:
        return 1;
    }
}

static int ascending(const void *one, const void *other) {
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

/* One trial; returns its marks. Times arrive `lag` turns late, as those of a GPU do. */
static uint64_t run(struct overlap_trial *trial, uint32_t arms, uint32_t worth, uint32_t lag, char **argv) {
    const struct overlap_samples known[OVERLAP_PAGE_ARMS] = {{0}};
    const double step = atof(argv[4]), noise = atof(argv[5]) / 100;
    enum kind kind = PLAIN;
    double effect[OVERLAP_PAGE_ARMS] = {1};
    for (uint32_t i = 1; i < arms; i++)
        effect[i] = 1 + atof(argv[6 + i]) / 100;
    while (kind < KINDS - 1 && strcmp(argv[3], kinds[kind]) != 0)
        kind++;
    struct overlap_trial_turn turns[LAG + 1];
    uint64_t took[LAG + 1], marks = 0, number = 0;
    double now = 0;
    overlap_trial_begin(trial, arms, worth, (uint32_t)(state >> 7), 2000000, 0, known);
    while (true) {
        const struct overlap_trial_turn turn = overlap_trial_next(trial);
        if (!turn.marks)
            return marks;
        const double begun = now;
        for (uint32_t i = 0; i < turn.marks; i++)
            now += step * pace(kind, marks++) * effect[turn.arm] * (1 + noise * normal());
        turns[number % (lag + 1)] = turn;
        took[number % (lag + 1)] = (uint64_t)(now - begun);
        if (kind == LOST && number % 80 == 7) { /* what is said of it must not matter */
            overlap_trial_lose(trial, &turn);
            took[number % (lag + 1)] *= 100;
        }
        number++;
        if (number > lag)
            overlap_trial_took(trial, &turns[number % (lag + 1)], took[number % (lag + 1)]);
    }
}

int main(int argc, char **argv) {
    if (argc < 8)
        return 2;
    const uint32_t runs = (uint32_t)atoi(argv[1]), worth = (uint32_t)atoi(argv[2]), arms = (uint32_t)(argc - 6);
    const uint32_t lag = (uint32_t)atoi(argv[6]) % (LAG + 1);
    uint64_t *const marks = calloc(runs, sizeof *marks);
    uint32_t kept[OVERLAP_PAGE_ARMS] = {0}, noisy = 0, dropped = 0;
    for (uint32_t i = 0; i < runs; i++) {
        struct overlap_trial trial;
        state = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
        marks[i] = run(&trial, arms, worth, lag, argv);
        noisy += trial.status == OVERLAP_TRIAL_NOISY;
        kept[trial.kept] += trial.status != OVERLAP_TRIAL_NOISY;
        for (uint32_t arm = 1; arm < arms; arm++)
            dropped += trial.arm[arm].status == OVERLAP_ARM_HARMFUL;
    }
    qsort(marks, runs, sizeof *marks, ascending);
    printf("{\"kept\": [");
    for (uint32_t i = 0; i < arms; i++)
        printf("%s%u", i ? ", " : "", kept[i]);
    printf("], \"noisy\": %u, \"dropped\": %u, \"marks\": %lu}\n", noisy, dropped, (unsigned long)marks[runs / 2]);
    free(marks);
    return 0;
}
