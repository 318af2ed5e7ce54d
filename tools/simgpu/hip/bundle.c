/* What HIP's programs hand over as code: a code object, or a bundle of them (LLVM's ClangOffloadBundler). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../image.h"
#include "../zstd/zstd.h"

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

/* -offload-compress: a head, the sizes of the whole (versions 2 and 3) and of what is packed, a hash, one Zstandard frame
 * around the bundle. Only a file tells where version 1 ends. */
enum { HEAD = 8, HASH = 8, METHOD_ZSTD = 1, LARGEST_PACKED = 1 << 30 };

struct packed {
    uint64_t start, whole, size;
};

static bool is_packed(const struct source *source, struct packed *packed) {
    uint8_t head[HEAD + 16] = {0};
    if (!sim_fetch(source, 0, head, HEAD))
        return false;
    const uint16_t version = sim_read16(head + 4), method = sim_read16(head + 6);
    const size_t sizes = version == 1 ? 4 : version == 2 ? 8 : 16;
    if (version < 1 || version > 3 || method != METHOD_ZSTD || (version == 1 && !source->size_known) ||
        !sim_fetch(source, HEAD, head + HEAD, sizes))
        return false;
    packed->start = HEAD + sizes + HASH;
    packed->whole = version == 1 ? source->bytes : version == 2 ? sim_read32(head + HEAD) : sim_read64(head + HEAD);
    packed->size = version == 3 ? sim_read64(head + HEAD + 8) : sim_read32(head + HEAD + sizes - 4);
    return packed->whole > packed->start && packed->whole <= LARGEST_PACKED && packed->size <= LARGEST_PACKED &&
           (!source->size_known || packed->whole <= source->bytes);
}

static CUresult load_compressed(const struct source *source, struct image *image) {
    struct packed packed;
    if (!is_packed(source, &packed)) {
        sim_say("this code is compressed in a way that the simulated GPU does not unpack; build with Zstandard, or "
                "without -offload-compress");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    struct sim_zstd *const decoder = malloc(sizeof *decoder);
    uint8_t *const copy = malloc(packed.whole), *const bundle = malloc(packed.size + 1);
    CUresult result = decoder != NULL && copy != NULL && bundle != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        result = sim_fetch(source, 0, copy, packed.whole) &&
                         sim_zstd_read(decoder, copy + packed.start, packed.whole - packed.start, bundle, packed.size)
                     ? load_bundle(&(struct source){bundle, packed.size, true, source->gpu}, image)
                     : CUDA_ERROR_INVALID_IMAGE;
    free(bundle);
    free(copy);
    free(decoder);
    return result;
}

CUresult sim_load(const struct source *source, struct image *image) {
    uint8_t start[4] = {0};
    if (!sim_fetch(source, 0, start, sizeof start))
        return CUDA_ERROR_INVALID_IMAGE;
    if (sim_read32(start) == ELF_MAGIC)
        return sim_load_elf(source, 0, source->size_known ? source->bytes : sim_elf_extent(source, 0), image);
    if (memcmp(start, COMPRESSED, 4) == 0)
        return load_compressed(source, image);
    return load_bundle(source, image);
}
