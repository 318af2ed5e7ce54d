/* The thunks of launch calls are in launch_x86_64.S. */
#pragma once

#include "../common/hot_x86_64.h"
#include "launch.h"

/* thunks_x86_64.S */
#define THUNKS(name, body, parameters, ...)
#define THUNKS_VOID(name, body)

#define HOT_WAYS(name, body, parameters, ...)
