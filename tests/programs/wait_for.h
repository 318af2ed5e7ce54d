/* The end of a child: what it exits with, or 128 and its signal; -1 if it hangs: it is killed after 20 s. */
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static inline int wait_for(pid_t child) {
    int status = 0;
    for (int i = 0; i < 20000; i++) {
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        usleep(1000);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}
