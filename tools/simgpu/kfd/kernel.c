/* What a kernel object says of itself, and the log of kernels: SIMGPU_PACKETS=FILE, one JSON line each, appended. */
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kfd.h"

static int file = -1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_log(void) {
    const char *const path = getenv("SIMGPU_PACKETS");
    if (path == NULL || *path == '\0')
        return;
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
        kfd_say("SIMGPU_PACKETS: `%s` cannot be written", path);
}

/* The tables of symbols of a code object in memory. */
struct image {
    uintptr_t start;
    uint64_t bytes;
    const Elf64_Sym *symbols;
    const char *names;
    uint64_t symbol_count, name_bytes;
};

static const void *inside(const struct image *image, uint64_t offset, uint64_t bytes) {
    return offset <= image->bytes && bytes <= image->bytes - offset ? (const void *)(image->start + offset) : NULL;
}

/* The loader keeps the file's own addresses, so a code object begins where its allocation begins. */
static bool read_image(uintptr_t object, struct image *image) {
    *image = (struct image){0};
    if (!kfd_allocation_of((const void *)object, &image->start, &image->bytes))
        return false;
    const Elf64_Ehdr *const elf = inside(image, 0, sizeof *elf);
    if (elf == NULL || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    const Elf64_Phdr *const segments = inside(image, elf->e_phoff, (uint64_t)elf->e_phnum * sizeof *segments);
    for (int i = 0; segments != NULL && i < elf->e_phnum; i++) {
        const Elf64_Dyn *const entries = inside(image, segments[i].p_vaddr, segments[i].p_memsz);
        if (segments[i].p_type != PT_DYNAMIC || entries == NULL)
            continue;
        for (const Elf64_Dyn *entry = entries; entry->d_tag != DT_NULL; entry++) {
            const uint64_t value = entry->d_un.d_val;
            if (entry->d_tag == DT_SYMTAB)
                image->symbols = inside(image, value, sizeof *image->symbols);
            else if (entry->d_tag == DT_STRTAB)
                image->names = inside(image, value, 1);
            else if (entry->d_tag == DT_STRSZ)
                image->name_bytes = value;
            else if (entry->d_tag == DT_HASH && inside(image, value, 8) != NULL)
                image->symbol_count = ((const uint32_t *)inside(image, value, 8))[1];
        }
    }
    return image->symbols != NULL && image->names != NULL;
}

/* The symbol of a kernel object is the kernel's name with .kd behind it. */
static bool name_of(uintptr_t object, char *name, size_t size) {
    struct image image;
    if (!read_image(object, &image))
        return false;
    for (uint64_t i = 0; i < image.symbol_count; i++) {
        if (image.symbols[i].st_value != object - image.start || image.symbols[i].st_name >= image.name_bytes)
            continue;
        const char *const text = image.names + image.symbols[i].st_name;
        const size_t length = strlen(text);
        if (length > 3 && strcmp(text + length - 3, ".kd") == 0) {
            snprintf(name, size, "%.*s", (int)length - 3, text);
            return true;
        }
    }
    return false;
}

static void log_kernel(const char *name, const struct kfd_queue *queue, const union packet *packet) {
    const struct kernel_descriptor *const kernel = (const void *)(uintptr_t)packet->kernel.kernel_object;
    /* gfx90a and gfx94x: registers in units of 8, of which those from the offset on accumulate. */
    const uint32_t registers = 8 * ((kernel->resources1 & 63) + 1), offset = 4 * ((kernel->resources3 & 63) + 1);
    const uint32_t scalars = 16 * ((kernel->resources1 >> 6 & 15) / 2 + 1);
    char line[4096];
    const int length = snprintf(
        line, sizeof line,
        "{\"kernel\": \"%s\", \"device\": %u, \"queue\": %llu, \"priority\": %d, \"grid\": [%u, %u, %u], "
        "\"workgroup\": [%u, %u, "
        "%u], \"group_segment\": %u, \"static_group_segment\": %u, \"private_segment\": %u, \"registers\": %u, "
        "\"accumulation_offset\": %u, \"scalar_registers\": %u}\n",
        name, queue->node - 1, (unsigned long long)queue->id, queue->priority, packet->kernel.grid[0],
        packet->kernel.grid[1], packet->kernel.grid[2], packet->kernel.workgroup[0], packet->kernel.workgroup[1],
        packet->kernel.workgroup[2], packet->kernel.group_segment, kernel->group_segment,
        packet->kernel.private_segment, registers, offset, scalars);
    const ssize_t written = write(file, line, (size_t)length);
    (void)written;
}

void kfd_run_kernel(const struct kfd_queue *queue, const union packet *packet) {
    const struct kernel_descriptor *const kernel = (const void *)(uintptr_t)packet->kernel.kernel_object;
    const uint64_t *const arguments = (const void *)(uintptr_t)packet->kernel.arguments;
    char name[2048];
    if (!name_of((uintptr_t)kernel, name, sizeof name)) {
        if (kfd_run_bare_blit(kernel, arguments))
            return;
        snprintf(name, sizeof name, "0x%llx", (unsigned long long)packet->kernel.kernel_object);
    }
    if (kfd_run_named_blit(name, arguments))
        return;
    pthread_once(&once, open_log);
    if (file >= 0)
        log_kernel(name, queue, packet);
}
