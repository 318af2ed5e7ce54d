/* srun, sbatch and salloc --comm-overlap=POLICY|off, as a SPANK plugin.
 *
 *     optional /opt/overlap/lib/slurm/overlap.so prefix=/opt/overlap [default=NAME]
 *
 * Where it runs: in srun, sbatch and salloc, where a bad name is refused; in slurmstepd on each node, of each step and of
 * the batch script, as root (init_post_opt) and then as the user (user_init), both outside of any container; and in each
 * task (task_init, task.c). Only the first of these may fail: all others return 0 whatever happens. */
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Slurm looks for these by name; nothing else is shown. */
#pragma GCC visibility push(default)
#include <slurm/slurm.h>
#include <slurm/spank.h>
SPANK_PLUGIN(overlap, 1)
#pragma GCC visibility pop

#include "site.h"
#include "task.h"

#define OPTION "comm-overlap"
/* What srun finds in its environment where sbatch or salloc was given the option. */
#define INHERITED "SLURM_SPANK__SLURM_SPANK_OPTION_overlap_comm_overlap"
#define LIBRARY "/lib/liboverlap.so"

static char prefix[PATH_MAX / 2] = "/opt/overlap"; /* empty: what plugstack.conf says cannot be used */
static char library[sizeof prefix + sizeof LIBRARY];
static char site_default[NAME_SIZE]; /* default=NAME */
static char option[NAME_SIZE];       /* what was asked for; empty: nothing */
static int folder = -1;              /* PREFIX, opened before a container hides it */
static char home[PATH_MAX];
static struct step step = {.option = option, .library = library, .home = home};

static bool is_local(void) {
    spank_context_t here = spank_context();
    return here == S_CTX_LOCAL || here == S_CTX_ALLOCATOR;
}

static int refuse(const char *why) {
    char names[2048] = "";
    if (*prefix)
        site_list_policies(prefix, names, sizeof names);
    slurm_error("--" OPTION ": %s: choose off%s%s", why, *names ? ", " : "", names);
    return -1;
}

/* In srun, sbatch and salloc: the one place where something may be refused. */
static int check(const char *word) {
    char missing[sizeof prefix + NAME_SIZE + 64];
    const char *inherited = getenv(INHERITED);
    if (strcmp(word, "off") == 0 || (inherited && strcmp(inherited, word) == 0))
        return 0; /* what was good at submission does not stop a step, hours later */
    if (!site_is_name(word))
        return refuse("a policy is named by letters, digits, dots, _ and -, with no dot in front");
    enum site_answer answer = *prefix ? site_has_policy(prefix, word) : SITE_UNKNOWN;
    if (answer == SITE_NOT_THERE) {
        snprintf(missing, sizeof missing, "there is no policy %s in %s/env", word, prefix);
        return refuse(missing);
    }
    if (answer == SITE_UNKNOWN)
        slurm_info("--" OPTION ": %s/env cannot be read here: a node that has no policy %s there runs without it",
                   prefix, word);
    return 0;
}

static void take(const char *word) {
    bool good = site_is_name(word);
    memcpy(option, good ? word : "", good ? strlen(word) + 1 : 1);
}

static int chosen(int value, const char *word, int remote) {
    (void)value;
    if (!remote && check(word) != 0)
        return -1;
    take(word);
    return 0;
}

static struct spank_option comm_overlap = {
    .name = OPTION,
    .arginfo = "POLICY|off",
    .usage = "run the tasks under this policy of overlap-run, or without it",
    .has_arg = 1,
    .cb = chosen,
};

static void read_argument(const char *word) {
    static const char names_prefix[] = "prefix=", names_default[] = "default=";
    if (strncmp(word, names_prefix, sizeof names_prefix - 1) == 0) {
        const char *path = word + sizeof names_prefix - 1;
        bool good = site_is_prefix(path);
        memcpy(prefix, good ? path : "", good ? strlen(path) + 1 : 1);
    } else if (strncmp(word, names_default, sizeof names_default - 1) == 0) {
        const char *name = word + sizeof names_default - 1;
        if (site_is_name(name))
            memcpy(site_default, name, strlen(name) + 1);
    }
}

int slurm_spank_init(spank_t spank, int count, char *words[]) {
    if (!is_local() && spank_remote(spank) != 1)
        return 0;
    for (int i = 0; i < count; i++)
        read_argument(words[i]);
    if (*prefix)
        snprintf(library, sizeof library, "%s" LIBRARY, prefix);
    spank_option_register(spank, &comm_overlap);
    return 0;
}

int slurm_spank_init_post_opt(spank_t spank, int count, char *words[]) {
    (void)count, (void)words;
    if (spank_remote(spank) == 1 && *prefix)
        folder = open(prefix, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return 0;
}

/* Under --export=NONE a task has no HOME. */
static void find_home(spank_t spank) {
    const char *said = task_variable(spank, "HOME");
    struct passwd entry, *found = NULL;
    char buffer[4096];
    uid_t user;
    if (!(said && *said) && spank_get_item(spank, S_JOB_UID, &user) == ESPANK_SUCCESS &&
        getpwuid_r(user, &entry, buffer, sizeof buffer, &found) == 0 && found)
        said = found->pw_dir;
    snprintf(home, sizeof home, "%s", said ? said : "");
}

/* ${XDG_CONFIG_HOME:-$HOME/.config}/overlap-run/policy, as the user: homes may be closed to root. */
static bool of_user(spank_t spank, char word[LINE_SIZE]) {
    char path[PATH_MAX + 64];
    const char *config = task_variable(spank, "XDG_CONFIG_HOME");
    bool own = config && *config;
    snprintf(path, sizeof path, "%s%s/overlap-run/policy", own ? config : home, own ? "" : "/.config");
    return site_first_line(AT_FDCWD, path, word);
}

static bool copy(char word[LINE_SIZE], const char *text) {
    return text && *text && snprintf(word, LINE_SIZE, "%s", text) > 0;
}

/* What the first one says who says anything; it need not be a name. */
static bool choose(spank_t spank, char word[LINE_SIZE]) {
    return copy(word, option) || copy(word, task_variable(spank, "OVERLAP_POLICY")) || of_user(spank, word) ||
           copy(word, site_default) || site_first_line(folder, "default", word);
}

static bool is_batch_script(spank_t spank) {
    uint32_t id = 0;
    return spank_get_item(spank, S_JOB_STEPID, &id) == ESPANK_SUCCESS && id == SLURM_BATCH_SCRIPT;
}

int slurm_spank_user_init(spank_t spank, int count, char *words[]) {
    char word[LINE_SIZE];
    const char *inherited = task_variable(spank, INHERITED);
    bool batch = is_batch_script(spank);
    (void)count, (void)words;
    if (batch && inherited && !*option)
        take(inherited); /* behind sbatch --export=NONE Slurm itself does not look there */
    step.own = *option && (batch || !inherited || strcmp(inherited, option) != 0);
    step.off = strcmp(option, "off") == 0;
    find_home(spank);
    if (choose(spank, word) && strcmp(word, "off") != 0 && !site_read_policy(folder, word, &step.policy))
        slurm_verbose(OPTION ": %s/env holds no policy of the name that was chosen: tasks run without it", prefix);
    if (folder >= 0)
        close(folder);
    folder = -1;
    return 0;
}

int slurm_spank_task_init(spank_t spank, int count, char *words[]) {
    (void)count, (void)words;
    task_prepare(spank, &step);
    return 0;
}
