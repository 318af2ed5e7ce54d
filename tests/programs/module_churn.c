/* What a process that loads modules all day grows by, against the driver that does nothing (tools/bench/null_driver.c).
 *
 *   module_churn WARM COUNT LENGTH ALIVE
 * Loads, launches once and unloads COUNT modules after WARM others, each with a kernel whose name has LENGTH characters and is new;
 * so many modules are ALIVE at a time, and the oldest one is unloaded first. Prints what went wrong; on stderr the memory
 * that COUNT modules have added to the process, in KiB.
 */
#define WAY_LINKED
#include "driver.h"

enum { MOST = 1 << 14, DIGITS = 10 };
static void *modules[MOST];
static char name[4096];

static long resident(void) {
    long kilobytes = 0;
    char line[256];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Rss: %ld kB", &kilobytes) == 1)
            break;
    if (!file || fclose(file))
        exit(4);
    return kilobytes;
}

int main(int argc, char **argv) {
    void *stream, *function;
    long before = 0;
    int bad = 0;
    if (argc != 5)
        return 2;
    const int warm = atoi(argv[1]), count = atoi(argv[2]), length = atoi(argv[3]), alive = atoi(argv[4]);
    memset(name, 'n', (size_t)length);
    driver_start();
    if (alive < 1 || alive > MOST || length < DIGITS || cuStreamCreate(&stream, 1))
        return 3;
    for (int i = 0; i < warm + count; i++) {
        void **const module = &modules[i % alive];
        if (i == warm)
            before = resident();
        if (i >= alive)
            bad += cuModuleUnload(*module);
        snprintf(name + length - DIGITS, DIGITS + 1, "%0*d", DIGITS, i);
        bad += cuModuleLoadData(module, "x") + cuModuleGetFunction(&function, *module, name);
        bad += launch_kernel(function, 4, 128, stream);
    }
    fprintf(stderr, "grown: %ld\n", resident() - before);
    for (int i = 0; i < alive; i++)
        bad += cuModuleUnload(modules[i]);
    printf("bad: %d\n", bad);
    return 0;
}
