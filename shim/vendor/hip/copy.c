/* Bodies of copy.def. */
#include "hip.h"

#include "../common/copy_bodies.h"

#include "copy.def"
