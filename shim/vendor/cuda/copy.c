/* Bodies of copy.def. */
#include "cuda.h"

#include "../common/copy_bodies.h"

#include "copy.def"
