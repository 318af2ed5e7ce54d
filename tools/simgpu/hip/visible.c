/* Devices that the environment hides or puts in another order: ROCR_VISIBLE_DEVICES first, then HIP_VISIBLE_DEVICES,
 * or CUDA_VISIBLE_DEVICES where that is not set, as in the real runtime. Lists of numbers; ROCR's may name a device by
 * the UUID that hipDeviceGetUuid answers (GPU-...). What is no device ends a list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sim.h"

static int index_of(const char *word, size_t length) {
    char *end;
    if (length > 4 && strncmp(word, "GPU-", 4) == 0) {
        for (int i = 0; i < sim_config.devices; i++) {
            char uuid[17];
            sim_device_uuid(i, uuid);
            if (strlen(uuid) == length - 4 && strncmp(uuid, word + 4, length - 4) == 0)
                return i;
        }
        return -1;
    }
    const long number = strtol(word, &end, 10);
    return end == word + length && length > 0 && number >= 0 && number < sim_config.devices ? (int)number : -1;
}

static void keep(const char *list) {
    struct gpu kept[MAX_DEVICES];
    bool taken[MAX_DEVICES] = {false};
    int count = 0;
    for (const char *at = list; at != NULL;) {
        const size_t length = strcspn(at, ",");
        const int index = index_of(at, length);
        if (index < 0 || taken[index])
            break;
        taken[index] = true;
        kept[count++] = sim_config.gpus[index];
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    memcpy(sim_config.gpus, kept, (size_t)count * sizeof *kept);
    sim_config.devices = count;
}

void sim_config_hide(void) {
    const char *const rocr = getenv("ROCR_VISIBLE_DEVICES");
    const char *const hip = getenv("HIP_VISIBLE_DEVICES"), *const cuda = getenv("CUDA_VISIBLE_DEVICES");
    if (rocr != NULL)
        keep(rocr);
    if (hip != NULL)
        keep(hip);
    else if (cuda != NULL)
        keep(cuda);
}
