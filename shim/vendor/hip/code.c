/* Registers of kernels by their descriptors, kept from the load of a module until the program obtains its functions.
 *
 * One table holds two kinds of entries: module -> number of its image, and image number and kernel name -> registers.
 * They are deleted when the module is unloaded. A kernel that does not fit into the table stays unknown, and so does
 * every kernel of a compressed module, because unpacking it would double the time that loading takes.
 */
#include "../../core/core.h"
#include "../../core/slots.h"
#include "../../sys/sys.h"
#include "hip.h"

enum { BITS = 17, REGISTERS_BITS = 16 };
#define ENTRIES (UINT64_C(1) << BITS)
#define KERNEL (UINT64_C(1) << 63) /* bit of the keys of kernels; no address has it */

static struct overlap_slot *table; /* NULL until a module was loaded */
static uint32_t images;            /* number of the last image that was read */

static struct overlap_slot *table_made(void) {
    struct overlap_slot *now = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    struct overlap_slot *made = now ? NULL : overlap_map(ENTRIES * sizeof *made);
    if (!made || __atomic_compare_exchange_n(&table, &now, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made ? made : now;
    overlap_unmap(made, ENTRIES * sizeof *made);
    return now;
}

static uint64_t key_for(uint64_t image, const char *name, size_t length) {
    return overlap_fnv(OVERLAP_FNV ^ image, name, length) | KERNEL;
}

static bool is_of_image(uint64_t key, uint64_t payload, uint64_t image) {
    return key & KERNEL && payload >> REGISTERS_BITS == image;
}

/* Context of learn(). */
struct learning {
    struct overlap_slot *slots; /* NULL until the image turns out to hold a kernel */
    uint64_t module, image;
};

static void learn(void *context, const char *kernel, size_t length, uint32_t registers) {
    struct learning *now = context;
    if (!now->slots) {
        if (!(now->slots = table_made()))
            return;
        const uint64_t before = overlap_slots_put(now->slots, BITS, now->module, now->image);
        if (before) /* an earlier module had this address */
            overlap_slots_sweep(now->slots, BITS, 0, is_of_image, before);
    }
    overlap_slots_put(now->slots, BITS, key_for(now->image, kernel, length), now->image << REGISTERS_BITS | registers);
}

void code_learn(hipModule_t module, const void *image, uint64_t size, const char *architecture) {
    struct learning now = {NULL, (uint64_t)(uintptr_t)module, __atomic_add_fetch(&images, 1, __ATOMIC_RELAXED)};
    overlap_code_kernels(image, size, architecture, learn, &now);
    if (now.slots &&
        overlap_slots_get(now.slots, BITS, now.module) != now.image) /* unloaded, or loaded again, meanwhile */
        overlap_slots_sweep(now.slots, BITS, 0, is_of_image, now.image);
}

uint32_t code_learned(void) {
    return OVERLAP_RELAXED(images);
}

void code_forget(hipModule_t module, uint32_t learned) {
    struct overlap_slot *slots = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    uint64_t image = overlap_slots_get(slots, BITS, (uint64_t)(uintptr_t)module);
    if (image && (int32_t)((uint32_t)image - learned) <= 0 &&
        overlap_slots_swap(slots, BITS, (uint64_t)(uintptr_t)module, &image, 0))
        overlap_slots_sweep(slots, BITS, 0, is_of_image, image);
}

uint32_t code_registers(hipModule_t module, const char *kernel) {
    const struct overlap_slot *slots = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    const uint64_t image = overlap_slots_get(slots, BITS, (uint64_t)(uintptr_t)module);
    return image ? (uint16_t)overlap_slots_get(slots, BITS, key_for(image, kernel, strlen(kernel))) : 0;
}
