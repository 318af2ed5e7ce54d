/* Stream captures, and graph nodes that record events or wait. */
#pragma once

#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* A node was added that records an event or waits for one; dependencies were added. */
void capture_node_records(vendor_event event);
void capture_node_waits(void);
void capture_dependencies_added(void);
/* 1: a stream has been captured in this process. */
extern uint32_t capture_begun;

#pragma GCC visibility pop
