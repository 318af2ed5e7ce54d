# utcs-scea/altis 042e2926d1fe9a5ea5b3e2d659b75bf925b152cc
build() { # CUDA 13 lacks some properties, and has other arguments of what only managed memory needs: not used
    cd src
    sed -i '/\(clockRate\|deviceOverlap\|ClockRate\)/d' cuda/common/main.cu
    echo "#define HAVE_GETTIMEOFDAY 1" >common/config.h
    cat >compat.h <<'C'
#include <cuda_runtime.h>
#define cudaMemAdvise(...) cudaSuccess
#define cudaMemPrefetchAsync(...) cudaSuccess
#define cudaThreadSynchronize cudaDeviceSynchronize
C
    nvcc -arch="$SM" -std=c++17 -O3 -include compat.h -Icommon -Icuda/common cuda/common/main.cu \
        cuda/level2/fdtd2d/fdtd2d.cu common/*.cpp -o "$OUT/$NAME"
}
