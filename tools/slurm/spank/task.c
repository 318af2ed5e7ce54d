/* Runs in the task, as its user, inside its container: what is looked for here is what the program will see.
 *
 * What we add is marked: beside NAME=VALUE stands OVERLAP_ADDED_NAME=VALUE. The environment of a batch script leaks into
 * its steps, and a step that chooses for itself takes back by the marks what was added outside, and nothing that the
 * user has set. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload.h"
#include "task.h"

static const char mark[] = "OVERLAP_ADDED_";
enum { NAME_LIMIT = 256, MARKS = 2 * SETTINGS };

static char **environment(spank_t spank) {
    char **found = NULL;
    return spank_get_item(spank, S_JOB_ENV, &found) == ESPANK_SUCCESS ? found : NULL;
}

const char *task_variable(spank_t spank, const char *name) {
    size_t length = strlen(name);
    for (char **entry = environment(spank); entry && *entry; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

/* As the shells say it: an empty one is none. */
static bool is_set(spank_t spank, const char *name) {
    const char *value = task_variable(spank, name);
    return value && *value;
}

static bool is(spank_t spank, const char *name, const char *value) {
    const char *now = task_variable(spank, name);
    return now && strcmp(now, value) == 0;
}

static bool set(spank_t spank, const char *name, const char *value) {
    return spank_setenv(spank, name, value, 1) == ESPANK_SUCCESS;
}

/* The mark first: without it the variable could not be taken back. */
static void overrule(spank_t spank, const char *name, const char *value) {
    char marked[NAME_LIMIT];
    bool fits = snprintf(marked, sizeof marked, "%s%s", mark, name) < (int)sizeof marked;
    if (fits && set(spank, marked, value))
        set(spank, name, value);
}

static void add(spank_t spank, const char *name, const char *value) {
    if (!task_variable(spank, name))
        overrule(spank, name, value);
}

/* The value of the first mark; its own name into `marked`. */
static const char *find_mark(spank_t spank, char marked[NAME_LIMIT]) {
    for (char **entry = environment(spank); entry && *entry; entry++) {
        const char *sign = strchr(*entry, '=');
        size_t length = sign ? (size_t)(sign - *entry) : 0;
        if (length <= sizeof mark - 1 || length >= NAME_LIMIT || strncmp(*entry, mark, sizeof mark - 1) != 0)
            continue;
        memcpy(marked, *entry, length);
        marked[length] = 0;
        return sign + 1;
    }
    return NULL;
}

/* All that are marked. One that the user has changed since stays. */
static void take_back(spank_t spank) {
    char marked[NAME_LIMIT];
    const char *value;
    for (int i = 0; i < MARKS && (value = find_mark(spank, marked)); i++) {
        if (is(spank, marked + sizeof mark - 1, value))
            spank_unsetenv(spank, marked + sizeof mark - 1);
        spank_unsetenv(spank, marked);
    }
}

/* Takes over `value`. */
static bool set_preload(spank_t spank, char *value) {
    bool done =
        value && (*value ? set(spank, "LD_PRELOAD", value) : spank_unsetenv(spank, "LD_PRELOAD") == ESPANK_SUCCESS);
    free(value);
    return done;
}

static void unload(spank_t spank) {
    const char *now = task_variable(spank, "LD_PRELOAD");
    if (now && strstr(now, LIBRARY_NAME))
        set_preload(spank, preload_without(now));
}

/* mpirun of a batch script starts these on the other nodes, by srun: their ranks are those of the script's own run. */
static bool is_part_of_mpirun(spank_t spank) {
    static const char *const names[] = {"orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy", "pmi_proxy"};
    int count = 0;
    char **words = NULL;
    if (spank_get_item(spank, S_JOB_ARGV, &count, &words) != ESPANK_SUCCESS || count < 1 || !words || !words[0])
        return false;
    const char *slash = strrchr(words[0], '/'), *program = slash ? slash + 1 : words[0];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(program, names[i]) == 0)
            return true;
    return false;
}

