/* The table of vendor operations. To add a vendor, add a column here and in vendor_ops.def. */
#include "../gpu/vendor_ops.h"

#define OPERATION(name, result, parameters, cuda, hip)                                                                 \
    result cuda parameters;                                                                                            \
    result hip parameters;
#include "../gpu/vendor_ops.def"
#undef OPERATION

const struct vendor_operations vendor_operations[VENDORS] = {
    [VENDOR_CUDA] =
        {
#define OPERATION(name, result, parameters, cuda, hip) .name = cuda,
#include "../gpu/vendor_ops.def"
#undef OPERATION
        },
    [VENDOR_HIP] =
        {
#define OPERATION(name, result, parameters, cuda, hip) .name = hip,
#include "../gpu/vendor_ops.def"
#undef OPERATION
        },
};
