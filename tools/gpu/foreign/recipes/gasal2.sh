# nahmedraja/GASAL2 106d94ee53fc847214fb05f2f9f892538a5d3baf
build() {
    sed -i 's|"/usr/local/cuda[^"]*/cuda_runtime.h"|<cuda_runtime.h>|' src/*.h
    mkdir -p include
    cp src/*.h include
    nvcc -arch="$SM" -std=c++17 -O3 -DMAX_QUERY_LEN=320 -DN_CODE=0x4E --default-stream per-thread -Xcompiler -fopenmp \
        -Iinclude src/*.cpp src/gasal_align.cu test_prog/test_prog.cpp -o "$OUT/$NAME"
    cp test_prog/*_batch.fasta.gz "$OUT"
}
