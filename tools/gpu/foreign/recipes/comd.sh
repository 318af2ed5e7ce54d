# NVIDIA/CoMD-CUDA c3b39ed58c8c5a307e6600902979c290a4ad27c4
build() {
    mkdir -p cub
    ln -sfn "$CUDA/include/cccl/cub" cub/cub
    cat >src-mpi/compat.h <<'C'
#ifdef __CUDACC__
#include <cuda_runtime.h>
#include <cub/cub.cuh>
#define __ballot(p) __ballot_sync(__activemask(), (p))
#define __any(p) __any_sync(__activemask(), (p))
#ifdef __CUDA_ARCH__
#define __shfl(...) __shfl_sync(__activemask(), __VA_ARGS__)
#define __shfl_xor(...) __shfl_xor_sync(__activemask(), __VA_ARGS__)
#define __shfl_down(...) __shfl_down_sync(__activemask(), __VA_ARGS__)
#endif
#endif
C
    cp src-mpi/Makefile.EAM src-mpi/Makefile
    make -C src-mpi clean
    make -C src-mpi CC="gcc -fcommon -I$CUDA/include -L$CUDA/lib64" DO_MPI=OFF CUDA_HOME="$CUDA" \
        NVCC_FLAGS="-DMAXATOMS=64 -DCOMD_DOUBLE -O2 -DNDEBUG -arch=$SM -std=c++17 -I../cub -include compat.h"
    cp bin/CoMD-cuda "$OUT/$NAME"
    cp -r pots "$CUDA"/lib64/libcudart.so.1? "$OUT"
}
plain() {
    sed -i 's/cudaStreamCreateWithPriority(&flat->\([a-z_]*\), 0, -\{0,1\}[01])/cudaStreamCreate(\&flat->\1)/' \
        src-mpi/gpu_utility.c
}
