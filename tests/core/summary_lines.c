/* Prints the last line of a process of which this is the page: launches by reason, how many of them are counted as raised
 * and as communication, streams created with a priority, and streams by status.
 * summary_lines DIRECTORY [reason=N | raised:N | graphs:N | graphs_raised:N | communication:N | stream:STATUS | unfinished:STATUS] ... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

static struct overlap_page page;

/* Launches by turns in two shards, which are to be added up. */
static void add(uint64_t *first, uint64_t *second, uint64_t count) {
    *first += count / 2;
    *second += count - count / 2;
}

static int reason_of(const char *name) {
    for (uint32_t reason = 0; reason < OVERLAP_REASON_COUNT; reason++)
        if (strcmp(overlap_reason_name(reason), name) == 0)
            return (int)reason;
    exit(2);
}

int main(int count, char **words) {
    char line[1024], name[32];
    unsigned long long number;
    uint32_t streams = 0, status;
    struct overlap_shard *const one = &page.shards[0], *const other = &page.shards[1];
    if (count < 2)
        return 2;
    for (int i = 2; i < count; i++) {
        if (sscanf(words[i], "%31[a-z_]=%llu", name, &number) == 2) {
            const int reason = reason_of(name);
            add(&one->launches[reason], &other->launches[reason], number);
        } else if (sscanf(words[i], "raised:%llu", &number) == 1) {
            add(&one->counters[OVERLAP_COUNTER_RAISED], &other->counters[OVERLAP_COUNTER_RAISED], number);
        } else if (sscanf(words[i], "graphs:%llu", &number) == 1) {
            add(&one->counters[OVERLAP_COUNTER_GRAPH_LAUNCHES], &other->counters[OVERLAP_COUNTER_GRAPH_LAUNCHES],
                number);
        } else if (sscanf(words[i], "graphs_raised:%llu", &number) == 1) {
            add(&one->counters[OVERLAP_COUNTER_GRAPHS_RAISED], &other->counters[OVERLAP_COUNTER_GRAPHS_RAISED], number);
        } else if (sscanf(words[i], "created:%llu", &number) == 1) {
            one->counters[OVERLAP_COUNTER_STREAMS_CREATED_RAISED] = number;
        } else if (sscanf(words[i], "communication:%llu", &number) == 1) {
            add(&one->counters[OVERLAP_COUNTER_COMMUNICATION], &other->counters[OVERLAP_COUNTER_COMMUNICATION], number);
        } else if (sscanf(words[i], "stream:%u", &status) == 1 && streams < OVERLAP_PAGE_STREAMS) {
            page.streams[streams].status = status;
            page.streams[streams++].state = 2;
        } else if (sscanf(words[i], "unfinished:%u", &status) == 1 && streams < OVERLAP_PAGE_STREAMS) {
            page.streams[streams].status = status;
            page.streams[streams++].state = 1;
        } else {
            return 2;
        }
    }
    overlap_page_summary(&page, words[1], line, sizeof line);
    puts(line);
    return 0;
}
