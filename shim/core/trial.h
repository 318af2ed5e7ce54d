/* A trial: several policies, its arms, take turns in one process. It keeps the arm that is surely faster than the
 * reference, or none.
 *
 * A mark is a communication launch, or a wait of the host where a program has no communication. A block is a number of
 * marks under one arm. The first quarter of it is not measured: it works off what was launched under the arm before. A
 * round has two blocks of every arm, the second half in the reverse order of the first, so that a linear drift of the
 * pace cancels. Over the rounds of a level each arm has each place about equally often. At the next level blocks are four
 * times as long, so that steps of any length get a verdict at some level. The order depends on nothing but the seed and
 * the number of marks: ranks of a job that count the same marks are under the same arm without a message, until one of
 * them drops or keeps an arm by its own times. Blocks of an arm that was dropped run the reference.
 *
 * A round gives one sample of each arm: 2 (a - r) / (a + r) of its time and the reference's, which changes sign if the
 * two change places. Rounds are long compared with what makes the paces of neighbouring steps depend on each other. The
 * samples of one level are judged by Student's t, trimmed: the least and the greatest are left out, and stand in the
 * variance for their neighbours (Tukey and McLaughlin 1963), so that a step in which the program read or wrote files does
 * not hide a gain. tests/core/test_trial.py counts wrong verdicts. Samples of earlier runs of the program (struct
 * overlap_table_trial) belong to its first level.
 *
 * Times arrive later than the schedule goes on, because the GPU is behind the host.
 */
#pragma once

#include <stdbool.h>

#include "../abi.h"

struct overlap_trial_arm {
    uint64_t time;                      /* in the round that is being measured, nanoseconds */
    double taken[OVERLAP_TRIAL_ROUNDS]; /* samples of the present level, from the least */
    struct overlap_samples known;       /* of earlier runs, if that is their level */
    struct overlap_samples samples;     /* both together, without the extremes of `taken` */
    uint32_t status;                    /* enum overlap_trial_arm_status */
};

struct overlap_trial {
    uint32_t arms;     /* with the reference, which is arm 0 */
    uint32_t status;   /* enum overlap_trial_status */
    uint32_t kept;     /* the arm to the end of the process, unless RUNNING */
    double worth;      /* as a sample: the smallest gain that is kept */
    uint8_t order[8];  /* of the arms, in the first round; arms are used */
    uint64_t shortest; /* nanoseconds: a level whose blocks are shorter is not judged */

    /* The schedule. Rounds are counted through all levels. */
    uint32_t round, turn;
    bool measures; /* false: the first quarter of a block */

    /* What was measured so far. */
    uint32_t closed;         /* rounds */
    uint32_t level;          /* of the samples */
    uint32_t taken;          /* samples of this level, of each arm that was not dropped */
    uint64_t lost;           /* bits: rounds of which some time is not known */
    uint64_t blocks, length; /* of the level: how many, and nanoseconds together */
    struct overlap_trial_arm arm[OVERLAP_PAGE_ARMS];
};

/* A turn: an arm is in force for some marks. */
struct overlap_trial_turn {
    uint32_t arm;   /* in force */
    uint32_t marks; /* 0: to the end of the process */
    uint32_t round;
    uint32_t stands_for; /* the arm whose block it is; another one than `arm` if that was dropped */
    bool measured;
    bool ends_round;
};

/* worth: in parts per million of the reference's time. seed: the same on all ranks. level, known: of earlier runs. */
void overlap_trial_begin(struct overlap_trial *trial, uint32_t arms, uint32_t worth, uint32_t seed, uint64_t shortest,
                         uint32_t level, const struct overlap_samples known[OVERLAP_PAGE_ARMS]);

/* Return the next turn. */
struct overlap_trial_turn overlap_trial_next(struct overlap_trial *trial);

/* A turn took so many nanoseconds. Turns are given in their order; one may be left out if it is lost. */
void overlap_trial_took(struct overlap_trial *trial, const struct overlap_trial_turn *turn, uint64_t nanoseconds);

/* The time of this turn will not be known. */
void overlap_trial_lose(struct overlap_trial *trial, const struct overlap_trial_turn *turn);
