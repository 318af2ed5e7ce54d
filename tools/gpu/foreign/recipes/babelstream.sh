# UoB-HPC/BabelStream 57637d572532fc028b6c0964944f1afc27ff5436
build() {
    nvcc -arch="$SM" -std=c++17 -O3 -DCUDA -DDEFAULT --extended-lambda -DGRID_STRIDE -DUNROLL_FACTOR=4 -Isrc -Isrc/cuda \
        -I"$WHEELS/nvidia/cu13/include" -x cu src/main.cpp src/cuda/CUDAStream.cu -o "$OUT/$NAME" $(driver)
}
