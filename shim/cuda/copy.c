/* Bodies of copy.def. */
#include "cuda.h"

#include "../gpu/copy_bodies.h"

#include "copy.def"
