/* Captures in client.c.
 *
 *   begin=S[,MODE] end=S       capture a stream; what it made is the current graph
 *   go=S,N                     instantiate that, and launch it N times on stream S
 */
#pragma once

static void *graph;

static int launch_graph(void) {
    void *exec = NULL;
    int result = CU(cuGraphInstantiateWithFlags)(&exec, graph, 0);
    for (int i = 0; i < atoi(words[1]) && result == 0; i++)
        result = CU(cuGraphLaunch)(exec, streams[atoi(words[0])]);
    return result;
}

static int graph_word(const char *verb, int *result) {
    if (strcmp(verb, "begin") == 0)
        *result = CU(cuStreamBeginCapture_v2)(streams[atoi(words[0])], word_count > 1 ? atoi(words[1]) : 0);
    else if (strcmp(verb, "end") == 0)
        *result = CU(cuStreamEndCapture)(streams[atoi(words[0])], &graph);
    else if (strcmp(verb, "go") == 0)
        *result = launch_graph();
    else
        return 0;
    return 1;
}
