/* Several libraries launch in turn through one shared runtime: tools/bench/null_caller.c, null_runtime.c, many_driver.c.
 *
 *   callers ROUNDS LIBRARY...
 * Each library launches one kernel of its own in each round; all but the first one while another thread walks the loaded
 * objects: it waits in a callback. Prints what went wrong, how many launches were made, and how often the driver was asked
 * about kernels after the first round.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

extern int cuInit(unsigned), cuModuleGetFunction(void **, void *, const char *);
extern long many_asked(void);

enum { MOST = 256 };

static int (*call[MOST])(const void *, void *);
static void *functions[MOST];
static int rounds, count, bad;
static long launched;

static void *launch(void *unused) {
    for (int i = 0; i < count; i++, launched++)
        bad += call[i](functions[i], (void *)0x1000);
    return unused;
}

static void *launch_again(void *unused) {
    for (int round = 1; round < rounds; round++)
        launch(NULL);
    return unused;
}

static int locked(struct dl_phdr_info *object, size_t size, void *unused) {
    pthread_t thread;
    (void)object, (void)size, (void)unused;
    bad += pthread_create(&thread, NULL, launch_again, NULL) + pthread_join(thread, NULL);
    return 1;
}

int main(int argc, char **argv) {
    if (argc < 3 || argc > MOST + 2)
        return 2;
    rounds = atoi(argv[1]), count = argc - 2;
    bad = cuInit(0);
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        void *library = dlopen(argv[i + 2], RTLD_NOW | RTLD_LOCAL);
        call[i] = library ? (int (*)(const void *, void *))dlsym(library, "null_call") : NULL;
        if (!call[i])
            return fprintf(stderr, "%s\n", dlerror()), 3;
        bad += cuModuleGetFunction(&functions[i], NULL, name);
    }
    launch(NULL);
    const long asked = many_asked();
    dl_iterate_phdr(locked, NULL);
    printf("bad: %d\nlaunches: %ld\nasked: %ld\n", bad, launched, many_asked() - asked);
    return 0;
}
