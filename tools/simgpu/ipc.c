/* Events of other processes. Processes do not meet here, so an event that another one has exported counts as reached; what
 * a program may do with handles is checked as the real driver does.
 */
#include <string.h>
#include <unistd.h>

#include "sim.h"

static const char MARK[16] = "simgpu: event";

/* The bytes of a handle. */
struct exported {
    char mark[sizeof MARK];
    int64_t process;
    uint64_t event; /* its number there */
};

_Static_assert(sizeof(struct exported) <= sizeof(CUipcEventHandle), "a handle has room for it");

SIM_API CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent handle) {
    SIM_CALL_IN_CONTEXT(context);
    (void)context;
    const struct event *const event = sim_handle_get(handle, KIND_EVENT);
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (event == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if ((event->flags & EVENT_INTERPROCESS) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct exported exported = {.process = getpid(), .event = sim_handle_number(handle)};
    memcpy(exported.mark, MARK, sizeof MARK);
    memset(out, 0, sizeof *out);
    memcpy(out, &exported, sizeof exported);
    return CUDA_SUCCESS;
}

/* The process that exported it cannot open it: INVALID_CONTEXT, by the manual of cudaIpcOpenEventHandle (its
 * cudaErrorDeviceUninitialized is that). */
SIM_API CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle) {
    SIM_CALL_IN_CONTEXT(context);
    struct exported exported;
    memcpy(&exported, &handle, sizeof exported);
    if (out == NULL || memcmp(exported.mark, MARK, sizeof MARK) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (exported.process == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    return sim_event_new(context, EVENT_INTERPROCESS | EVENT_DISABLE_TIMING, out);
}
