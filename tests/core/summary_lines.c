/* Prints the last line of a process of which this is the page: LAUNCHES of computation and COMMUNICATION, RAISED of these by themselves,
 * CRITICAL others, and streams, each as WHY,STATUS, or trial:STATUS:KEPT, whose arms are a, b and a name that fills its field. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

static struct overlap_page page;

int main(int count, char **words) {
    char line[1024];
    uint64_t numbers[4] = {0};
    if (count < 5)
        return 2;
    for (int i = 0; i < 4; i++)
        numbers[i] = strtoull(words[i + 1], NULL, 10);
    struct overlap_shard *const shard = &page.shards[0];
    shard->launches[OVERLAP_REASON_no_rule] = numbers[0];
    shard->launches[OVERLAP_REASON_communication] = numbers[1];
    shard->launches[OVERLAP_REASON_critical] = numbers[3];
    shard->routes[0] = numbers[0] + numbers[1] + numbers[3];
    shard->counters[OVERLAP_COUNTER_COMMUNICATION] = numbers[1];
    shard->counters[OVERLAP_COUNTER_RAISED] = numbers[2];
    for (int i = 5; i < count && i - 5 < OVERLAP_PAGE_STREAMS; i++) {
        if (sscanf(words[i], "trial:%u:%u", &page.trial.status, &page.trial.kept) == 2) {
            page.trial.arms = 3;
            memcpy(page.trial.arm[0].policy, "a", 2);
            memcpy(page.trial.arm[1].policy, "b", 2);
            memset(page.trial.arm[2].policy, 'c', sizeof page.trial.arm[2].policy);
            continue;
        }
        struct overlap_page_stream *const stream = &page.streams[i - 5];
        if (sscanf(words[i], "%u,%u", &stream->why, &stream->status) != 2)
            return 2;
        stream->state = 2;
    }
    overlap_page_summary(&page, "", line, sizeof line);
    puts(line);
    return 0;
}
