/* The table of vendor operations (vendor_ops.def), through which vendor/common calls vendor/cuda and vendor/hip. */
#pragma once

#include "../../core/core.h"
#include "../../sys/sys.h"
#include "hook.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

struct request;
struct handle;
struct device;

/* An operation is called as OPERATION_OF(vendor, name)(arguments). A row has one column for each vendor: the distance
 * from the table to the function, because the loader would have to relocate an address at the start of every process.
 * preload/operations.S emits the table into a section of its own, and the linker defines the symbol at the start of
 * that section. So the table is valid before any code runs, and vendor/common needs no symbol of a vendor. */
struct vendor_operations {
#define OPERATION(name, result, parameters, cuda, hip) int32_t name[VENDORS];
#include "vendor_ops.def"
#undef OPERATION
};
extern const struct vendor_operations __start_vendor_operations;
#define OPERATION(name, result, parameters, cuda, hip) typedef result operation_##name parameters;
#include "vendor_ops.def"
#undef OPERATION
#define OPERATION_OF(vendor, name)                                                                                     \
    ((operation_##name *)((uintptr_t)&__start_vendor_operations +                                                      \
                          (uintptr_t)(intptr_t)__start_vendor_operations.name[vendor]))

#pragma GCC visibility pop
