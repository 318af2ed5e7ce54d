/* What programs do with dlopen and dlmopen, one case per pair of arguments; prints what came of it.
 * A way is letters: l RTLD_LAZY, n RTLD_NOW, g RTLD_GLOBAL, d RTLD_DEEPBIND, o RTLD_NOLOAD, k RTLD_NODELETE, N by dlmopen in a
 * new namespace, B by dlmopen in the program's own. */
#include "driver.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>

static void *open_so(const char *way, const char *path) {
    int mode = 0;
    for (const char *letter = way; *letter; letter++)
        mode |= *letter == 'l'   ? RTLD_LAZY
                : *letter == 'n' ? RTLD_NOW
                : *letter == 'g' ? RTLD_GLOBAL
                : *letter == 'd' ? RTLD_DEEPBIND
                : *letter == 'o' ? RTLD_NOLOAD
                : *letter == 'k' ? RTLD_NODELETE
                                 : 0;
    path = strcmp(path, "NULL") ? path : NULL;
    return strchr(way, 'N')   ? dlmopen(LM_ID_NEWLM, path, mode)
           : strchr(way, 'B') ? dlmopen(LM_ID_BASE, path, mode)
                              : dlopen(path, mode);
}

static void *together(void *path) {
    void *handle = NULL;
    for (int i = 0; i < 50; i++) {
        void *again = dlopen(path, i % 2 ? RTLD_NOW : RTLD_NOW | RTLD_DEEPBIND);
        if (handle && again != handle)
            return NULL;
        handle = again;
        if (i % 7 == 0)
            dlclose(dlopen(path, RTLD_LAZY));
    }
    return handle;
}

static int run_plugin(void *library, const char *name, int argc, char **argv) {
    int (*run)(int, char **) = library ? (int (*)(int, char **))dlsym(library, name) : NULL;
    return run ? run(argc, argv) : 77;
}

int main(int argc, char **argv) {
    int status = 0;
    void *last = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *word = argv[i];
        char *value = argv[i + 1];
        if (!strcmp(word, "call")) { /* a function of the library that was opened last */
            int (*function)(void) = last ? (int (*)(void))dlsym(last, value) : NULL;
            printf("%s %d\n", value, function ? function() : -1);
        } else if (!strcmp(word, "run")) { /* the rest is the plugin's */
            return run_plugin(last, value, argc - i - 1, argv + i + 1);
        } else if (!strcmp(word, "gpu")) { /* the program's own use of the driver */
            void *context;
            driver_open();
            status |= CU(cuInit)(0) | CU(cuDevicePrimaryCtxRetain)(&context, 0) | CU(cuCtxSetCurrent)(context);
        } else if (!strcmp(word, "threads")) {
            pthread_t threads[16];
            void *found[16];
            int equal = 0;
            for (int k = 0; k < 16; k++)
                pthread_create(&threads[k], NULL, together, value);
            for (int k = 0; k < 16; k++) {
                pthread_join(threads[k], &found[k]);
                equal += found[k] && found[k] == found[0];
            }
            printf("threads %d\n", equal);
        } else {
            const char *text;
            errno = 42;
            dlerror();
            last = open_so(word, value);
            const int kept = errno == 42 || !last;
            text = dlerror();
            printf("%s %s: %s, %s", word, strrchr(value, '/') ? strrchr(value, '/') + 1 : value, last ? "open" : "no",
                   text ? text : "no error");
            printf(", then %s%s\n", dlerror() ? "another" : "none", kept ? "" : ", errno lost");
            fflush(stdout);
        }
    }
    return status;
}
