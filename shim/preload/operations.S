/* The table of operations (vendor/common/vendor_ops.h). C cannot express a distance as a constant. To add a vendor, add
 * a column here and in vendor_ops.def. */
    .section vendor_operations, "a", %progbits
    .balign 4
.Loperations:
#define OPERATION(name, result, parameters, cuda, hip) .long cuda - .Loperations, hip - .Loperations;
#include "../vendor/common/vendor_ops.def"
#undef OPERATION

#ifdef __ELF__
    .section .note.GNU-stack, "", %progbits
#endif
