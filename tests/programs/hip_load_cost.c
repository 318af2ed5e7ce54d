/* What loading a module costs its process: hip_load_cost SMALL LARGE [data]. Loads SMALL first, so that everything that is
 * done once has been done, then LARGE, from its file or (data) from memory. Prints the page faults of the second load and
 * by how many KiB the address space has exceeded its former peak. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

extern int hipSetDevice(int device);
extern int hipModuleLoad(void **module, const char *file);
extern int hipModuleLoadData(void **module, const void *image);

static void *contents(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        exit(2);
    const size_t size = (size_t)ftell(file);
    void *image = malloc(size);
    rewind(file);
    if (!image || fread(image, 1, size, file) != size || fclose(file))
        exit(2);
    return image;
}

static long peak(void) {
    char line[256];
    long found = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && found < 0 && fgets(line, sizeof line, status))
        if (sscanf(line, "VmPeak: %ld", &found) != 1)
            found = -1;
    if (status)
        fclose(status);
    return found;
}

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

int main(int argc, char **argv) {
    void *small = NULL, *large = NULL;
    if (argc < 3 || prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
        return 2;
    const int by_data = argc > 3;
    const void *first = contents(argv[1]), *second = contents(argv[2]);
    if (hipSetDevice(0) || (by_data ? hipModuleLoadData(&small, first) : hipModuleLoad(&small, argv[1])))
        return 3;
    const long before = peak(), faults_before = faults();
    const int result = by_data ? hipModuleLoadData(&large, second) : hipModuleLoad(&large, argv[2]);
    const long faults_after = faults();
    printf("%ld %ld\n", faults_after - faults_before, peak() - before);
    return result;
}
