/* Rounds of streams that somebody waits for: critical_corners SHARE WORD... prints a letter for what is known of stream 1 after each wait
 * for it: ?, empty, critical, major; and, for `behind`, how much of the context's work is not known to be over.
 *
 *   k:S:N  N threads on stream S     c:S h:S f:S  somebody waits for it: communication, the host, what it feeds
 *   o:S    the host sees all of it to be over          r:E:S w:S:E  event    gone:S     count  counting begins anew
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/critical.h"

enum { CONTEXT = 0x1000, STREAM = 0x2000, EVENT = 0x6000 };
static struct overlap_sync_model *model;

static struct overlap_stream *stream(int number) {
    return overlap_sync_stream(model, STREAM + 16 * (uint64_t)number, CONTEXT, OVERLAP_STREAM_NON_BLOCKING);
}
static uint64_t event(int number) {
    return EVENT + 16 * (uint64_t)number;
}
static void waits(int number, uint32_t why, uint32_t share) {
    struct overlap_stream *const its = stream(number);
    const bool changed = overlap_critical_waited(model, its, why, share);
    if (number == 1)
        printf("%c%s", "?ecm"[its->part.state], changed ? "!" : "");
}
static void act(const char *word, int one, int two, uint32_t share) {
    struct overlap_completion completion;
    if (!strncmp(word, "count", 5)) {
        overlap_critical_count(model);
    } else if (!strncmp(word, "gone", 4)) {
        overlap_sync_stream_gone(model, STREAM + 16 * (uint64_t)one);
    } else if (!strncmp(word, "left", 4)) {
        printf(" %lld ", (long long)(stream(1)->context->work - stream(1)->context->over));
    } else {
        switch (word[0]) {
        case 'k':
            overlap_critical_launched(stream(one), (uint64_t)two);
            break;
        case 'c':
            waits(one, OVERLAP_CRITICAL_COMMUNICATION, share);
            break;
        case 'f':
            waits(one, OVERLAP_CRITICAL_FEEDING, share);
            break;
        case 'h':
            waits(one, OVERLAP_CRITICAL_HOST_WAITS, share);
            break;
        case 'o':
            overlap_sync_completion_of_stream(model, stream(one), &completion);
            overlap_sync_complete(model, &completion);
            break;
        case 'r':
            overlap_sync_recorded(model, overlap_sync_recording(model, event(one), stream(two)), stream(two), true);
            break;
        case 'w':
            overlap_sync_waits(model, stream(one), event(two));
            break;
        default:
            exit(2);
        }
    }
}

int main(int argc, char **argv) {
    model = calloc(1, sizeof *model);
    if (!model || argc < 3)
        return 2;
    model->version = 2;
    overlap_critical_count(model);
    for (int i = 2; i < argc; i++) {
        const char *const one = strchr(argv[i], ':'), *const two = one ? strchr(one + 1, ':') : NULL;
        act(argv[i], one ? atoi(one + 1) : 0, two ? atoi(two + 1) : 0, (uint32_t)atoi(argv[1]));
    }
    putchar('\n');
    return 0;
}
