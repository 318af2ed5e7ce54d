/* answer() and cudnnCreate(), which others wrap; their values come from the build. */
#ifndef VALUE
#define VALUE 41
#endif
int answer(void);
int cudnnCreate(void);
int cuLaunchKernel(void);
int answer(void) {
    return VALUE;
}
int cudnnCreate(void) {
    return VALUE;
}
int cuLaunchKernel(void) {
    return VALUE;
} /* somebody else's, by the same name */
