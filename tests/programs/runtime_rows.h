/* The names of runtime.def, for programs that call them. EACH_ROW(name, parameters, arguments...) is what becomes of one. */
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    unsigned x, y, z;
} dim3;
typedef void *CUstream;

#define RUNTIME(...) EACH_ROW(__VA_ARGS__)
#define EACH_ROW(name, parameters, ...) extern int name parameters;
#include "../../shim/cuda/runtime.def"
#undef EACH_ROW

/* The kinds of rows. */
typedef int Launch(const void *, dim3, dim3, void **, size_t, CUstream);
typedef int LaunchEx(const void *, const void *, void **);
typedef int Create(CUstream *);
typedef int CreateFlags(CUstream *, uint32_t);
typedef int CreatePriority(CUstream *, uint32_t, int);
