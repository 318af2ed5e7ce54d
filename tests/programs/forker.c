/* Children that only exit.
 * forker loader | opening: while another thread is inside dl_iterate_phdr, or in the constructor of a library that it
 *   opens; a child that has not ended after 20 s hangs
 * forker raw: a child by a system call that libc does not know of; then the parent ends by _exit
 * gpu, as a second word: the parent has launched before */
#include "driver.h"

#include "wait_for.h"

#include <link.h>
#include <pthread.h>
#include <sys/syscall.h>

static int inside, leave;
void forker_wait(void);
void forker_wait(void) {
    __atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&leave, __ATOMIC_ACQUIRE))
        usleep(1000);
}

static int callback(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info, (void)size, (void)data;
    forker_wait();
    return 1;
}

static void *loader(void *library) {
    if (library)
        dlopen(library, RTLD_NOW);
    else
        dl_iterate_phdr(callback, NULL);
    return NULL;
}

static void launch(void) {
    driver_start();
    printf("bad: %d\n", launch_kernel(kernel_of("k"), 4000, 256, NULL));
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "loader";
    int raw = strcmp(way, "raw") == 0;
    pthread_t thread;
    if (argc > 2 && strcmp(argv[2], "gpu") == 0)
        launch();
    fflush(stdout);
    if (!raw) {
        pthread_create(&thread, NULL, loader, *way == 'o' ? argv[3] : NULL);
        while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
            usleep(1000);
    }
    pid_t child = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child == 0)
        exit(7);
    int status = wait_for(child);
    __atomic_store_n(&leave, 1, __ATOMIC_RELEASE);
    if (!raw)
        pthread_join(thread, NULL);
    printf("child: %d\n", status);
    fflush(stdout);
    if (raw)
        _exit(0);
    return 0;
}
