/* Prints what a library has chosen while it was bound. */
#include <stdio.h>
void ask(int answers[4]);
int main(void) {
    int answers[4];
    ask(answers);
    printf("chosen %d %d %d %d\n", answers[0], answers[1], answers[2], answers[3]);
    return 0;
}
