/* Calls a function that the program and a library of its own both define: which one is up to how it was opened. */
int value(void);
int asked(void);
int asked(void) {
    return value();
}
