/* Arguments that mean the same to both vendors: makers that differ_rows.py finds by their names. */
#pragma once

/* Memory that a call may read and write: zeros, and the host's side of copies. */
static __attribute__((unused)) char zeros[8192] __attribute__((aligned(64))), host[8192] __attribute__((aligned(64)));

/* ---- Numbers ---- */

#define arg_uint32_t_flags() (uint32_t)OFTEN(77, 0, 0, 0, 1, 1, 2, 4, 8)
#define arg_uint64_t_flags() (uint64_t)OFTEN(77, 0, 0, 0, 0, 1, 2, 8, 8)
/* Half of the programs set no priorities; only in these streams are raised. */
#define arg_int_priority() (int)(seed & 2 ? 0 : ONE_OF(0, 0, -1, -2, -4, -5, -99, 3))
#define arg_int_mode() (int)ONE_OF(0, 1, 2, 2, 9)
#define arg_int_version() (int)ONE_OF(13000, 12000, 11030, 7000, 2000)
#define arg_int_threads() (int)ONE_OF(128, 256, 512, 1024, 0, 1025)
#define arg_int_blocks() (int)ONE_OF(1, 2, 4, 8, 0, 99)
#define arg_int_limit() (int)ONE_OF(0, 0, 128, 512, 2000)
static int64_t a_size(void) {
    return ONE_OF(0, 0, 0, 0, 0, 0, 64, 1024, 1024, 20000, 20000, 40000, 49152, 49153, 100000, 232448, 232449);
}
#define arg_uint32_t_shared() (uint32_t)a_size()
#define arg_size_t_dynamic() (size_t)a_size()
#define arg_uint32_t_grid_x() (uint32_t)OFTEN(0, 1, 2, 40, 40, 40, 200)
#define arg_uint32_t_grid_y() (uint32_t)ONE_OF(1, 1, 1, 2)
#define arg_uint32_t_grid_z() (uint32_t)OFTEN(0, 1, 1, 1, 1, 2)
#define arg_uint32_t_block_x() (uint32_t)OFTEN(1025, 128, 128, 256, 256, 512, 1024)
#define arg_uint32_t_block_y() (uint32_t)OFTEN(0, 1, 1, 1, 1, 2)
#define arg_uint32_t_block_z() (uint32_t)OFTEN(0, 1, 1, 1, 1, 1, 1, 2)
#define arg_uint32_t_count() (uint32_t)ONE_OF(1, 1, 2, 0)

/* ---- Out-values ---- */

#define arg_int_p() told(OF_INT)
#define arg_uint32_t_p_told() told(OF_INT)
#define arg_uint64_t_p_told() told(OF_SIZE)
#define arg_size_t_p() told(OF_SIZE)
static float elapsed;
#define arg_float_p() (float *)mostly(&elapsed)
static char log_text[8192];
#define arg_char_p_log() log_text

/* ---- Others ---- */

#define arg_size_t_attribute_count() 0
#define arg_void_p_p_pfn() told(OF_WORD)

static int *arg_mode_exchanged(void) {
    int *mode = out(OF_INT, 0);
    *mode = (int)ONE_OF(0, 1, 2);
    return mode;
}
#define arg_int_p_mode() arg_mode_exchanged()
static size_t *arg_size_t_p_room(void) {
    static size_t size;
    size = (size_t)ONE_OF(8, 8, 8, 1, 0);
    return &size;
}

/* ---- Kernels and graphs ---- */

static uint64_t parameter_a;
static uint32_t parameter_b;
static void *given_parameters[] = {&parameter_a, &parameter_b};
#define arg_void_p_p_parameters() (void **)mostly(given_parameters)

static vendor_node *some_nodes(void) {
    static vendor_node nodes[2][2];
    static int turn;
    turn = !turn;
    nodes[turn][0] = slot_of(NODE)->handle;
    nodes[turn][1] = slot_of(NODE)->handle;
    return nodes[turn];
}
static void host_function(void *data) {
    (void)data;
}
static const char *arg_const_char_p_name(void) {
    return roll(40) ? kernel_names[roll(KERNELS)] : "nobody";
}
