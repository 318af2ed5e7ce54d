/* Compares policies by a program's own pace: see trial.h. */
#include "trial.h"

/* Marks of a block by level. Primes: steps of 2^n collectives, for instance, do not all begin at the same mark. */
static const uint32_t lengths[OVERLAP_TRIAL_LEVELS] = {OVERLAP_TRIAL_SHORTEST, 31, 127, 509, 2039};

enum {
    ROUNDS = OVERLAP_TRIAL_ROUNDS,
    ALL_ROUNDS = OVERLAP_TRIAL_LEVELS * ROUNDS,
    FIRST_LOOK = 4, /* samples before an arm may be dropped */
    TRIMMED = 6,    /* samples of which the extremes are left out */
    FEWEST = 8      /* for a verdict */
};
#define HARM 0.02
_Static_assert(ALL_ROUNDS <= 64, "a bit each");

/* Student's t, one-sided: of 0.0005 from FEWEST to ROUNDS samples, and of 0.0001 from FIRST_LOOK samples on. */
static const double settles[] = {5.408, 5.041, 4.781, 4.587, 4.437};
static const double drops[] = {22.2, 13.03, 9.68, 8.02, 7.06, 6.44, 6.01, 5.69, 5.45};
_Static_assert(sizeof settles / sizeof *settles == ROUNDS - FEWEST + 1, "one each");
_Static_assert(sizeof drops / sizeof *drops == ROUNDS - FIRST_LOOK + 1, "one each");

static uint64_t at_most(uint64_t value, uint64_t limit) {
    return value < limit ? value : limit;
}

static double mean_of(const struct overlap_samples *samples) {
    return samples->sum / (double)samples->count;
}

/* Is the mean, times sign, surely above the limit? */
static bool is_above(const struct overlap_samples *samples, double sign, double limit, double student) {
    const double count = (double)samples->count, mean = mean_of(samples), above = sign * mean - limit;
    const double variance = (samples->squares - count * mean * mean) / (count - 1);
    return above > 0 && above * above * count > student * student * variance;
}

static void drop_if_harmful(struct overlap_trial_arm *arm) {
    const uint64_t count = arm->samples.count;
    if (count >= FIRST_LOOK && is_above(&arm->samples, 1, HARM, drops[at_most(count, ROUNDS) - FIRST_LOOK]))
        arm->status = OVERLAP_ARM_HARMFUL;
}

/* The arm of a turn: in each half of a round, every arm has one. */
static uint32_t arm_of(const struct overlap_trial *trial) {
    const uint32_t arms = trial->arms, round = trial->round % ROUNDS;
    const uint32_t place = trial->turn < arms ? trial->turn : 2 * arms - 1 - trial->turn;
    const uint32_t shifted = (place + round) % arms;
    return trial->order[round / arms % 2 ? arms - 1 - shifted : shifted];
}

void overlap_trial_begin(struct overlap_trial *trial, uint32_t arms, uint32_t worth, uint32_t seed, uint64_t shortest,
                         uint32_t level, const struct overlap_samples known[OVERLAP_PAGE_ARMS]) {
    const double share = worth / 1e6;
    *trial = (struct overlap_trial){.arms = arms,
                                    .worth = 2 * share / (2 - share),
                                    .shortest = shortest,
                                    .level = level,
                                    .round = level * ROUNDS,
                                    .closed = level * ROUNDS};
    for (uint32_t i = 0; i < arms; i++) {
        const uint32_t place = seed % (i + 1);
        seed /= i + 1;
        trial->order[i] = trial->order[place];
        trial->order[place] = (uint8_t)i;
        trial->arm[i].samples = trial->arm[i].known = known[i];
        drop_if_harmful(&trial->arm[i]);
    }
}

struct overlap_trial_turn overlap_trial_next(struct overlap_trial *trial) {
    if (trial->status != OVERLAP_TRIAL_RUNNING)
        return (struct overlap_trial_turn){.arm = trial->kept, .round = ALL_ROUNDS};
    if (trial->round == ALL_ROUNDS) /* the last times are still to come */
        return (struct overlap_trial_turn){.marks = lengths[0], .round = ALL_ROUNDS};
    const uint32_t length = lengths[trial->round / ROUNDS], first = (length + 3) / 4, arm = arm_of(trial);
    struct overlap_trial_turn turn = {.arm = trial->arm[arm].status == OVERLAP_ARM_HARMFUL ? 0 : arm,
                                      .marks = trial->measures ? length - first : first,
                                      .round = trial->round,
                                      .stands_for = arm,
                                      .measured = trial->measures};
    if (trial->measures)
        trial->turn = (trial->turn + 1) % (2 * trial->arms);
    turn.ends_round = trial->measures && trial->turn == 0;
    trial->round += turn.ends_round;
    trial->measures = !trial->measures;
    return turn;
}

/* Of each end. */
static uint32_t left_out(uint64_t taken) {
    return taken >= TRIMMED;
}

static void insert(double *taken, uint32_t count, double sample) {
    for (; count && taken[count - 1] > sample; count--)
        taken[count] = taken[count - 1];
    taken[count] = sample;
}

/* Sets arm->samples, of so many that were taken, to such whose mean is the trimmed one and whose variance is right for
 * Student's t. */
