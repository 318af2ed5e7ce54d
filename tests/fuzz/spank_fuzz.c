/* Readers of the SPANK plugin, fed with bytes from anywhere (fuzz.h): as an env/NAME.env and as the value of LD_PRELOAD.
 * Accepted: the bytes hold a policy. */
#include "../../tools/slurm/spank/preload.h"
#include "../../tools/slurm/spank/site.h"

#define FUZZ_MOST (1 << 16)
#include "fuzz.h"

static void expect(bool true_of_all) {
    if (!true_of_all)
        abort();
}

static size_t plain(const char *text) {
    return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/+:=@%~,-");
}

static void check_policy(const struct policy *policy) {
    expect(*policy->table && !policy->table[plain(policy->table)] && !strchr(policy->table, ':'));
    expect(*policy->library == '/' && !policy->library[strcspn(policy->library, ": ")]);
    for (size_t i = 0; i < policy->count; i++) {
        const char *name = policy->settings[i].name;
        expect(!name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] && *name > '9');
        expect(strncmp(name, "LD_", 3) != 0 && strncmp(name, "SLURM", 5) != 0 && strcmp(name, "PATH") != 0);
        expect(!policy->settings[i].value[plain(policy->settings[i].value)]);
    }
}

static void check_preload(const char *value) {
    char *with = preload_with(value, "/o/" LIBRARY_NAME), *without = preload_without(with);
    char *again = preload_with(with, "/o/" LIBRARY_NAME), *found = preload_find(with);
    char *none = preload_find(without);
    expect(with && without && again && found && !none);
    expect(strcmp(with, again) == 0 && strcmp(found, "/o/" LIBRARY_NAME) == 0);
    expect(strlen(with) <= strlen(value) + sizeof "/o/" LIBRARY_NAME);
    free(with), free(without), free(again), free(found);
}

static bool fuzz_one(const uint8_t *data, size_t size) {
    struct policy policy;
    /* Memory of this very size: one byte behind it is noticed. A file with a NUL is not read at all. */
    char *text = strndup((const char *)data, size);
    if (!text)
        abort();
    check_preload(text);
    const bool good = site_parse_policy(text, &policy);
    if (good)
        check_policy(&policy);
    site_forget_policy(&policy);
    return good;
}

static void fuzz_repair(uint8_t *data, size_t size, size_t changed) {
    (void)data, (void)size, (void)changed;
}

static bool fuzz_announce(uint8_t *data, size_t size) {
    (void)data, (void)size;
    return false;
}