/* How often the job was requeued; nothing else: 0. */
static uint32_t restarts(spank_t spank) {
    const char *said = task_variable(spank, "SLURM_RESTART_COUNT");
    size_t length = said ? strspn(said, "0123456789") : 0;
    bool number = length && length <= 10 && !said[length] && (length == 1 || *said != '0');
    unsigned long long count = number ? strtoull(said, NULL, 10) : 0;
    return count <= UINT32_MAX ? (uint32_t)count : 0;
}

/* The pages of all ranks of a step belong to one run, although nobody started it as one: the same digits as those of
 * task-prolog and pyshim/launch/rank.py. What another step of this job has left, such as that of its script, is
 * replaced. */
static void name_run(spank_t spank) {
    enum { OF_JOB = 8, OF_STEP = 8 };
    uint32_t job = 0, step = 0;
    char run[OF_JOB + OF_STEP + 1];
    if (!is_set(spank, "OVERLAP_REPORT") || spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS)
        return;
    step ^= restarts(spank) % 256 << 24;
    snprintf(run, sizeof run, "%08x%08x", (unsigned)job, (unsigned)step);
    const char *now = task_variable(spank, "OVERLAP_RUN_ID");
    bool of_this_job = now && strlen(now) == strlen(run) && strncmp(now, run, OF_JOB) == 0;
    if (!is_set(spank, "OVERLAP_RUN_ID") || (of_this_job && !is_part_of_mpirun(spank)))
        overrule(spank, "OVERLAP_RUN_ID", run);
}

static void set_policy(spank_t spank, const struct step *step) {
    set(spank, "OVERLAP_TABLE", step->policy.table);
    for (size_t i = 0; i < step->policy.count; i++) {
        const struct setting *setting = step->policy.settings + i;
        const char *conf = task_variable(spank, "NCCL_CONF_FILE");
        if (strncmp(setting->name, "OVERLAP_", 8) == 0 || !site_in_nccl_conf(setting->name, conf, step->home))
            add(spank, setting->name, setting->value);
    }
}

static void forget_policy(spank_t spank) {
    unload(spank);
    spank_unsetenv(spank, "OVERLAP_TABLE");
}

/* To be freed. A policy from outside stands, and the library beside it, which reads it. */
static char *library_of(spank_t spank, const struct step *step, bool outer) {
    char *found = outer ? preload_find(task_variable(spank, "LD_PRELOAD")) : NULL;
    if (found && preload_is_loadable(found))
        return found;
    free(found);
    return strdup(outer ? step->library : step->policy.library);
}

void task_prepare(spank_t spank, const struct step *step) {
    if (step->own) {
        take_back(spank);
        forget_policy(spank);
    }
    if (is(spank, "OVERLAP_RUN", "off"))
        return;
    if (step->off) {
        forget_policy(spank);
        add(spank, "OVERLAP_RUN", "off"); /* for a TaskProlog that comes after us, and for what runs inside */
        return;
    }
    bool outer = is_set(spank, "OVERLAP_TABLE");
    if (!outer && !step->policy.table) {
        /* A TaskProlog behind us would go on to what the user or the site says, and an overlap-run inside would not know
         * the name. */
        if (*step->option)
            overrule(spank, "OVERLAP_POLICY", "off");
        return;
    }
    char *library = library_of(spank, step, outer);
    if (library && preload_is_loadable(library)) {
        if (!outer)
            set_policy(spank, step);
        char *entry = preload_entry(library);
        set_preload(spank, entry ? preload_with(task_variable(spank, "LD_PRELOAD"), entry) : NULL);
        free(entry);
        name_run(spank);
    } else {
        slurm_verbose("comm-overlap: %s cannot be loaded here: the task runs without it", library ? library : "");
        if (outer)
            unload(spank); /* it comes from another node: the loader would complain in every process */
    }
    free(library);
}
