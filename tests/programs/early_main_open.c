/* Needs a library that has opened another one in its constructor, before that of the preloaded library. */
#include <stdio.h>
int inner(void);
int main(void) {
    printf("inner %d\n", inner());
    return 0;
}
