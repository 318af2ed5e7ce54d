/* Words of a program that does what its arguments say: kernels by their names, and words that a child, a thread or another
 * program does.
 *
 *   fork .. join               the words between them in a child
 *   thread .. end_thread       ...in a thread
 *   spawn vfork exec           the rest in a new program, which is this one, too
 * The program says what a word does (do_word), and what a thread does first (enter_thread). */
#pragma once

#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MOST = 2048 };

struct kernel {
    char name[128];
    void *handle;
    int kind; /* of handle; what it means is the program's */
};
static struct kernel kernels[MOST];
static int kernel_count;

static void do_word(const char *word);
static void enter_thread(void);

static struct kernel *find_kernel(const char *name) {
    for (int i = kernel_count - 1; i >= 0; i--)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    printf("no kernel %s\n", name);
    exit(5);
}

static void add_kernel(const char *name, void *handle, int kind) {
    struct kernel *made = &kernels[kernel_count++];
    snprintf(made->name, sizeof made->name, "%.127s", name);
    made->handle = handle;
    made->kind = kind;
}

static void wait_and_say(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    printf("child: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void do_words(char **words);

static void *do_in_thread(void *words) {
    enter_thread();
    do_words(words);
    return NULL;
}

/* Has a child or a thread do the words up to `end`. Returns those behind it. */
static char **do_apart(char **words, const char *end, int forks) {
    char **last = words;
    while (*last && strcmp(*last, end) != 0)
        last++;
    char **const rest = last + (*last != NULL);
    *last = NULL;
    fflush(stdout);
    if (forks) {
        const pid_t child = fork();
        if (child == 0) {
            do_words(words);
            exit(0);
        }
        wait_and_say(child);
    } else {
        pthread_t thread;
        pthread_create(&thread, NULL, do_in_thread, words);
        pthread_join(thread, NULL);
    }
    return rest;
}

/* This program again. CLIENT_THROUGH: an emulator that starts it. */
static const char *self = "";
static void start_again(const char *how, char **words) {
    static char *made[MOST];
    char *through = getenv("CLIENT_THROUGH");
    int count = 0;
    pid_t child = -1;
    if (through)
        made[count++] = through;
    made[count++] = (char *)(uintptr_t)(through ? self : "/proc/self/exe");
    while (*words)
        made[count++] = *words++;
    made[count] = NULL;
    fflush(stdout);
    if (*how == 's')
        posix_spawn(&child, made[0], NULL, NULL, made, environ);
    else if (*how == 'e' || (child = vfork()) == 0) {
        execv(made[0], made);
        _exit(6);
    }
    wait_and_say(child);
}

static void do_words(char **words) {
    while (*words) {
        const char *const word = *words++;
        if (strcmp(word, "fork") == 0)
            words = do_apart(words, "join", 1);
        else if (strcmp(word, "thread") == 0)
            words = do_apart(words, "end_thread", 0);
        else if (strcmp(word, "exec") == 0 || strcmp(word, "vfork") == 0 || strcmp(word, "spawn") == 0) {
            start_again(word, words);
            return;
        } else
            do_word(word);
    }
}
