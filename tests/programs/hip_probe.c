/* Looks whether there is a GPU, as launchers do, and takes the runtime away again; then a plugin brings it back, at another
 * address: hip_probe RUNTIME PLUGIN WORD... */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    void *opened = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    int (*init)(unsigned) = opened ? (int (*)(unsigned))dlsym(opened, "hipInit") : NULL;
    struct link_map *map = NULL;
    if (!init || dlinfo(opened, RTLD_DI_LINKMAP, &map) != 0)
        return 2;
    void *place = (void *)map->l_addr;
    printf("init: %d\n", init(0));
    printf("closed: %d\n", dlclose(opened));
    /* Not where it still is. */
    mmap(place, 1 << 12, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    opened = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    int (*run)(int, char **) = opened ? (int (*)(int, char **))dlsym(opened, "plugin_main") : NULL;
    return run ? run(argc - 2, argv + 2) : 3;
}
