/* SPDX-License-Identifier: Apache-2.0
 * Files beside a program: its kernels, and what they cost on the simulated GPU. */
#ifndef OVERLAP_DEMO_BESIDE_H
#define OVERLAP_DEMO_BESIDE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* A path that is valid until the next call; NULL: it is too long, or the program's own is unknown. */
static inline const char *beside(const char *name) {
    static char path[PATH_SIZE];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return NULL;
    path[length] = '\0';
    char *const end = strrchr(path, '/') + 1;
    const int written = snprintf(end, (size_t)(path + sizeof path - end), "%s", name);
    return written > 0 && written < path + sizeof path - end ? path : NULL;
}

/* Unless the user has chosen others. A real GPU does not look at them. */
static inline void use_own_costs(void) {
    const char *const costs = beside("costs.yaml");
    if (costs != NULL && access(costs, R_OK) == 0)
        setenv("SIMGPU_COSTS", costs, 0);
}

#endif
