# NVIDIA/multi-gpu-programming-models 9a600f5ea8f5e53614e30b7b36e9136107178dd8
build() {
    cd nccl_overlap
    mpi=$(echo "$WHEELS"/mpich-*.data/data) nccl=$WHEELS/nvidia/nccl
    nvcc -arch="$SM" -std=c++17 -O3 -DHAVE_CUB -I"$mpi/include" -I"$nccl/include" jacobi.cpp jacobi_kernels.cu \
        -o "$OUT/$NAME" -L"$mpi/lib" -L"$nccl/lib" -l:libmpi.so.12 -l:libnccl.so.2 \
        -Xlinker --allow-shlib-undefined
    rm -rf "$OUT/mpich" && mkdir -p "$OUT/mpich/bin" "$OUT/mpich/lib"
    cp "$mpi"/bin/mpiexec "$mpi"/bin/hydra_pmi_proxy "$OUT/mpich/bin"
    cp -r "$mpi"/lib/libmpi.so.12 "$mpi"/lib/mpich "$OUT/mpich/lib"
    chmod +x "$OUT"/mpich/bin/*
}
plain() {
    sed -i 's/cudaStreamCreateWithPriority(\(&[a-z_]*\), cudaStreamDefault, [a-zA-Z]*)/cudaStreamCreate(\1)/' \
        nccl_overlap/jacobi.cpp
}
