/* Opens plugins, separated by commas, RTLD_LOCAL and hands the other arguments to each. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    int status = 0;
    for (char *path = argc > 1 ? argv[1] : NULL, *next; path; path = next) {
        next = strchr(path, ',');
        if (next)
            *next++ = 0;
        void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        int (*run)(int, char **) = plugin ? (int (*)(int, char **))dlsym(plugin, "plugin_main") : NULL;
        if (!run) {
            printf("%s\n", dlerror());
            return 1;
        }
        status |= run(argc - 1, argv + 1);
    }
    return status;
}
