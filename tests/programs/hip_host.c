/* Opens libraries as an interpreter opens its extensions, and has each do its words: hip_host PLUGIN WORD... [-- PLUGIN
 * WORD...]. A `close` in front of a PLUGIN closes the one before it. The program itself knows nothing of HIP. With
 * HIP_DEEPBIND they are bound to the runtime past every library that is preloaded. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    void *opened = NULL;
    for (int i = 1; i < argc; i++) {
        int end = i;
        while (end < argc && strcmp(argv[end], "--") != 0)
            end++;
        argv[end < argc ? end : argc] = NULL;
        if (strcmp(argv[i], "close") == 0) {
            printf("closed: %d\n", dlclose(opened));
            i++;
        }
        opened = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL | (getenv("HIP_DEEPBIND") ? RTLD_DEEPBIND : 0));
        void (*run)(char **) = opened ? (void (*)(char **))dlsym(opened, "plugin_main") : NULL;
        if (!run) {
            printf("%s\n", dlerror());
            return 2;
        }
        run(argv + i + 1);
        i = end;
    }
    return 0;
}
