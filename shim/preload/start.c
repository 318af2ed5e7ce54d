/* Start and end of a process. */
#include "../sys/sys.h"
#include "../sys/system.h"
#include "../gpu/page.h"
#include "preload.h"

__attribute__((constructor)) static void start(void) {
    overlap_start.constructed = true;
    overlap_objects_start();
    overlap_watch_forks();
    overlap_is_set_up();
}

__attribute__((destructor)) static void end(void) {
    if (overlap_is_set_up())
        overlap_process_ends();
}
