/* Opens libraries and lets them launch, word by word: local=PATH global=PATH opens one, call=N calls the N-th's
 * scope_launch(), close=N closes it; error says what dlerror has to say. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    void *opened[16];
    int number = 0;
    for (int i = 1; i < count; i++) {
        char *value = strchr(words[i], '=');
        if (value)
            *value++ = 0;
        if (strcmp(words[i], "local") == 0 || strcmp(words[i], "global") == 0) {
            opened[number] = dlopen(value, RTLD_NOW | (*words[i] == 'g' ? RTLD_GLOBAL : RTLD_LOCAL));
            printf("opened: %s\n", opened[number] ? "yes" : dlerror());
            number++;
        } else if (strcmp(words[i], "call") == 0) {
            int (*launch)(void) = (int (*)(void))dlsym(opened[atoi(value)], "scope_launch");
            printf("launch: %d\n", launch());
        } else if (strcmp(words[i], "close") == 0) {
            printf("closed: %d\n", dlclose(opened[atoi(value)]));
        } else if (strcmp(words[i], "error") == 0) {
            const char *error = dlerror();
            printf("error: %s\n", error ? error : "none");
        }
        fflush(stdout);
    }
    return 0;
}
