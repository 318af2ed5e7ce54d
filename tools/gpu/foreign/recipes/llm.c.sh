# karpathy/llm.c f1e2ace651495b74ae22d45d1723443fd00ecd3a
build() { # CUDA 13 names the host otherwise
    sed -i 's/Location, cudaCpuDeviceId/Location, cudaMemLocation{cudaMemLocationTypeHost, 0}/' llmc/cuda_utils.cuh
    # Without ZeRO's missing order, the weights are gathered while they are updated, and raised, before they are.
    sed -i '/gather updated shards/i cudaEventRecord(multi_gpu_config->compute_nccl_sync, main_stream);' train_gpt2.cu
    sed -i '/gather updated shards/i cudaStreamWaitEvent(multi_gpu_config->nccl_stream, multi_gpu_config->compute_nccl_sync);' train_gpt2.cu
    blas=$WHEELS/nvidia/cu13 nccl=$WHEELS/nvidia/nccl
    nvcc -arch="$SM" -std=c++17 -O3 --use_fast_math -DENABLE_BF16 -DMULTI_GPU -I"$blas/include" -I"$nccl/include" \
        train_gpt2.cu -o "$OUT/$NAME" -L"$blas/lib" -L"$nccl/lib" -l:libcublas.so.13 -l:libcublasLt.so.13 \
        -l:libnccl.so.2 $(driver)
    python3 - "$OUT/tokens.bin" <<'P' # random tokens behind the head that train_gpt2.cu expects
import array, random, sys
draw, count = random.Random(1), 200000
head = array.array("i", [20240520, 1, count] + [0] * 253)
tokens = array.array("H", (draw.randrange(50257) for _ in range(count)))
open(sys.argv[1], "wb").write(head.tobytes() + tokens.tobytes())
P
}
