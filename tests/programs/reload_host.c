/* Opens a plugin RTLD_LOCAL, hands the arguments to it, closes it, three times. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int status = 0;
    for (int round = 0; round < 3; round++) {
        void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
        int (*run)(int, char **) = plugin ? (int (*)(int, char **))dlsym(plugin, "plugin_main") : NULL;
        if (!run) {
            printf("%s\n", dlerror());
            return 1;
        }
        status |= run(argc - 1, argv + 1);
        printf("closed: %d\n", dlclose(plugin));
    }
    return status;
}
