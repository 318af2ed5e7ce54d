# NVIDIA/cuda-samples c94ff366aed18c797b8a85dfaac7817b0228b420
build() { # more repetitions: the authors' ten take some milliseconds
    sed -i 's/int  *nreps *= 10;/int nreps = 500;/' Samples/0_Introduction/simple{Streams,MultiCopy}/*.cu
    for sample in 0_Introduction/simpleStreams 0_Introduction/simpleMultiCopy 3_CUDA_Features/jacobiCudaGraphs; do
        nvcc -arch="$SM" -std=c++17 -O3 -ICommon Samples/$sample/*.c[up]* -o "$OUT/${sample##*/}"
    done
}
