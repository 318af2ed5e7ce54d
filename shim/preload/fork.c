/* What a forked child forgets: it starts with empty counters, and gets a page of its own when it first uses a GPU. */
#include "../sys/sys.h"
#include "../sys/system.h"
#include "../gpu/captures.h"
#include "../gpu/device.h"
#include "../gpu/handle.h"
#include "../gpu/launch.h"
#include "../gpu/page.h"
#include "../gpu/resolve.h"
#include "../gpu/table.h"

static void forget_streams(void) {
    lock_forked();
    captures_forked();
    streams_needed = 0;
    for (uint32_t i = 1; i <= streams_used(); i++) /* marks of threads that do not exist here */
        if (stream_at(i)->changing)
            stream_at(i)->changing = 0;
}

/* used: as overlap_page_used() said of the parent. */
static void forget_launches(bool used) {
    thread_forked();
    forget_streams();
    rows_forked();
    if (driver_ready(VENDOR_CUDA) || driver_ready(VENDOR_HIP)) {
        is_forked_child = is_forked_child || used;
        device_forked();
        decisions_forget();
    }
}

void overlap_in_child(void) {
    overlap_start.forked = true;
    overlap_start.objects = overlap_object_count();
    overlap_bind_forked();
    if (!overlap_start.settings.table) /* no driver was used: nothing else has been written */
        return;
    const bool used = overlap_page_used();
    __atomic_store_n(&overlap_table_decoded, OVERLAP_DONE, __ATOMIC_RELAXED);
    overlap_wait_forked();
    overlap_page_forked();
    forget_launches(used);
}
