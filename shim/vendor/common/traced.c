/* --trace: every launch is written down, with where it was. */
#include "windows.h"

void launch_trace(const struct request *request, uint32_t reason, uint32_t launched, bool raised, uint64_t word,
                  const struct overlap_found *found) {
    struct handle *handle = handle_find(request->function);
    struct device *device = device_current(hook_vendor(request->hook));
    char library[256];
    library_of(request->site, library, sizeof library);
    struct overlap_trace record = {.stream = (uint64_t)(uintptr_t)request->config.hStream,
                                   .blocks = blocks_of(request),
                                   .threads = (uint32_t)threads_of(request),
                                   .asked = request->config.sharedMemBytes,
                                   .launched = launched,
                                   .priority = (int16_t)(word >> OVERLAP_WORD_PRIORITY_SHIFT),
                                   .flags = (raised ? OVERLAP_TRACE_RAISED : 0) |
                                            (word & OVERLAP_WORD_ALWAYS ? 0 : OVERLAP_TRACE_WINDOWED),
                                   .reason = reason,
                                   .device = device ? device->place : 0};
    if (found->where == OVERLAP_WHERE_INSIDE && !(word & OVERLAP_WORD_ALWAYS)) {
        record.flags |= OVERLAP_TRACE_OVERLAPPING;
        record.overlaps = found->sequence;
    }
    if (!overlap_trace_write(&record, handle ? handle_name(handle) : NULL, library))
        launch_count(OVERLAP_COUNTER_TRACE_DROPPED);
    if (word & OVERLAP_WORD_COMMUNICATION && request->counted != OVERLAP_WAY_graph_node)
        window_numbered(request->config.hStream, hook_default(request->hook), record.sequence);
}
