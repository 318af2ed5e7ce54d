/* The first call by name of a process in a child that was forked while another thread was inside dl_iterate_phdr: glibc leaves
 * that lock taken in the child. The child's status is what the runtime answers (scope_caller.c), 99 if it hangs.
 * fork_first [PLUGIN]: by the program's own name, or by that of a library that is opened before. */
#include "scope_caller.c"

#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int inside, leave;

static int callback(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info, (void)size, (void)data;
    __atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&leave, __ATOMIC_ACQUIRE))
        usleep(1000);
    return 1;
}

static void *iterate(void *unused) {
    (void)unused;
    dl_iterate_phdr(callback, NULL);
    return NULL;
}

static void hangs(int signal) {
    (void)signal;
    _exit(99);
}

int main(int argc, char **argv) {
    pthread_t thread;
    int status = 0;
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*launch)(void) = plugin ? (int (*)(void))dlsym(plugin, "scope_launch") : scope_launch;
    pthread_create(&thread, NULL, iterate, NULL);
    while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
        usleep(1000);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGALRM, hangs);
        alarm(3);
        _exit(launch ? launch() : 98);
    }
    waitpid(child, &status, 0);
    __atomic_store_n(&leave, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    printf("child: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    printf("parent: %d\n", launch());
    return 0;
}
