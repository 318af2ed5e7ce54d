/* Launches that --trace records. */
#pragma once

#include "../../core/window.h"

#pragma GCC visibility push(hidden)

struct device;
struct request;

/* --trace. trace_ask() gathers what a record holds besides the launch itself. It runs before the launch, because
 * after a call that failed the driver must not be queried. launch_trace() writes the record and returns its sequence
 * number. raised: launched at the word's priority. */
struct trace_facts {
    const struct device *device;
    const char *kernel;
    struct overlap_window_answer found;
};
void trace_ask(const struct request *request, struct trace_facts *facts);
uint64_t launch_trace(const struct request *request, uint32_t reason, uint32_t launched, bool raised, uint64_t word,
                      const struct trace_facts *facts);

#pragma GCC visibility pop
