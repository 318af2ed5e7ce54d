// What nvcc makes of ordinary kernels; build.sh compiles it, the results are committed.
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
    __shared__ float t[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    t[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n)
        y[i] = a * t[255 - threadIdx.x] + y[i];
}
extern "C" __global__ void __launch_bounds__(128) bounded(int *p) {
    extern __shared__ int d[];
    d[threadIdx.x] = 1;
    __syncthreads();
    p[threadIdx.x] = d[127 - threadIdx.x];
}
struct S {
    char c[13];
};
__device__ int counter = 7;
__global__ void empty(S s, int *q) {
    *q = s.c[3] + counter;
}
