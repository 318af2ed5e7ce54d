# NVIDIA/multi-gpu-programming-models 9a600f5ea8f5e53614e30b7b36e9136107178dd8
build() {
    cd multi_threaded_copy_overlap
    nvcc -arch="$SM" -std=c++17 -O3 -DHAVE_CUB -Xcompiler -fopenmp jacobi.cu -o "$OUT/$NAME"
}
plain() {
    sed -i 's/cudaStreamCreateWithPriority(\(&[a-z_]*\), cudaStreamDefault, [a-zA-Z]*)/cudaStreamCreate(\1)/' \
        multi_threaded_copy_overlap/jacobi.cu
}
