/* Overlap windows: see windows.h. */
#include "point.h"
#include "windows.h"

uint32_t windows_open;

RARE void window_changes(struct stream *stream, uint32_t open) {
    struct device *const device = device_cached(stream->vendor, OVERLAP_RELAXED(stream->device));
    uint32_t before = !open;
    POINT(window_looked);
    if (!device ||
        !__atomic_compare_exchange_n(&stream->open, &before, open, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    POINT(window_marked);
    const uint32_t by = open ? 1 : UINT32_MAX;
    __atomic_fetch_add(&device->open, by, __ATOMIC_RELEASE);
    __atomic_fetch_add(&windows_open, by, __ATOMIC_RELAXED);
    invalidate_decisions();
}

void window_opens(struct stream *stream) {
    if (!OVERLAP_RELAXED(stream->carries) || OVERLAP_RELAXED(captures_open))
        return;
    __atomic_store_n(&stream->communications, OVERLAP_RELAXED(stream->communications) + 1, __ATOMIC_RELAXED);
    if (!OVERLAP_RELAXED(stream->open))
        window_changes(stream, 1);
}
