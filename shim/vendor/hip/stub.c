#include "../common/vendor.h"
void hip_met(const struct overlap_object *object) {
    (void)object;
}
void *hip_thunk(enum overlap_way way, enum hook hook) {
    (void)way;
    (void)hook;
    return NULL;
}
uint64_t hip_context(void) {
    return 0;
}
bool hip_stream_facts(vendor_stream s, bool u, uint64_t *c, uint32_t *f) {
    (void)s;
    (void)u;
    (void)c;
    (void)f;
    return false;
}
int hip_captures(vendor_stream s, enum default_stream w) {
    (void)s;
    (void)w;
    return 1;
}
int hip_relax(void) {
    return -1;
}
void hip_restore(int m) {
    (void)m;
}
int hip_device(void) {
    return NO_DEVICE;
}
int hip_device_count(void) {
    return 0;
}
bool hip_limits(int o, struct overlap_gpu *g, uint8_t *u) {
    (void)o;
    (void)g;
    (void)u;
    return false;
}
bool hip_priorities(int *l, int *g) {
    (void)l;
    (void)g;
    return false;
}
const char *hip_kernel_name(const struct handle *h) {
    (void)h;
    return NULL;
}
bool hip_footprint(struct handle *h, const struct device *d, struct overlap_launch *l, bool *x) {
    (void)h;
    (void)d;
    (void)l;
    (void)x;
    return false;
}
struct handle *hip_handle_of(const struct request *r) {
    (void)r;
    return NULL;
}
void hip_forget(const struct handle *h) {
    (void)h;
}
uint32_t hip_graph_holds(vendor_graph g) {
    (void)g;
    return 0;
}
vendor_result hip_launch_with(struct request *r, uint32_t d) {
    (void)r;
    (void)d;
    return 3;
}
bool hip_is_refusal(vendor_result r) {
    (void)r;
    return false;
}
bool hip_prepare(struct handle *h, uint64_t w) {
    (void)h;
    (void)w;
    return false;
}
uint32_t hip_beyond(struct handle *h, int d, uint32_t x) {
    (void)h;
    (void)d;
    (void)x;
    return 0;
}
bool hip_raises(void) {
    return false;
}
vendor_result hip_communicate(struct request *r, uint64_t w, uint32_t *x, bool *y) {
    (void)r;
    (void)w;
    (void)x;
    (void)y;
    return 3;
}
void hip_prefer_shared(struct handle *h, int d) {
    (void)h;
    (void)d;
}
bool hip_prefers_cache(const struct handle *h, int d) {
    (void)h;
    (void)d;
    return false;
}
int table_named(const char *n) {
    (void)n;
    return -1;
}
void *table_symbol(int n) {
    (void)n;
    return NULL;
}
