/* What the files of this folder know of each other. */
#pragma once

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* At the regular end of the process (end.c). */
void overlap_process_ends(void);

/* Notes, in a process whose driver is mapped, a GPU that was used past our hooks; its launches may have gone past them, too
 * (unopened.c). */
void overlap_look_for_unseen(void);
/* May child processes have used the GPU? */
bool overlap_had_children(void);

#pragma GCC visibility pop
