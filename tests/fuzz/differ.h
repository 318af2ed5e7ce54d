/* What the fuzzer that compares runs with and without the library knows of no vendor: random numbers, handles in slots,
 * out-values, and the record of a run. differ.c runs; differ_cuda.h says what arguments are.
 *
 * Everything about a call comes from the seed and the number of the call alone, so that a program without some of its
 * calls is a program still: the tool shrinks one by leaving numbers out. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 }; /* calls in a row that have a theme, a thread and favourite handles in common */

static uint64_t seed;
static unsigned number; /* of this call */
static uint64_t state;  /* of its random numbers */

static uint64_t mixed(uint64_t a, uint64_t b) {
    uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static uint32_t roll(uint32_t sides) {
    state = mixed(state, 1);
    return (uint32_t)((state >> 32) * sides >> 32);
}
/* The same for all calls of a block. */
static uint32_t of_block(uint32_t what, uint32_t sides) {
    return (uint32_t)((mixed(mixed(seed, number / BLOCK), 1000 + what) >> 32) * sides >> 32);
}
static int64_t one_of(const int64_t *values, size_t count) {
    return values[roll((uint32_t)count)];
}
#define ONE_OF(...) one_of((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
/* A bad one now and then. */
#define OFTEN(bad, ...) (roll(30) ? ONE_OF(__VA_ARGS__) : (bad))
/* A pointer that is left out now and then. */
static void *mostly(void *pointer) {
    return roll(40) ? pointer : NULL;
}

/* ---- Handles: by kind, in slots that calls fill and empty ---- */

enum { SLOTS = 10, NUMBERED = 1 << 16 };
enum { PARENTS = 12 };
static struct slot {
    void *handle;
    int live;
    void *parents[PARENTS]; /* what the call that made it used */
} slots[KINDS][SLOTS];
static struct slot *doomed; /* the call ends it if it succeeds */
static void *used[PARENTS];
static int used_count;
/* Where the driver gives handles out again, what one means after its end depends on which others there were; the library
 * asks for some. So in every second program none is used after its end, and in the others none is given out again. */
static int uses_ended;

/* The number of a handle is that of its making: addresses are given out again, and differ from run to run. */
static struct {
    void *handle;
    unsigned number;
} numbered[NUMBERED];
static unsigned made;

static unsigned place_of(const void *handle) {
    unsigned at = (unsigned)(mixed((uintptr_t)handle, 7) % NUMBERED);
    while (numbered[at].handle && numbered[at].handle != handle)
        at = (at + 1) % NUMBERED;
    return at;
}
static int number_of(const void *handle) {
    const unsigned at = place_of(handle);
    return !handle ? 0 : numbered[at].handle ? (int)numbered[at].number : -1;
}
/* Those that are no longer than a default stream are numbers, not addresses. */
static int is_address(const void *handle) {
    return (uintptr_t)handle > 4096;
}

/* One that a call uses: most often a live one, and the favourite of its block. */
static struct slot *slot_of(enum kind kind) {
    static struct slot nothing;
    const uint32_t favourite = of_block(kind, SLOTS);
    const int ended = uses_ended && kind != ADDRESS, any = roll(24) == 0; /* a driver would follow a bad address */
    struct slot *found = &slots[kind][roll(2) ? favourite : roll(SLOTS)];
    for (uint32_t i = 0; !(any && ended) && !found->live && i < SLOTS; i++)
        found = &slots[kind][(favourite + i) % SLOTS];
    nothing = (struct slot){0};
    return found->live || ended ? found : &nothing;
}
static void used_by_call(void *handle) {
    if (handle && used_count < PARENTS)
        used[used_count++] = handle;
}
static void *use(enum kind kind) {
    if (!roll(60))
        return NULL;
    const struct slot *slot = slot_of(kind);
    used_by_call(slot->handle);
    for (int i = 0; i < PARENTS; i++) /* theirs may be in no slot any more */
        used_by_call(slot->parents[i]);
    return slot->handle;
}
static void *end(enum kind kind) {
    doomed = slot_of(kind);
    return doomed->handle;
}
/* Graphs hold functions of a module, whatever made their nodes. */
static void end_graphs(void) {
    static const enum kind kinds[] = {GRAPH, NODE, EXEC};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int k = 0; k < SLOTS; k++)
            slots[kinds[i]][k].live = 0;
}
/* And all that was made of it, and of that. */
static void end_slot(struct slot *slot) {
    if (!slot->live)
        return;
    slot->live = 0;
    if (slot >= slots[MODULE] && slot < slots[MODULE + 2]) /* or a library */
        end_graphs();
    for (struct slot *one = &slots[0][0]; one < &slots[KINDS][0]; one++)
        for (int i = 0; one->live && i < PARENTS; i++)
            if (one->parents[i] == slot->handle)
                end_slot(one);
}
/* After the end of a context: what was made while it was current is not known. */
static void end_all(void) {
    for (struct slot *one = &slots[0][0]; one < &slots[KINDS][0]; one++)
        one->live = 0;
}

