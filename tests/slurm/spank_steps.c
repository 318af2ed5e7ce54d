/* Slurm as the SPANK plugin sees it, without Slurm: plugin.c and its like are linked to this, under sanitizers.
 *
 *   PROGRAM local|allocator OPTION PLUGIN-ARGUMENT...         ends with 1 where the option is refused
 *   PROGRAM remote STEP OPTION COMMAND PLUGIN-ARGUMENT...     OPTION -: none. The job's environment comes from stdin and
 *                                                             goes, as a task gets it, to stdout; a NUL behind each
 *                                                             entry
 *
 * What the plugin says goes to stderr, a word for its level in front. Job 7, of a user whose home
 * is HOME_OF_USER. */
#include <pwd.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct spank_handle {
    spank_context_t context;
    uint32_t step;
    char *command[1];
    char *environment[4096];
    size_t count;
    struct spank_option *option;
};
static struct spank_handle handle;

spank_context_t spank_context(void) {
    return handle.context;
}

int spank_remote(spank_t spank) {
    return spank->context == S_CTX_REMOTE;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *option) {
    spank->option = option;
    return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...) {
    spank_err_t done = ESPANK_SUCCESS;
    va_list rest;
    va_start(rest, item);
    if (item == S_JOB_ENV) {
        *va_arg(rest, char ***) = spank->environment;
    } else if (item == S_JOB_ARGV) {
        *va_arg(rest, int *) = 1;
        *va_arg(rest, char ***) = spank->command;
    } else if (item == S_JOB_ID) {
        *va_arg(rest, uint32_t *) = 7;
    } else if (item == S_JOB_STEPID) {
        *va_arg(rest, uint32_t *) = spank->step;
    } else if (item == S_JOB_UID) {
        *va_arg(rest, uid_t *) = getuid();
    } else {
        done = ESPANK_BAD_ARG;
    }
    va_end(rest);
    return done;
}

static char **find(spank_t spank, const char *name) {
    size_t length = strlen(name);
    char **entry = spank->environment;
    while (*entry && (strncmp(*entry, name, length) != 0 || (*entry)[length] != '='))
        entry++;
    return entry;
}

/* Freed and moved, as Slurm does, so that whoever keeps a pointer is found out. */
spank_err_t spank_unsetenv(spank_t spank, const char *name) {
    char **entry = find(spank, name);
    if (*entry) {
        free(*entry);
        memmove(entry, entry + 1, sizeof *entry * (size_t)(spank->environment + spank->count-- - entry));
    }
    return ESPANK_SUCCESS;
}

spank_err_t spank_setenv(spank_t spank, const char *name, const char *value, int overwrite) {
    char *made = NULL;
    if (*find(spank, name) && !overwrite)
        return ESPANK_ENV_EXISTS;
    if (spank->count > 4000 || asprintf(&made, "%s=%s", name, value) < 0)
        return ESPANK_NOSPACE;
    spank_unsetenv(spank, name);
    spank->environment[spank->count++] = made;
    return ESPANK_SUCCESS;
}

/* The user's entry in the system's list: the home is that of HOME_OF_USER. */
int getpwuid_r(uid_t user, struct passwd *entry, char *buffer, size_t size, struct passwd **found) {
    (void)user;
    *found = NULL;
    if (snprintf(buffer, size, "%s", getenv("HOME_OF_USER")) > 0)
        *found = entry;
    entry->pw_dir = buffer;
    return 0;
}

static void say(const char *level, const char *format, va_list rest) {
    fprintf(stderr, "%s: ", level);
    vfprintf(stderr, format, rest);
    fputc('\n', stderr);
}

#define SAYS(name, level)                                                                                              \
    void name(const char *format, ...) {                                                                               \
        va_list rest;                                                                                                  \
        va_start(rest, format);                                                                                        \
        say(level, format, rest);                                                                                      \
        va_end(rest);                                                                                                  \
    }
SAYS(slurm_error, "error")
SAYS(slurm_info, "info")
SAYS(slurm_verbose, "verbose")

static void read_environment(void) {
    char *entry = NULL;
    size_t size = 0;
    while (handle.count < 4000 && getdelim(&entry, &size, 0, stdin) > 0)
        handle.environment[handle.count++] = strdup(entry);
    free(entry);
}

int main(int argc, char *argv[]) {
    bool remote = argc > 4 && strcmp(argv[1], "remote") == 0;
    int first = remote ? 5 : 3;
    if (argc < first)
        return 2;
    const char *option = argv[remote ? 3 : 2];
    if (remote) {
        handle.context = S_CTX_REMOTE;
        handle.step = (uint32_t)strtoul(argv[2], NULL, 0);
        handle.command[0] = argv[4];
        read_environment();
    } else {
        handle.context = strcmp(argv[1], "local") == 0 ? S_CTX_LOCAL : S_CTX_ALLOCATOR;
    }
    char **words = argv + first;
    int count = argc - first;
    int failed = slurm_spank_init(&handle, count, words);
    if (strcmp(option, "-") != 0 && handle.option->cb(handle.option->val, option, remote) != 0)
        return 1;
    failed += slurm_spank_init_post_opt(&handle, count, words);
    if (remote) {
        failed += slurm_spank_user_init(&handle, count, words);
        failed += slurm_spank_task_init(&handle, count, words);
        for (size_t i = 0; i < handle.count; i++) {
            fwrite(handle.environment[i], 1, strlen(handle.environment[i]) + 1, stdout);
            free(handle.environment[i]);
        }
    }
    return failed ? 3 : 0;
}
