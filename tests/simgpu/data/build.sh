#!/bin/sh
# Rebuilds the committed images with nvcc 13.0. Maintainers only; no test needs nvcc.
set -e
cd "$(dirname "$0")"
for architecture in 80 90; do
    nvcc -arch=sm_$architecture -cubin -o kernels.sm_$architecture.cubin kernels.cu
done
nvcc -no-compress -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 \
    -gencode arch=compute_90,code=compute_90 -fatbin -o kernels.fatbin kernels.cu
