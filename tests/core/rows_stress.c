/* Threads that claim the rows of the same kernels at the same time, and count in them. rows_stress KERNELS ROUNDS
 *
 * Prints how often two threads were given different rows for one key, how many keys share a row, what was counted, and what the
 * page says was counted by kernel; then how many rows have a record.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/core.h"

enum { THREADS = 8, MOST = 1000 };
static struct overlap_page page;
static int kernels, rounds;
static uint32_t rows[THREADS][MOST];
static uint64_t counted[THREADS][MOST];
static pthread_barrier_t together;

static void *work(void *argument) {
    const int self = (int)(intptr_t)argument;
    struct overlap_shard *shard = &page.shards[self];
    pthread_barrier_wait(&together);
    for (int i = 0; i < kernels * rounds; i++) {
        const int kernel = i % kernels;
        char name[16];
        snprintf(name, sizeof name, "k%d", kernel);
        const struct overlap_row facts = {.rule = OVERLAP_NO_RULE, .blocks = (uint64_t)(i + 1)};
        const uint32_t row = overlap_row_claim(&page, &facts, name, "lib.so", OVERLAP_REASON_shaped);
        if (i < kernels)
            rows[self][kernel] = row;
        overlap_shard_add(&page, shard, &shard->launches[row]);
        counted[self][kernel]++;
        overlap_row_of_reason(&page, row, OVERLAP_REASON_refused);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3 || (kernels = atoi(argv[1])) > MOST)
        return 2;
    rounds = atoi(argv[2]);
    pthread_t threads[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    struct overlap_totals totals;
    overlap_page_totals(&page, &totals);
    int differ = 0, shared = 0, records = 0;
    uint64_t added = 0, of_kernels = 0, all = 0;
    for (int k = 0; k < kernels; k++) {
        for (int t = 0; t < THREADS; t++) {
            differ += rows[t][k] != rows[0][k];
            added += counted[t][k];
        }
        for (int other = 0; other < k; other++)
            shared += page.rows[rows[0][k]].kernel[0] && rows[0][k] == rows[0][other];
    }
    for (uint32_t row = 0; row < OVERLAP_ROWS; row++) {
        records += page.rows[row].state == 2;
        all += totals.rows[row];
        of_kernels += page.rows[row].kernel[0] ? totals.rows[row] : 0;
    }
    printf("%d %d %llu %llu %llu %d\n", differ, shared, (unsigned long long)added, (unsigned long long)all,
           (unsigned long long)of_kernels, records);
    return 0;
}
