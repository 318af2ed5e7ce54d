/* Every row, for a look by compilers: what a build gives for ROWS has those of one version. */
#define DRIVER(name, body, parameters, ...) ROW(name)
#include "../../shim/vendor/hip/driver.def"
#undef DRIVER
