/* A trial: the arms of a policy take turns in one process, and the trial keeps the arm that is surely faster than the reference.
 *
 * A mark is a launch of communication, or a wait of the host where a program has no communication. Time passes in blocks of as many
 * marks, each under one arm. A round has two blocks of every arm, the second half in the reverse order of the first, so that a linear
 * drift of the pace cancels. Over the rounds of a level each arm has each place equally often. Blocks are four times as long at the
 * next level, so steps of any length get a verdict at some level. The order depends on nothing but the seed and the number of marks, so
 * ranks of a job that count the same marks are under the same arm without a message. A dropped arm's blocks run the reference.
 *
 * A sample is an arm's time in a round against the reference's: 2 (a - r) / (a + r), which is antisymmetric. Rounds are long against
 * whatever correlates the paces of neighbouring steps. A level's mean is judged by Student's t at the level's end, with its own samples
 * only: of three equal arms, with five levels, fewer than 1 in 100 trials would call one faster even if `worth` were 0.
 */
#pragma once

#include <stdint.h>

enum { OVERLAP_TRIAL_ARMS = 6, /* OVERLAP_PAGE_ARMS */ OVERLAP_TRIAL_LEVELS = 5, OVERLAP_TRIAL_ROUNDS = 12 };

enum overlap_trial_status {
    OVERLAP_TRIAL_RUNNING = 0,
    OVERLAP_TRIAL_KEPT = 1,    /* an arm is surely faster than the reference by `worth` */
    OVERLAP_TRIAL_NOTHING = 2, /* no arm is: each is surely not, or was dropped as harmful */
    OVERLAP_TRIAL_NOISY = 3    /* the last level is over, and it is not known */
};

enum overlap_trial_arm_status { OVERLAP_ARM_TRIED = 0, OVERLAP_ARM_HARMFUL = 1 };

struct overlap_trial_samples {
    double sum, squares;
    uint64_t count;
};

struct overlap_trial_arm {
    uint64_t time;                            /* in this round, nanoseconds */
    struct overlap_trial_samples level, last; /* of this level, and of the one before */
    uint64_t status;                          /* enum overlap_trial_arm_status */
};

struct overlap_trial {
    uint32_t arms; /* with the reference, which is arm 0 */
    uint32_t status;
    uint32_t kept;               /* the arm to the end of the process, once the status is not RUNNING */
    uint32_t level, round, turn; /* present place in the schedule */
    uint32_t measuring;          /* 0: the first part of a block, whose work was queued under another arm */
    uint8_t order[8];            /* of the arms, in the first round; [OVERLAP_TRIAL_ARMS] are used */
    uint64_t since;              /* when the present turn began, nanoseconds */
    uint64_t blocks, length;     /* of this level: number, and nanoseconds together */
    double worth;                /* as a sample: the smallest gain that is kept */
    struct overlap_trial_arm arm[6]; /* [OVERLAP_TRIAL_ARMS] */
};

/* The arm that is active for the next `marks` marks. marks 0: to the end of the process. */
struct overlap_trial_turn {
    uint32_t arm, marks;
};

/* worth: in parts per million of the reference's time. seed: the same on all ranks. */
struct overlap_trial_turn overlap_trial_begin(struct overlap_trial *trial, uint32_t arms, uint32_t worth, uint32_t seed,
                                              uint64_t now);

/* The marks of a turn are over at `now` (nanoseconds, of a monotonic clock). Returns the next turn. */
struct overlap_trial_turn overlap_trial_next(struct overlap_trial *trial, uint64_t now);
