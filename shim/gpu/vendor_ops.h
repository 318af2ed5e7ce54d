/* The table of vendor operations (vendor_ops.def), through which gpu calls cuda and hip. */
#pragma once

#include "../core/core.h"
#include "../sys/sys.h"
#include "hook.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

struct request;
struct handle;
struct device;

/* An operation is called as OPERATION_OF(vendor, name)(arguments). preload/vendors.c defines the table, so that
 * gpu needs no symbol of a vendor. */
struct vendor_operations {
#define OPERATION(name, result, parameters, cuda, hip) result(*name) parameters;
#include "vendor_ops.def"
#undef OPERATION
};
extern const struct vendor_operations vendor_operations[VENDORS];
#define OPERATION_OF(vendor, name) (vendor_operations[vendor].name)

#pragma GCC visibility pop
