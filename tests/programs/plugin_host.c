/* Opens libraries RTLD_LOCAL, as an interpreter opens its extensions, and has each do its words: plugin_host PLUGIN WORD...
 * [-- PLUGIN WORD...]. A `close` in front of a PLUGIN, or at the end, closes the one before it. The program itself knows
 * nothing of a driver. With PLUGIN_DEEPBIND they are bound to it past every library that is preloaded. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    void *opened = NULL;
    int status = 0;
    for (int i = 1, end; i < argc; i = end + 1) {
        for (end = i; end < argc && strcmp(argv[end], "--") != 0;)
            end++;
        argv[end] = NULL;
        if (strcmp(argv[i], "close") == 0) {
            printf("closed: %d\n", dlclose(opened));
            i++;
        }
        if (i == end)
            continue;
        opened = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL | (getenv("PLUGIN_DEEPBIND") ? RTLD_DEEPBIND : 0));
        int (*run)(int, char **) = opened ? (int (*)(int, char **))dlsym(opened, "plugin_main") : NULL;
        if (!run) {
            printf("%s\n", dlerror());
            return 2;
        }
        status |= run(end - i, argv + i);
    }
    return status;
}
