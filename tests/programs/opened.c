/* A library to be opened. */
#ifndef VALUE
#define VALUE 1
#endif
int value(void);
int value(void) {
    return VALUE;
}
