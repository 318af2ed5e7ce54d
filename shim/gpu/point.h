/* Named points at which a test holds a thread, so that two threads meet in one order (tests/race). Empty in the product. */
#pragma once

#ifdef OVERLAP_POINTS
/* Defined by the program of such a test only. */
extern void overlap_point(const char *name) __attribute__((weak, visibility("default")));
#define POINT(name) (overlap_point ? overlap_point(#name) : (void)0)
#else
#define POINT(name) ((void)0)
#endif
