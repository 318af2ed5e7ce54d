/* What a program hands over as code, from a file or from memory; fatbin.c and hip/image.c know what it may be.
 *
 * Memory images come without their size, so their bytes are fetched with process_vm_readv, which stops where the
 * program's memory stops: a broken header is an error, never a crash.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "image.h"

/* Copies bytes that may not be there. */
bool sim_fetch(const struct source *source, size_t at, void *to, size_t bytes) {
    if (source->size_known) {
        if (at > source->bytes || bytes > source->bytes - at)
            return false;
        memcpy(to, source->data + at, bytes);
        return true;
    }
    for (size_t done = 0; done < bytes;) {
        const struct iovec local = {(uint8_t *)to + done, bytes - done};
        const struct iovec remote = {(void *)(uintptr_t)(source->data + at + done), bytes - done};
        const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
        if (got < 0 && (errno == ENOSYS || errno == EPERM)) { /* a sandbox: trust the header */
            memcpy((uint8_t *)to + done, source->data + at + done, bytes - done);
            return true;
        }
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

CUresult sim_image_load(const void *data, size_t bytes, bool size_known, const struct gpu *gpu, struct image **out) {
    struct image *const image = sim_new(1, sizeof *image);
    image->references = 1;
    const struct source source = {data, bytes, size_known, gpu};
    const CUresult result = sim_load(&source, image);
    if (result != CUDA_SUCCESS) {
        sim_image_release(image);
        return result;
    }
    *out = image;
    return CUDA_SUCCESS;
}

CUresult sim_read_file(const char *path, uint8_t **data, size_t *bytes) {
    FILE *const file = fopen(path, "rbe");
    struct stat status;
    if (file == NULL)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = CUDA_ERROR_INVALID_IMAGE;
    if (fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        *bytes = (size_t)status.st_size;
        *data = sim_new(*bytes, 1);
        if (fread(*data, 1, *bytes, file) == *bytes)
            result = CUDA_SUCCESS;
        else
            free(*data);
    }
    fclose(file);
    return result;
}

struct kernel_image *sim_image_add_kernel(struct image *image, const char *name) {
    image->kernel = sim_grow(image->kernel, image->kernels + 1u, sizeof *image->kernel);
    struct kernel_image *const kernel = &image->kernel[image->kernels++];
    *kernel = (struct kernel_image){.name = sim_text(name)};
    return kernel;
}

void sim_image_release(struct image *image) {
    if (--image->references > 0)
        return;
    for (uint32_t i = 0; i < image->kernels; i++) {
        free(image->kernel[i].name);
        free(image->kernel[i].parameter);
    }
    free(image->kernel);
    free(image);
}

uint32_t sim_parameter_bytes(const struct kernel_image *image) {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < image->parameters; i++) {
        const uint32_t end = image->parameter[i].offset + image->parameter[i].size;
        bytes = end > bytes ? end : bytes;
    }
    return bytes;
}
