/* The thunks of launch calls are in launch_x86_64.S. */
#pragma once

#include "../common/hot_x86_64.h"
#include "launch.h"

#define HOT_WAYS(name, body, parameters, ...)
