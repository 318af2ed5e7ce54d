#include <stdio.h>
int early_launched(void);
int main(void) {
    printf("launched early: %d\n", early_launched());
    return 0;
}
