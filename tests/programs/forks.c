/* Children of a process whose threads launch kernels for the first time all the while, against a driver that does nothing
 * (stub_driver.c). Each child launches a kernel that nobody has launched, and ends with 7.
 *
 *   forks WAY COUNT THREADS
 *     fork daemon               the child launches, and exits
 *     clone                     it only exits; libc knows nothing of that process
 *     clone_exec fork_exec vfork spawn system popen   a program that is started launches
 *   forks leaf                  that program
 * A child that has not ended after 20 s hangs. Prints what went wrong.
 */
#define WAY_LINKED
#include "driver.h"
#include "wait_for.h"

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/syscall.h>

extern char **environ;
static void *module;
static int stop, failed;

static int launch(int number) {
    char name[24] = "k";
    void *function;
    snprintf(name, sizeof name, "k%d", number);
    return cuModuleGetFunction(&function, module, name) + launch_kernel(function, 4000, 256, NULL);
}

static void *work(void *place) {
    const int first = 1000 * (int)(intptr_t)place;
    for (int i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++)
        if (launch(first + i % 1000))
            __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
    return NULL;
}

static int start(void) {
    driver_start();
    return cuModuleLoadData(&module, "x");
}

static int spawn(char **leaf) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all;
    pid_t child;
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, 0);
    posix_spawn_file_actions_addopen(&actions, 5, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, 5, 9);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP |
                                              POSIX_SPAWN_RESETIDS);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &all);
    int wrong = posix_spawn(&child, leaf[0], &actions, &attributes, leaf, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return wrong ? -wrong : wait_for(child);
}

static int child_of(const char *way, char **leaf, int number) {
    char command[4096];
    pid_t child;
    if (strcmp(way, "spawn") == 0)
        return spawn(leaf);
    snprintf(command, sizeof command, "%s leaf", leaf[0]);
    if (strcmp(way, "system") == 0) {
        int status = system(command);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    if (strcmp(way, "popen") == 0) {
        FILE *pipe = popen(command, "r");
        int status = pipe ? pclose(pipe) : -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    if (strcmp(way, "vfork") == 0) {
        child = vfork();
        if (child == 0) {
            execv(leaf[0], leaf);
            _exit(1);
        }
        return wait_for(child);
    }
    child = strncmp(way, "clone", 5) == 0 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child == 0) {
        if (strcmp(way, "clone") == 0)
            exit(7);
        if (strstr(way, "_exec")) {
            execv(leaf[0], leaf);
            _exit(1);
        }
        if (strcmp(way, "daemon") == 0) { /* the grandchild does it, and its parent says how it went */
            setsid();
            pid_t own = fork();
            if (own != 0)
                _exit(wait_for(own));
        }
        int wrong = launch(1000000 + number);
        exit(wrong ? 1 : 7);
    }
    return wait_for(child);
}

int main(int argc, char **argv) {
    char *leaf[] = {argv[0], (char *)"leaf", NULL};
    if (argc == 2)
        return start() || launch(5) ? 1 : 7;
    if (argc != 4 || start())
        return 2;
    const int count = atoi(argv[2]), threads = atoi(argv[3]);
    pthread_t thread[64];
    int bad = 0;
    for (int i = 0; i < threads && i < 64; i++)
        pthread_create(&thread[i], NULL, work, (void *)(intptr_t)(i + 1));
    for (int i = 0; i < count; i++) {
        int status = child_of(argv[1], leaf, i);
        if (status != 7)
            printf("child %d: %d\n", i, status), fflush(stdout);
        bad += status != 7;
    }
    stop = 1;
    for (int i = 0; i < threads && i < 64; i++)
        pthread_join(thread[i], NULL);
    printf("bad: %d, failed: %d\n", bad, failed);
    return 0;
}
