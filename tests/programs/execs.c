/* Programs that become others, against a driver that does nothing (stub_driver.c), which is opened when it is used.
 *   execs chain N    becomes itself N times; launches at the beginning and at the end, and says there what it has open and mapped
 *   execs HOW        fails to become several things, launches, and becomes itself by one of the exec functions, to launch again
 */
#include "driver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static int launch(void) {
    driver_start();
    return launch_kernel(kernel_of("k"), 4000, 256, NULL);
}

static void say(const char *when) {
    int files = 0, maps = 0, c;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        files++;
    closedir(folder);
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && (c = fgetc(file)) != EOF)
        maps += c == '\n';
    fclose(file);
    printf("%s: %d descriptors, %d mappings\n", when, files, maps);
    fflush(stdout);
}

static int become(const char *how, const char *path, char *const *words) {
    if (strcmp(how, "execl") == 0)
        return execl(path, words[0], words[1], (char *)NULL);
    if (strcmp(how, "execlp") == 0)
        return execlp(path, words[0], words[1], (char *)NULL);
    if (strcmp(how, "execle") == 0)
        return execle(path, words[0], words[1], (char *)NULL, environ);
    if (strcmp(how, "execv") == 0)
        return execv(path, words);
    if (strcmp(how, "execvp") == 0)
        return execvp(path, words);
    if (strcmp(how, "execvpe") == 0)
        return execvpe(path, words, environ);
    if (strcmp(how, "execve") == 0)
        return execve(path, words, environ);
    if (strcmp(how, "fexecve") == 0)
        return fexecve(open(path, O_RDONLY | O_CLOEXEC), words, environ);
    return (int)syscall(SYS_execveat, AT_FDCWD, path, words, environ, 0);
}

int main(int argc, char **argv) {
    char number[16];
    if (argc == 3) {
        const int left = atoi(argv[2]);
        char *words[] = {argv[0], argv[1], number, NULL};
        const int first = getenv("STARTED") == NULL;
        if (first) {
            say("first");
            if (launch())
                return 1;
            setenv("STARTED", "1", 1);
        }
        if (left == 0) {
            say("last");
            return launch();
        }
        snprintf(number, sizeof number, "%d", left - 1);
        execv(argv[0], words);
        return 3;
    }
    if (strcmp(argv[1], "leaf") == 0)
        return launch() ? 1 : 7;
    char *words[] = {argv[0], (char *)"leaf", NULL};
    static const char *const wrong[] = {"/nonexistent/program", "/", "/etc/passwd", "/etc/passwd/program"};
    for (int i = 0; i < 4; i++) {
        errno = 0;
        int result = become(argv[1], wrong[i], words);
        printf("%s: %d %d\n", wrong[i], result, errno);
    }
    printf("launched: %d\n", launch());
    fflush(stdout);
    become(argv[1], argv[0], words);
    return 4;
}
