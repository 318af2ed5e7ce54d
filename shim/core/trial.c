/* Compares policies by a program's own pace: see trial.h. */
#include "trial.h"

#include <stdbool.h>

/* Marks of a block by level. Primes: a program's steps, of 2^n collectives for instance, do not begin at the same mark of each. */
static const uint32_t lengths[OVERLAP_TRIAL_LEVELS] = {7, 31, 127, 509, 2039};

enum { FIRST_LOOK = 4 }; /* samples before an arm may be dropped */

/* A level whose blocks are shorter shows how fast the host can queue work, not how fast the GPU does it. */
#define SHORTEST UINT64_C(2000000) /* nanoseconds */
#define HARM 0.02

/* Student's t, one-sided: 0.0005 for 12 samples, and 0.0001 for FIRST_LOOK to 12 samples. */
static const double settles = 4.437;
static const double drops[] = {22.2, 13.03, 9.68, 8.02, 7.06, 6.44, 6.01, 5.69, 5.45};

static double square(double value) {
    return value * value;
}

/* Is the mean surely above the limit? */
static bool is_above(const struct overlap_trial_samples *samples, double sign, double limit, double student) {
    const double count = (double)samples->count, mean = sign * samples->sum / count;
    const double variance = (samples->squares - count * square(mean)) / (count - 1);
    return mean > limit && square(mean - limit) * count > square(student) * variance;
}

/* The arm of a turn: of each half of a round, every arm has one. */
static uint32_t arm_of(const struct overlap_trial *trial) {
    const uint32_t arms = trial->arms;
    const uint32_t place = trial->turn < arms ? trial->turn : 2 * arms - 1 - trial->turn;
    const uint32_t shifted = (place + trial->round) % arms;
    return trial->order[trial->round / arms % 2 ? arms - 1 - shifted : shifted];
}

static struct overlap_trial_turn turn_of(const struct overlap_trial *trial) {
    const uint32_t length = lengths[trial->level], first = (length + 3) / 4;
    const uint32_t arm = arm_of(trial);
    if (trial->status != OVERLAP_TRIAL_RUNNING)
        return (struct overlap_trial_turn){.arm = trial->kept};
    return (struct overlap_trial_turn){.arm = trial->arm[arm].status == OVERLAP_ARM_HARMFUL ? 0 : arm,
                                       .marks = trial->measuring ? length - first : first};
}

struct overlap_trial_turn overlap_trial_begin(struct overlap_trial *trial, uint32_t arms, uint32_t worth, uint32_t seed,
                                              uint64_t now) {
    const double share = worth / 1e6;
    *trial = (struct overlap_trial){.arms = arms, .since = now, .worth = 2 * share / (2 - share)};
    for (uint32_t i = 0; i < arms; i++) {
        const uint32_t place = seed % (i + 1);
        seed /= i + 1;
        trial->order[i] = trial->order[place];
        trial->order[place] = (uint8_t)i;
    }
    return turn_of(trial);
}

static void take_samples(struct overlap_trial *trial) {
    const double reference = (double)trial->arm[0].time;
    for (uint32_t i = 0; i < trial->arms; i++) {
        struct overlap_trial_arm *const arm = &trial->arm[i];
        const double time = (double)arm->time, sample = 2 * (time - reference) / (time + reference + 1);
        arm->time = 0;
        arm->level.sum += sample;
        arm->level.squares += square(sample);
        arm->level.count++;
    }
}

static void drop_harmful(struct overlap_trial *trial) {
    for (uint32_t i = 1; i < trial->arms; i++) {
        struct overlap_trial_arm *const arm = &trial->arm[i];
        if (arm->status == OVERLAP_ARM_TRIED && arm->level.count >= FIRST_LOOK &&
            is_above(&arm->level, 1, HARM, drops[arm->level.count - FIRST_LOOK]))
            arm->status = OVERLAP_ARM_HARMFUL;
    }
}

static double mean_of(const struct overlap_trial_arm *arm) {
    return arm->level.sum / (double)arm->level.count;
}

/* Is every arm but the best surely not faster than `best` by `worth`? */
static bool is_known(const struct overlap_trial *trial, uint32_t but, double best) {
    for (uint32_t i = 1; i < trial->arms; i++)
        if (i != but && trial->arm[i].status == OVERLAP_ARM_TRIED &&
            !is_above(&trial->arm[i].level, 1, best - trial->worth, settles))
            return false;
    return true;
}

/* All rounds of a level are over. */
static void judge(struct overlap_trial *trial) {
    const bool last = trial->level + 1 == OVERLAP_TRIAL_LEVELS;
    uint32_t best = 0;
    for (uint32_t i = 1; i < trial->arms; i++)
        if (trial->arm[i].status == OVERLAP_ARM_TRIED && is_above(&trial->arm[i].level, -1, trial->worth, settles) &&
            (!best || mean_of(&trial->arm[i]) < mean_of(&trial->arm[best])))
            best = i;
    if (last || is_known(trial, best, best ? mean_of(&trial->arm[best]) : 0)) {
        trial->kept = best;
        trial->status = best ? OVERLAP_TRIAL_KEPT : last ? OVERLAP_TRIAL_NOISY : OVERLAP_TRIAL_NOTHING;
    }
}

static void end_level(struct overlap_trial *trial) {
    if (trial->length >= SHORTEST * trial->blocks)
        judge(trial);
    else if (trial->level + 1 == OVERLAP_TRIAL_LEVELS)
        trial->status = OVERLAP_TRIAL_NOISY;
    if (trial->status != OVERLAP_TRIAL_RUNNING)
        return;
    trial->level++;
    trial->round = 0;
    trial->blocks = trial->length = 0;
    for (uint32_t i = 0; i < trial->arms; i++) {
        trial->arm[i].last = trial->arm[i].level;
        trial->arm[i].level = (struct overlap_trial_samples){0};
    }
}

struct overlap_trial_turn overlap_trial_next(struct overlap_trial *trial, uint64_t now) {
    if (trial->status == OVERLAP_TRIAL_RUNNING && trial->measuring) {
        trial->length += now - trial->since;
        trial->blocks++;
        trial->arm[arm_of(trial)].time += now - trial->since;
        trial->turn = (trial->turn + 1) % (2 * trial->arms);
    }
    trial->measuring = !trial->measuring;
    trial->since = now;
    if (trial->turn == 0 && !trial->measuring) {
        trial->round++;
        take_samples(trial);
        drop_harmful(trial);
        if (trial->round == OVERLAP_TRIAL_ROUNDS)
            end_level(trial);
    }
    return turn_of(trial);
}
