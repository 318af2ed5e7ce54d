/* The commands `overlap` and `overlap-run`: run overlap-run.py, which is installed in the same folder, by the Python that it names.
 *
 * Python runs with -E, because PYTHONHOME and PYTHONPATH may be meant for another Python, and stop this one before it has read a line
 * of ours. An installer of packages writes no such option into a script's first line. A shell in its place would change the
 * environment of the program: it drops names like BASH_FUNC_module%%, and sets PWD.
 *
 * Python ignores SIGPIPE and SIGXFSZ before it runs a line of ours, so which of them were ignored before is an argument of the script:
 * bits as in SigIgn of /proc/self/status. SIGINT is blocked while Python starts, which would answer it with a traceback; that it was
 * blocked before is another argument. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define SCRIPT ".overlap-run.py"

enum { CANNOT_START = 125, LONGEST_HEADER = 2 * PATH_MAX };

static int complain(const char *command, const char *what, const char *object) {
    fprintf(stderr, "%s: error: cannot start: %s: %s\n", command, what, object);
    fprintf(stderr, "%s: help: %s\n", command,
            "the installation is broken, or closed to this user: ls -lL shows the file's permissions; or install the "
            "package again");
    return CANNOT_START;
}

/* Write the path of this file, with symlinks resolved, into path: pipx and uv put symlinks on PATH. */
static int own_path(char path[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length > 0) {
        path[length] = 0;
        return 0;
    }
    const char *started = (const char *)getauxval(AT_EXECFN); /* /proc is not mounted */
    return started && realpath(started, path) ? 0 : -1;
}

/* Cut the interpreter's path out of `#!PATH`, or of the form that installers write where PATH has spaces or is longer than
 * the kernel reads:
 *     #!/bin/sh
 *     '''exec' "PATH" "$0" "$@"
 * uv's relocatable form begins with "$(dirname ...)"/ there, and names a file in the script's folder. Spack's sbang:
 *     #!/bin/sh /opt/spack/bin/sbang
 *     #!PATH */
static char *interpreter(char *text, const char *folder, char joined[2 * PATH_MAX]) {
    char *end = strchr(text, '\n');
    if (strncmp(text, "#!", 2) != 0 || !end)
        return NULL;
    *end = 0;
    char *path = end + 1;
    static const char shell[] = "#!/bin/sh ", sbang[] = "/sbang";
    size_t header = strlen(text);
    if (strncmp(text, shell, sizeof shell - 1) == 0 && header > sizeof sbang - 1 &&
        strcmp(text + header - (sizeof sbang - 1), sbang) == 0) {
        if (strncmp(path, "#!", 2) != 0 || !(end = strchr(path, '\n')))
            return NULL;
        *end = 0;
        return path + 2;
    }
    if (strcmp(text, "#!/bin/sh") != 0)
        return text + 2;
    static const char exec[] = "'''exec' ";
    end = strchr(path, '\n');
    if (!end || strncmp(path, exec, sizeof exec - 1) != 0)
        return NULL;
    *end = 0;
    path += sizeof exec - 1;
    if (!(end = strstr(path, " \"$0\" \"$@\"")))
        return NULL;
    *end = 0;
    char *relative = strncmp(path, "\"$(dirname", 10) == 0 ? strrchr(path, '/') : NULL;
    if (relative)
        path = relative + 1;
    size_t length = strlen(path);
    if (length < 2 || (*path != '"' && *path != '\'') || path[length - 1] != *path)
        return NULL;
    path[length - 1] = 0;
    path++;
    if (!relative)
        return path;
    snprintf(joined, 2 * PATH_MAX, "%s/%s", folder, path);
    return joined;
}

static unsigned long ignored_signals(void) {
    static const int numbers[] = {SIGPIPE, SIGXFSZ};
    unsigned long mask = 0;
    for (size_t index = 0; index < sizeof numbers / sizeof *numbers; index++) {
        struct sigaction action;
        if (sigaction(numbers[index], NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            mask |= 1ul << (numbers[index] - 1);
    }
    return mask;
}

/* Return whether SIGINT was blocked before. */
static int block_sigint(void) {
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    return sigprocmask(SIG_BLOCK, &set, &before) == 0 && sigismember(&before, SIGINT) == 1;
}

int main(int argc, char **argv, char **environment) {
    static char own[PATH_MAX], script[PATH_MAX + sizeof SCRIPT], text[LONGEST_HEADER], joined[2 * PATH_MAX];
    if (own_path(own) != 0)
        return complain("overlap-run", "the path of this command", strerror(errno));
    char *slash = strrchr(own, '/');
    const char *command = slash + 1;
    *slash = 0;
    snprintf(script, sizeof script, "%s/" SCRIPT, own);
    int file = open(script, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (length < 0)
        return complain(command, script, strerror(errno));
    close(file);
    char *python = interpreter(text, own, joined);
    if (!python)
        return complain(command, script, "its first lines name no Python");

    char **words = calloc((size_t)(argc > 0 ? argc : 1) + 6, sizeof *words);
    if (!words)
        return complain(command, "memory", strerror(errno));
    char ignored[32];
    snprintf(ignored, sizeof ignored, "%lu", ignored_signals());
    int count = 0;
    words[count++] = python;
    words[count++] = "-E";
    words[count++] = script;
    words[count++] = (char *)command;
    words[count++] = ignored;
    words[count++] = block_sigint() ? "blocked" : "";
    for (int index = 1; index < argc; index++)
        words[count++] = argv[index];
    execve(python, words, environment);
    int error = errno;
    /* A folder that was moved, and conda's `#!/usr/bin/env python`: the Python of the same folder. */
    snprintf(joined, sizeof joined, "%s/python3", own);
    words[0] = joined;
    if (error == ENOENT || error == ENOTDIR)
        execve(joined, words, environment);
    return complain(command, python, strerror(error));
}
