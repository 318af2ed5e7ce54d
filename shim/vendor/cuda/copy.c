/* Bodies of copy.def. */
#include "cuda.h"

#include "../common/copy.h"
#include "copy.def"
