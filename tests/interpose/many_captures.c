/* Captures of so many streams are open at once; when all have ended, the rule goes on. */
#include "raises.h"

enum { MOST = 200 };
int main(int argc, char **argv) {
    const int count = argc > 1 ? atoi(argv[1]) : 1;
    void *streams[MOST], *graph;
    driver_start();
    for (int i = 0; i < count; i++) {
        good(cuStreamCreate(&streams[i], 1), "create");
        good(cuStreamBeginCapture_v2(streams[i], 2), "begin");
    }
    for (int i = 0; i < count; i++) {
        good(cuStreamEndCapture(streams[i], &graph), "end");
        good(cuGraphDestroy(graph), "graph");
    }
    raise_small();
    return bad != 0;
}