/* ---- Out-values ---- */

enum { OUTS = 40, UNTOUCHED = 0x55 };
enum { OF_HANDLE, OF_INT, OF_SIZE, OF_WORD };
static struct out {
    int type, kind;
    union {
        void *handle;
        int integer;
        size_t size;
    } value;
} outs[OUTS];
static int out_count;

static void *out(int type, int kind) {
    if (out_count >= OUTS)
        abort();
    struct out *made_out = &outs[out_count++];
    *made_out = (struct out){.type = type, .kind = kind};
    memset(&made_out->value, UNTOUCHED, sizeof made_out->value);
    return &made_out->value;
}
static void *make(enum kind kind) {
    return mostly(out(OF_HANDLE, (int)kind));
}
/* A node that is to blame: whether one that nothing is to blame for is written as NULL is not said. */
static void *told_after_failure(void) {
    void **handle = out(OF_HANDLE, 0);
    *handle = NULL;
    return mostly(handle);
}
/* Several at once. */
enum { MANY = 8 };
static void *many[MANY];
static enum kind many_kind;
static void *make_many(enum kind kind) {
    many_kind = kind;
    memset(many, UNTOUCHED, sizeof many);
    return mostly(many);
}
/* Bytes that are written, of which so many are told. */
static char shown[256] __attribute__((aligned(16)));
static int shown_bytes;
__attribute__((unused)) static void *shows(int bytes) {
    memset(shown, UNTOUCHED, sizeof shown);
    shown_bytes = bytes;
    return mostly(shown);
}
static void *told(int type) {
    return mostly(out(type, 0));
}

/* ---- The record: text in memory that is a file, so that it outlives a crash ---- */

static char *record;
static size_t recorded, room;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(record + recorded, room - recorded, format, arguments);
    va_end(arguments);
    if (length < 0 || recorded + (size_t)length >= room)
        abort();
    recorded += (size_t)length;
}

static void say_handle(void *handle) {
    if (is_address(handle))
        say(" #%d", number_of(handle));
    else
        say(" =%d", (int)(uintptr_t)handle);
}
/* Arguments, for people: with DIFFER_ARGUMENTS in the environment. */
static int verbose;
static void show_word(const char *name, uint64_t value) {
    if (numbered[place_of((void *)(uintptr_t)value)].handle)
        say("%s=#%d ", name, number_of((void *)(uintptr_t)value));
    else if (value > UINT32_MAX && (value >> 31) + 1 != (uint64_t)1 << 33)
        say("%s=* ", name);
    else
        say("%s=%d ", name, (int)value);
}
static int is_untouched(const struct out *one) {
    struct out none;
    memset(&none.value, UNTOUCHED, sizeof none.value);
    return !memcmp(&one->value, &none.value, one->type == OF_INT ? sizeof(int) : sizeof(void *));
}

/* One that a call has made, or told again. */
static void keep(enum kind kind, void *handle) {
    const unsigned at = place_of(handle);
    if (!numbered[at].handle) {
        if (made > NUMBERED / 2)
            abort();
        numbered[at].handle = handle;
    }
    numbered[at].number = ++made;
    struct slot *into = &slots[kind][roll(2) ? of_block(kind, SLOTS) : roll(SLOTS)];
    for (int i = 0; i < SLOTS && into->live; i++)
        if (!slots[kind][i].live)
            into = &slots[kind][i];
    *into = (struct slot){.handle = handle, .live = 1};
    memcpy(into->parents, used, sizeof used);
}

static void say_outs(int succeeded) {
    for (int i = 0; i < out_count; i++) {
        struct out *one = &outs[i];
        if (is_untouched(one)) {
            say(" .");
            continue;
        }
        if (one->type == OF_HANDLE && one->kind != NO_KIND && succeeded && is_address(one->value.handle))
            keep((enum kind)one->kind, one->value.handle);
        if (one->type == OF_HANDLE)
            say_handle(one->value.handle);
        else if (one->type == OF_INT)
            say(" %d", one->value.integer);
        else if (one->type == OF_SIZE)
            say(" %zu", one->value.size);
        else
            say(" %s", one->value.handle ? "some" : "none");
    }
}

static void say_many(int succeeded) {
    void *none;
    memset(&none, UNTOUCHED, sizeof none);
    for (int i = 0; many_kind != NO_KIND && succeeded && i < MANY && many[i] != none; i++) {
        keep(many_kind, many[i]);
        say_handle(many[i]);
    }
    for (int i = 0; i < shown_bytes; i++)
        say("%s%02x", i ? "" : " ", (unsigned char)shown[i]);
}

/* ---- What is called ---- */

struct row {
    const char *name;
    int (*call)(void (*function)(void));
    void (*linked)(void);
};
struct theme {
    const char *name;
    const char *about[16];    /* patterns, one of which a call is by */
    const char *fixed[BLOCK]; /* for some calls of the block: the one */
};
