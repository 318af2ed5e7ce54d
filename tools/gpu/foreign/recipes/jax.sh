# jax-ml/jax cec06d116c05f0d52adfceee3d3b730fdbcb0ce5
build() { # more digits of a time, fewer epochs
    cp examples/datasets.py examples/spmd_mnist_classifier_fromscratch.py "$OUT"
    sed -i 's/:0.2f/:0.6f/; s/num_epochs = 10/num_epochs = 5/' "$OUT"/spmd*.py
    printf '#!/bin/sh\nexport XLA_FLAGS=--xla_gpu_enable_highest_priority_async_stream=%s\nexec "$@"\n' \
        "${high:-true}" >"$OUT/$NAME"
    chmod +x "$OUT/$NAME"
}
plain() { # XLA's stream for collectives has the highest priority, unless its option says otherwise
    high=false
}
