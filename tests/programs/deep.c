/* Opened with RTLD_DEEPBIND: its calls reach the driver itself, whatever is preloaded. */
extern int cuModuleGetFunction(void **, void *, const char *);
int test_function(void **, void *, const char *);
int test_function(void **function, void *module, const char *name) {
    return cuModuleGetFunction(function, module, name);
}
