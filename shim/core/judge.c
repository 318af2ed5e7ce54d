/* The rule of judge.h. */
#include "judge.h"

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_RELAXED) /* other threads set it meanwhile */

/* `part` of `all`, in thousandths, rounded up. */
static uint32_t thousandths(uint64_t part, uint64_t all) {
    for (; all > UINT64_MAX / 1001; all /= 2) /* no overflow below */
        part /= 2;
    return all ? (uint32_t)((part * 1000 + all - 1) / all) : 0;
}

/* Work since the judgement before. A thread that moves its work from one place to another meanwhile may show it twice or
 * not at all, so there may be less than before. */
static uint64_t own_work(const struct overlap_judged *stream) {
    return stream->work > stream->before ? stream->work - stream->before : 0;
}

/* The first of conditions 1 to 4 that does not hold, in the order in which a user wants to read them. */
static enum overlap_stream_status status_of(const struct overlap_judged *stream, bool waited, uint32_t share,
                                            bool programs) {
    return stream->is_default                     ? OVERLAP_STREAM_DEFAULT
           : programs                             ? OVERLAP_STREAM_PROGRAMS
           : stream->is_fixed                     ? OVERLAP_STREAM_FIXED
           : !waited                              ? OVERLAP_STREAM_NOT_WAITED
           : LOAD(stream->launches_graphs)        ? OVERLAP_STREAM_GRAPHS
           : stream->is_wide                      ? OVERLAP_STREAM_WIDE
           : stream->share > share * (uint32_t)10 ? OVERLAP_STREAM_LARGE
                                                  : OVERLAP_STREAM_RAISED;
}

bool overlap_judge(struct overlap_judged *const *streams, uint32_t count, bool early, uint32_t share, bool programs) {
    uint64_t all = 0, together = 0;
    bool communicated = false, computed = false; /* since the beginning */
    for (uint32_t i = 0; i < count; i++) {
        all += own_work(streams[i]);
        computed |= streams[i]->work != 0;
        communicated |= streams[i]->communicates && LOAD(streams[i]->waited);
    }
    if (!all && !programs && (computed || !communicated))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        struct overlap_judged *const stream = streams[i];
        const uint64_t own = own_work(stream);
        stream->share = thousandths(own, all);
        const bool stands =
            early || (stream->alone + own <= stream->usual / OVERLAP_PART_NOTHING && !stream->communicates);
        const bool was = early ? LOAD(stream->waited) : __atomic_exchange_n(&stream->waited, false, __ATOMIC_RELAXED);
        if (was && !early)
            stream->usual = own > stream->usual / 2 ? own : stream->usual / 2;
        if (!early)
            stream->alone = was ? 0 : stream->alone + own;
        const bool waited = was || (stands && stream->status == OVERLAP_STREAM_RAISED);
        stream->status = (uint8_t)status_of(stream, waited, share, programs);
        together += stream->status == OVERLAP_STREAM_RAISED ? own : 0;
        stream->before = early ? stream->before : stream->work;
    }
    if (thousandths(together, all) > OVERLAP_SHARE_TOGETHER * 10)
        for (uint32_t i = 0; i < count; i++)
            if (streams[i]->status == OVERLAP_STREAM_RAISED && (streams[i]->share || !streams[i]->communicates))
                streams[i]->status = OVERLAP_STREAM_TOGETHER;
    return true;
}
