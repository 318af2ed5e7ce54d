/* What programs hand over as code: here no code object, which would hold instructions, but a list of kernels (image.py):
 *
 *     simulated kernels of AMD
 *     NAME REGISTERS SAID SCALARS STATIC THREADS UNIFORM [SIZE...]
 *
 * REGISTERS as the hardware counts them, SAID as the runtime answers; THREADS: the most of a block, 0: not said; SIZE: of each
 * argument. A word of zero ends it.
 */
#include <stdlib.h>
#include <string.h>

#include "../image.h"

static const char MAGIC[] = "simulated kernels of AMD\n";

enum { PAGE = 4096, NAME = 256, MOST_PARAMETERS = 4096 };

/* The text, for free(); memory that a program gives has no size. NULL: too long, or it ends nowhere. */
static char *text_of(const struct source *source) {
    char *text = NULL;
    for (size_t bytes = 0; bytes < LARGEST_IMAGE;) {
        size_t chunk = PAGE - (size_t)((uintptr_t)(source->data + bytes) % PAGE);
        if (source->size_known && chunk > source->bytes - bytes)
            chunk = source->bytes - bytes;
        text = sim_grow(text, bytes + chunk + 1, 1);
        if (!sim_fetch(source, bytes, text + bytes, chunk))
            break;
        bytes += chunk;
        text[bytes] = '\0';
        if (chunk == 0 || memchr(text + bytes - chunk, '\0', chunk) != NULL)
            return text;
    }
    free(text);
    return NULL;
}

static long number(char **at, long most) {
    const long value = strtol(*at, at, 10);
    return value < 0 || value > most ? -1 : value;
}

static bool read_parameters(char *at, struct kernel_image *kernel) {
    kernel->layout_known = true;
    for (uint32_t offset = 0; *at != '\0';) {
        const long size = number(&at, UINT16_MAX);
        const uint32_t align = size > 8 ? 8 : (uint32_t)size;
        if (size <= 0 || kernel->parameters == MOST_PARAMETERS)
            return false;
        offset = (offset + align - 1) / align * align;
        kernel->parameter = sim_grow(kernel->parameter, kernel->parameters + 1u, sizeof *kernel->parameter);
        kernel->parameter[kernel->parameters++] = (struct parameter){offset, (uint32_t)size};
        offset += (uint32_t)size;
    }
    return true;
}

static bool read_kernel(char *line, struct image *image) {
    char *at = line + strcspn(line, " ");
    if (at == line || at - line >= NAME || *at == '\0')
        return false;
    *at++ = '\0';
    struct kernel_image *const kernel = sim_image_add_kernel(image, line);
    const long registers = number(&at, MOST_REGISTERS), said = number(&at, 2 * MOST_REGISTERS);
    const long scalars = number(&at, SCALAR_FILE), bytes = number(&at, 1 << 24), threads = number(&at, 1024);
    const long uniform = number(&at, 1);
    if (registers < 0 || said < 0 || scalars < 0 || bytes < 0 || threads < 0 || uniform < 0)
        return false;
    kernel->registers = (int)registers;
    kernel->said_registers = (int)said;
    kernel->scalars = (int)scalars;
    kernel->static_shared = (int)bytes;
    kernel->max_threads = (int)threads;
    kernel->bound_written = threads > 0;
    kernel->uniform = uniform > 0;
    return read_parameters(at, kernel);
}

CUresult sim_load(const struct source *source, struct image *image) {
    char magic[sizeof MAGIC - 1] = "";
    if (!sim_fetch(source, 0, magic, sizeof magic) || memcmp(magic, MAGIC, sizeof magic) != 0) {
        sim_say(
            "code of AMD's compiler is not read: the simulated GPU takes a list of kernels (tools/simgpu/README.md)");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    char *const text = text_of(source), *rest = text != NULL ? text + sizeof MAGIC - 1 : NULL;
    bool good = text != NULL;
    for (char *line; good && (line = strsep(&rest, "\n")) != NULL;)
        good = *line == '\0' || read_kernel(line, image);
    free(text);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}
