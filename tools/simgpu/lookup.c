/* How programs find the driver: cuGetProcAddress, the private tables, and the names of errors. */
#include <string.h>

#include "sim.h"

SIM_API CUresult cuGetProcAddress(const char *symbol, void **address, int version, uint64_t flags) {
    int status;
    if (symbol == NULL || address == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *address = sim_proc_find(symbol, version, flags, &status);
    return *address != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Success with no address if there is none: cuda.h, and measured (580.159) for names with their version or _ptsz. */
SIM_API CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags, int *status) {
    int ignored;
    if (symbol == NULL || address == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *address = sim_proc_find(symbol, version, flags, status != NULL ? status : &ignored);
    return CUDA_SUCCESS;
}

/* The table without which NVIDIA's runtime does not start. */
static const unsigned char RUNTIME_TABLE[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                                0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};

SIM_API CUresult cuGetExportTable(const void **table, const CUuuid *id) {
    static bool said;
    if (table == NULL || id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    if (!said && memcmp(id, RUNTIME_TABLE, sizeof RUNTIME_TABLE) == 0) {
        said = true;
        sim_say("this program uses NVIDIA's CUDA runtime (cudart), which needs private tables of the real driver; "
                "the simulated GPU runs programs that use the driver API (cuda-bindings, numba-cuda, Triton, C) or "
                "were made by nvcc -cudart shared -no-compress; use a real GPU for this one");
    }
    return CUDA_ERROR_NOT_FOUND;
}

struct error {
    CUresult code;
    const char *name, *text;
};

static const struct error errors[] = {
#define ERROR(number, cuda, runtime, hip, text) {number, #cuda, text},
#include "error.def"
#undef ERROR
};

static const struct error *find_error(CUresult code) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code && strcmp(errors[i].name, "none") != 0)
            return &errors[i];
    return NULL;
}

SIM_API CUresult cuGetErrorName(CUresult code, const char **name) {
    const struct error *const error = find_error(code);
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *name = error != NULL ? error->name : NULL;
    return error != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGetErrorString(CUresult code, const char **text) {
    const struct error *const error = find_error(code);
    if (text == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *text = error != NULL ? error->text : NULL;
    return error != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
