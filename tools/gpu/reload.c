/* Can the driver be closed and opened again in one process, and does it come to the same address? Not linked to it.
 *
 *   cc -O2 reload.c -o reload -ldl && ./reload
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int mapped(const char *name) {
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, name) != NULL;
    if (maps)
        fclose(maps);
    return found;
}

int main(void) {
    for (int round = 0; round < 4; round++) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        int (*initialise)(unsigned) = NULL, result = -1, closed;
        if (!driver)
            return 1;
        *(void **)&initialise = dlsym(driver, "cuInit");
        void *address = dlsym(driver, "cuInit");
        if (round) /* the first round only opens and closes */
            result = initialise(0);
        closed = dlclose(driver);
        printf("{\"question\":\"reload\",\"round\":%d,\"cuInit\":%d,\"dlclose\":%d,\"still_mapped\":%d,\"address\":\"%"
               "p\"}\n",
               round, result, closed, mapped("libcuda.so"), address);
    }
    return 0;
}
