/* Puts a task into a folder when and how pyxis does: in task_init, before the TaskProlog. A SPANK plugin; the task's
 * CONTAINER_IMAGE is the folder, CONTAINER_MOUNTS a path that is there at the same place, read-only, and
 * CONTAINER_REPORT one for reports.
 */
#include <sched.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

SPANK_PLUGIN(fake_pyxis, 1)

static int bind(const char *image, const char *path, const char *place) {
    char at[4096];
    snprintf(at, sizeof at, "%s%s", image, place);
    return mount(path, at, NULL, MS_BIND | MS_REC, NULL);
}

int slurm_spank_task_init(spank_t spank, int count, char **words) {
    char image[2048], path[2048];
    (void)count, (void)words;
    if (spank_getenv(spank, "CONTAINER_IMAGE", image, sizeof image) != ESPANK_SUCCESS)
        return 0;
    if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return -1;
    if (bind(image, "/dev", "/dev") || bind(image, "/proc", "/proc"))
        return -1;
    if (spank_getenv(spank, "CONTAINER_REPORT", path, sizeof path) == ESPANK_SUCCESS && bind(image, path, "/report"))
        return -1;
    if (spank_getenv(spank, "CONTAINER_MOUNTS", path, sizeof path) == ESPANK_SUCCESS && bind(image, path, path))
        return -1;
    return chroot(image) || chdir("/") ? -1 : 0;
}
