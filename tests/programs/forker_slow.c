/* A library whose constructor does not return until the program says so. */
extern void forker_wait(void);
__attribute__((constructor)) static void start(void) {
    forker_wait();
}
