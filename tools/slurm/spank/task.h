/* What is done to the environment of a task. */
#pragma once

#include <slurm/spank.h>
#include <stdbool.h>

#include "site.h"

/* What was found out before the tasks of a step are made, where a container hides nothing yet. */
struct step {
    bool off;             /* --comm-overlap=off; other ways to say it are read by TaskProlog and overlap-run, too */
    bool own;             /* --comm-overlap of this very step: stronger than what it inherits */
    const char *option;   /* --comm-overlap, also of the script around; empty: none */
    struct policy policy; /* empty: not found here, or not needed */
    const char *library;  /* PREFIX/lib/liboverlap.so */
    const char *home;     /* of the user; NULL: not known */
};

void task_prepare(spank_t spank, const struct step *step);

/* A variable of the job or task; NULL: not set. Valid until any is set. */
const char *task_variable(spank_t spank, const char *name);
