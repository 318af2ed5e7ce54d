/* A SPANK plugin that does to a task what those of containers do: from user_init or task_init on, a folder is empty; on
 * one node, where one is named.
 *
 *     required spank_hide.so user_init|task_init FOLDER [NODE] */
#include <sched.h>
#include <slurm/spank.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

SPANK_PLUGIN(hide, 1)

static int hide(const char *here, int count, char *words[]) {
    char node[65] = "";
    if (count < 2 || strcmp(words[0], here) != 0 || gethostname(node, sizeof node - 1) != 0 ||
        (count > 2 && strcmp(words[2], node) != 0))
        return 0;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", words[1], "tmpfs", 0, NULL) != 0)
        return -1;
    return 0;
}

int slurm_spank_user_init(spank_t spank, int count, char *words[]) {
    (void)spank;
    return hide("user_init", count, words);
}

int slurm_spank_task_init(spank_t spank, int count, char *words[]) {
    (void)spank;
    return hide("task_init", count, words);
}
