# cupy/cupy 6b6d9563c4f7410cd1866a11b2f71a60dd45a68c
build() {
    cp examples/stream/map_reduce.py "$OUT"
}
