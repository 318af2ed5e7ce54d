/* --trace: write a record for every launch, with its window position. */
#include "../../core/core.h"
#include "../../core/window.h"
#include "../../sys/sys.h"
#include "device.h"
#include "facts.h"
#include "handle.h"
#include "launch_slow.h"
#include "request.h"
#include "traced.h"
#include "windows.h"

void trace_ask(const struct request *request, struct trace_facts *facts) {
    struct handle *handle = handle_find(request->function);
    facts->device = device_current(hook_vendor(request->hook));
    facts->kernel = handle ? handle_name(handle) : NULL;
    facts->found = (struct overlap_window_answer){0};
    if (request->counted != OVERLAP_ROUTE_graph_node)
        facts->found = window_query(request->config.hStream, hook_default(request->hook));
}

uint64_t launch_trace(const struct request *request, uint32_t reason, uint32_t launched, bool raised, uint64_t word,
                      const struct trace_facts *facts) {
    char library[256];
    library_of(request->site, library, sizeof library);
    struct overlap_trace record = {.stream = (uint64_t)(uintptr_t)request->config.hStream,
                                   .blocks = blocks_of(request),
                                   .threads = (uint32_t)threads_of(request),
                                   .asked = request->config.sharedMemBytes,
                                   .launched = launched,
                                   .priority = (int16_t)overlap_word_priority(word),
                                   .flags = (raised ? OVERLAP_TRACE_RAISED : 0) |
                                            (word & OVERLAP_WORD_ALWAYS ? 0 : OVERLAP_TRACE_WINDOWED),
                                   .reason = reason,
                                   .device = facts->device ? facts->device->page_slot : 0};
    if (facts->found.position == OVERLAP_POSITION_INSIDE && !(word & OVERLAP_WORD_ALWAYS)) {
        record.flags |= OVERLAP_TRACE_OVERLAPPING;
        record.overlaps = facts->found.sequence;
    }
    if (!overlap_trace_write(&record, facts->kernel, library))
        launch_count(OVERLAP_COUNTER_TRACE_DROPPED);
    return record.sequence;
}