static void trim(struct overlap_trial_arm *arm, uint32_t taken) {
    const uint32_t out = left_out(taken), count = taken - 2 * out;
    const double low = out * arm->taken[out], high = out * arm->taken[out + count - 1];
    double sum = 0, squares = 0;
    for (uint32_t i = out; i < out + count; i++) {
        sum += arm->taken[i];
        squares += arm->taken[i] * arm->taken[i];
    }
    const double all = low + sum + high, deviations = low * low + squares + high * high - all * all / taken;
    arm->samples.count = arm->known.count + count;
    arm->samples.sum = arm->known.sum + sum;
    arm->samples.squares = arm->known.squares + deviations + sum * sum / count;
}

static void take_samples(struct overlap_trial *trial) {
    const double reference = (double)trial->arm[0].time;
    for (uint32_t i = 1; i < trial->arms; i++) {
        struct overlap_trial_arm *const arm = &trial->arm[i];
        const double time = (double)arm->time;
        if (arm->status != OVERLAP_ARM_TRIED)
            continue;
        insert(arm->taken, trial->taken, 2 * (time - reference) / (time + reference + 1));
        trim(arm, trial->taken + 1);
        drop_if_harmful(arm);
    }
    trial->taken++;
}

static bool is_tried(const struct overlap_trial *trial, uint32_t arm) {
    return arm && trial->arm[arm].status == OVERLAP_ARM_TRIED;
}

/* Is no other arm faster than a gain of `best` by `margin`? */
static bool is_known(const struct overlap_trial *trial, uint32_t but, double best, double margin, double student) {
    for (uint32_t i = 1; i < trial->arms; i++)
        if (i != but && is_tried(trial, i) && !is_above(&trial->arm[i].samples, 1, best - margin, student))
            return false;
    return true;
}

/* The number of samples of the arm with the fewest, with extremes; ROUNDS if every arm was dropped. */
static uint64_t fewest_samples(const struct overlap_trial *trial) {
    uint64_t fewest = UINT64_MAX;
    for (uint32_t i = 1; i < trial->arms; i++)
        if (is_tried(trial, i))
            fewest = at_most(trial->arm[i].known.count + trial->taken, fewest);
    return fewest == UINT64_MAX ? ROUNDS : fewest;
}

/* Settles if it can be. A gain is known well enough if no other arm may exceed it by a quarter. */
static void judge(struct overlap_trial *trial, uint64_t fewest, bool last) {
    const double student = settles[at_most(fewest, ROUNDS) - FEWEST];
    uint32_t best = 0;
    double gain = 0;
    for (uint32_t i = 1; i < trial->arms; i++)
        if (is_tried(trial, i) && is_above(&trial->arm[i].samples, -1, trial->worth, student) &&
            mean_of(&trial->arm[i].samples) < gain) {
            best = i;
            gain = mean_of(&trial->arm[i].samples);
        }
    const double quarter = -gain / 4, margin = quarter > trial->worth ? quarter : trial->worth;
    if ((best && last) || is_known(trial, best, gain, margin, student)) {
        trial->kept = best;
        trial->status = best ? OVERLAP_TRIAL_KEPT : OVERLAP_TRIAL_NOTHING;
    }
}

static void end_level(struct overlap_trial *trial) {
    if (trial->closed == ALL_ROUNDS && trial->status == OVERLAP_TRIAL_RUNNING)
        trial->status = OVERLAP_TRIAL_NOISY;
    if (trial->status != OVERLAP_TRIAL_RUNNING)
        return;
    trial->blocks = trial->length = 0;
    trial->level++;
    trial->taken = 0;
    for (uint32_t i = 0; i < trial->arms; i++)
        trial->arm[i].samples = trial->arm[i].known = (struct overlap_samples){0};
}

static void close_round(struct overlap_trial *trial) {
    if (!(trial->lost >> trial->closed & 1))
        take_samples(trial);
    for (uint32_t i = 0; i < trial->arms; i++)
        trial->arm[i].time = 0;
    trial->closed++;
    /* Samples of earlier runs complete a level early: then, and at its end, there is a verdict, not at every round. */
    const bool ends = trial->closed % ROUNDS == 0;
    const uint64_t fewest = fewest_samples(trial), judged = fewest - UINT64_C(2) * left_out(trial->taken);
    if ((ends ? judged >= FEWEST : fewest == ROUNDS) && trial->length >= trial->shortest * trial->blocks)
        judge(trial, judged, trial->closed == ALL_ROUNDS);
    if (ends)
        end_level(trial);
}

void overlap_trial_took(struct overlap_trial *trial, const struct overlap_trial_turn *turn, uint64_t nanoseconds) {
    while (trial->status == OVERLAP_TRIAL_RUNNING && trial->closed < turn->round)
        close_round(trial); /* its last turn was lost */
    if (trial->status != OVERLAP_TRIAL_RUNNING || turn->round == ALL_ROUNDS)
        return;
    if (turn->measured) {
        trial->length += nanoseconds;
        trial->blocks++;
        trial->arm[turn->stands_for].time += nanoseconds;
    }
    if (turn->ends_round)
        close_round(trial);
}

void overlap_trial_lose(struct overlap_trial *trial, const struct overlap_trial_turn *turn) {
    if (turn->round < ALL_ROUNDS && turn->measured)
        trial->lost |= UINT64_C(1) << turn->round;
}
