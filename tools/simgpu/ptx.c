/* Kernels of PTX text: names, parameters and written bounds. Registers are guessed (32): ptxas knows, we do not. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { GUESSED_REGISTERS = 32 };

static uint32_t type_bytes(const char *type, size_t length) {
    if (length < 2 || !isdigit((unsigned char)type[1]))
        return 0;
    return (uint32_t)strtoul(type + 1, NULL, 10) / 8;
}

static uint32_t round_up(uint32_t value, uint32_t granule) {
    return granule == 0 ? value : (value + granule - 1) / granule * granule;
}

/* One `.param .align 8 .b8 name[24]` or `.param .u64 .ptr .global .align 1 name`. */
static bool read_parameter(const char *text, const char *end, struct parameter *parameter, uint32_t *offset) {
    uint32_t bytes = 0, align = 0, count = 1;
    bool pointer = false;
    for (const char *at = text; at < end; at++) {
        if (*at == '[')
            count = (uint32_t)strtoul(at + 1, NULL, 10);
        if (*at != '.' || at + 1 >= end)
            continue;
        const char *const word = at + 1;
        size_t length = 0;
        while (word + length < end && isalnum((unsigned char)word[length]))
            length++;
        if (length == 5 && strncmp(word, "align", 5) == 0)
            align = pointer ? align : (uint32_t)strtoul(word + 5, NULL, 10);
        else if (length == 3 && strncmp(word, "ptr", 3) == 0)
            pointer = true;
        else if (bytes == 0 && strchr("bsuf", *word) != NULL)
            bytes = type_bytes(word, length);
    }
    if (bytes == 0 || count == 0 || count > 1 << 16 || align > 256)
        return false;
    *offset = round_up(*offset, align != 0 ? align : bytes);
    *parameter = (struct parameter){*offset, bytes * count};
    *offset += bytes * count;
    return true;
}

static bool read_parameters(struct kernel_image *kernel, const char *text, const char *end) {
    uint32_t offset = 0;
    while (text < end) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *const stop = comma != NULL ? comma : end;
        struct parameter *const grown = realloc(kernel->parameter, (kernel->parameters + 1) * sizeof *grown);
        if (grown == NULL)
            return false;
        kernel->parameter = grown;
        if (strspn(text, " \t\r\n") >= (size_t)(stop - text))
            return kernel->parameters == 0;
        if (!read_parameter(text, stop, &grown[kernel->parameters], &offset))
            return false;
        kernel->parameters++;
        text = stop + 1;
    }
    return true;
}

/* .maxntid 128, 1, 1 between the parameters and the body */
static void read_bounds(struct kernel_image *kernel, const char *text, const char *body) {
    static const char *const words[] = {".maxntid", ".reqntid"};
    for (size_t i = 0; i < 2; i++) {
        const char *const at = strstr(text, words[i]);
        if (at == NULL || at > body)
            continue;
        unsigned int x = 1, y = 1, z = 1;
        if (sscanf(at + 8, " %u , %u , %u", &x, &y, &z) < 1)
            continue;
        const unsigned long long threads = (unsigned long long)x * (y & 0xffff) * (z & 0xffff);
        kernel->max_threads = threads > MAX_BLOCK_THREADS ? MAX_BLOCK_THREADS : (int)threads;
        kernel->bound_written = true;
    }
}

CUresult sim_ptx_read(const char *text, struct image *image) {
    if (strstr(text, ".version") == NULL)
        return CUDA_ERROR_INVALID_IMAGE;
    for (const char *at = text; (at = strstr(at, ".entry")) != NULL;) {
        at += 6;
        at += strspn(at, " \t\r\n");
        const size_t length = strcspn(at, " \t\r\n({");
        char name[4096];
        if (length == 0 || length >= sizeof name)
            return CUDA_ERROR_INVALID_PTX;
        memcpy(name, at, length);
        name[length] = '\0';
        const char *const body = strchr(at, '{');
        if (body == NULL)
            return CUDA_ERROR_INVALID_PTX;
        struct kernel_image *const kernel = sim_image_add_kernel(image, name);
        if (kernel == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        kernel->registers = GUESSED_REGISTERS;
        kernel->layout_known = true;
        const char *const open = strchr(at, '(');
        const char *close = at;
        if (open != NULL && open < body) {
            close = strchr(open, ')');
            if (close == NULL || close > body || !read_parameters(kernel, open + 1, close))
                return CUDA_ERROR_INVALID_PTX;
        }
        read_bounds(kernel, close, body);
        at = body;
    }
    return CUDA_SUCCESS;
}
