# ANL-CESAR/XSBench ba08e5221af6106252b866e50ea123c69d31a4e2
build() {
    nvcc -arch="$SM" -std=c++17 -O3 cuda/*.cu -o "$OUT/$NAME"
}
