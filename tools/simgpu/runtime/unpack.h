/* Fat binaries with compressed entries, which the simulated driver does not take. */
#ifndef SIMGPU_UNPACK_H
#define SIMGPU_UNPACK_H

/* The same fat binary with nothing compressed in it, for free(); NULL where there is nothing to do or no way to. */
void *rt_unpack(const void *image);

#endif
