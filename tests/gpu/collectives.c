// NCCL's functions as programs of tools/gpu/whole call them; nothing is sent.
int ncclCommInitAll(void **made, int count, const int *devices) {
    for (int i = 0; i < count; i++)
        made[i] = devices ? &made[i] : 0;
    return 0;
}
int ncclGroupStart(void) {
    return 0;
}
int ncclGroupEnd(void) {
    return 0;
}
int ncclSend(void) {
    return 0;
}
int ncclRecv(void) {
    return 0;
}
int ncclAllReduce(void) {
    return 0;
}
