/* Maps a size of dynamic shared memory that we have set back to the size that the program asked for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct handle;

/* Records that launches asking for `asked` bytes are made with `launched` bytes, even if both are equal. */
void size_note(const struct handle *handle, uint32_t asked, uint32_t launched);
/* Sets *asked to the size behind `launched`. False: it is the same as far as recorded, or several sizes became this
 * one. */
bool size_asked(const struct handle *handle, uint32_t launched, uint32_t *asked);
/* Is it a size that only we have launched the kernel with? A program that has read it from a node may ask for it. */
bool size_is_ours(const struct handle *handle, uint32_t bytes);

#pragma GCC visibility pop
