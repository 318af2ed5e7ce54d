/* Handles: addresses of cells in one reserved region.
 *
 * A handle is good if it lies in the region, on a cell's border, and the cell holds the kind asked for; so whatever
 * a program passes, it is found out without following it. Cells given back are handed out again, last first, for
 * objects of the same kind: handles come back with another meaning, as on the real driver. The region asks for a
 * fixed address, so that two runs print the same numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim.h"

struct sim_cell {
    enum kind kind;
    uint32_t turn; /* how often it was handed out */
    void *object;
    struct sim_cell *next_free;
    char padding[40]; /* handles of the real driver are far apart, too */
};

_Static_assert(sizeof(struct sim_cell) == 64, "cells are 64 bytes");

enum { CELLS = 1 << 22 };
/* Below position-independent programs, and where AddressSanitizer and ThreadSanitizer let a program map memory. */
#define WISHED_ADDRESS ((void *)0x550000000000)

static struct sim_cell *cells;
static size_t used;
static struct sim_cell *free_cells[KINDS];

struct sim_cell *sim_handle_new(enum kind kind, void *object) {
    if (cells == NULL) {
        void *const region = mmap(WISHED_ADDRESS, CELLS * sizeof *cells, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (region == MAP_FAILED)
            return NULL;
        cells = region;
        used = 1; /* cell 0 is never a handle */
    }
    struct sim_cell *cell = free_cells[kind];
    if (cell != NULL)
        free_cells[kind] = cell->next_free;
    else if (used < CELLS)
        cell = &cells[used++];
    else
        return NULL;
    cell->kind = kind;
    cell->turn++;
    cell->object = object;
    return cell;
}

void *sim_handle_get(const void *handle, enum kind kind) {
    const uintptr_t address = (uintptr_t)handle, base = (uintptr_t)cells;
    if (cells == NULL || address <= base || address >= base + used * sizeof *cells)
        return NULL;
    if ((address - base) % sizeof *cells != 0)
        return NULL;
    const struct sim_cell *const cell = handle;
    return cell->kind == kind ? cell->object : NULL;
}

uint32_t sim_handle_turn(const void *handle, enum kind kind) {
    return sim_handle_get(handle, kind) != NULL ? ((const struct sim_cell *)handle)->turn : 0;
}

void sim_handle_free(struct sim_cell *handle) {
    if (handle == NULL)
        return;
    const enum kind kind = handle->kind;
    handle->kind = KIND_FREE;
    handle->object = NULL;
    if (sim_config.fresh_handles)
        return;
    handle->next_free = free_cells[kind];
    free_cells[kind] = handle;
}

unsigned long long sim_handle_number(const void *handle) {
    return (unsigned long long)(uintptr_t)handle;
}
