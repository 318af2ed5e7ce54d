/* What HIP's programs hand over as code: a code object, or a bundle of them (LLVM's ClangOffloadBundler). */
#include <string.h>

#include "../image.h"

static const char BUNDLE[] = "__CLANG_OFFLOAD_BUNDLE__", COMPRESSED[] = "CCOB";

enum { MOST_ENTRIES = 1024, TARGET = 256, ENTRY = 24 };

/* EF_AMDGPU_MACH of the flags of the ELF file. */
static const struct {
    const char *architecture;
    int machine;
} machines[] = {{"gfx90a", 0x3f}, {"gfx942", 0x4c}, {"gfx950", 0x4f}};

bool sim_runs_on(const struct gpu *gpu, int machine) {
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machines[i].machine == machine)
            return strcmp(machines[i].architecture, gpu->architecture) == 0;
    return false;
}

/* hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-, or with a word between the last two of `-`; the GPUs have no xnack. */
static bool is_for(const char *target, const struct gpu *gpu) {
    const char *const name = strstr(target, gpu->architecture);
    const size_t length = strlen(gpu->architecture);
    return strstr(target, "amdgcn") != NULL && name != NULL && name > target && name[-1] == '-' &&
           (name[length] == '\0' || name[length] == ':') && strstr(name, "xnack+") == NULL;
}

static CUresult load_bundle(const struct source *source, struct image *image) {
    uint8_t magic[sizeof BUNDLE - 1], count[8], entry[ENTRY];
    size_t at = sizeof BUNDLE - 1;
    if (!sim_fetch(source, 0, magic, sizeof magic) || memcmp(magic, BUNDLE, sizeof magic) != 0)
        return CUDA_ERROR_INVALID_IMAGE;
    if (!sim_fetch(source, at, count, sizeof count) || sim_read64(count) > MOST_ENTRIES)
        return CUDA_ERROR_INVALID_IMAGE;
    at += sizeof count;
    for (uint64_t left = sim_read64(count); left > 0; left--) {
        char target[TARGET] = "";
        if (!sim_fetch(source, at, entry, sizeof entry))
            return CUDA_ERROR_INVALID_IMAGE;
        const uint64_t start = sim_read64(entry), bytes = sim_read64(entry + 8), length = sim_read64(entry + 16);
        at += sizeof entry;
        if (length >= sizeof target || start > LARGEST_IMAGE || bytes > LARGEST_IMAGE ||
            !sim_fetch(source, at, target, (size_t)length))
            return CUDA_ERROR_INVALID_IMAGE;
        at += (size_t)length;
        if (bytes > 0 && is_for(target, source->gpu))
            return sim_load_elf(source, (size_t)start, (size_t)bytes, image);
    }
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult sim_load(const struct source *source, struct image *image) {
    uint8_t start[4] = {0};
    if (!sim_fetch(source, 0, start, sizeof start))
        return CUDA_ERROR_INVALID_IMAGE;
    if (sim_read32(start) == ELF_MAGIC)
        return sim_load_elf(source, 0, source->size_known ? source->bytes : sim_elf_extent(source, 0), image);
    if (memcmp(start, COMPRESSED, 4) == 0) {
        sim_say("this code is compressed, which the simulated GPU does not unpack; build without -offload-compress");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    return load_bundle(source, image);
}
