#!/bin/bash
# Builds programs of other authors: build.sh SOURCES OUT [RECIPE ...]
#
# SOURCES holds a checkout of each repository, by its name without owner. OUT gets a folder for each of recipes/, with the
# binary `plain`, and `own` where its authors give their streams priorities. A recipe names its repository and commit in
# its first line, and defines the function `build`, which runs in a copy of it, and `plain`, which takes the priorities
# out. Variables: CUDA (toolkit), SM (architecture), and for some WHEELS: a folder with unpacked wheels of nvidia-cublas,
# nvidia-cufft, nvidia-curand, nvidia-nccl-cu13, nvidia-nvml-dev, mpich, openmm and openmm-cuda-13.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")") sources=$(realpath "$1") out=$(mkdir -p "$2" && realpath "$2")
shift 2
export CUDA=${CUDA:-/usr/local/cuda} SM=${SM:-sm_90} WHEELS=${WHEELS:-} OUT NAME
export PATH=$CUDA/bin:$PATH
RUN='
driver() { # the library of the driver that manages GPUs is not part of the toolkit: link a stub of its name
    grep -ohE "\bnvml[A-Z]\w*" "$WHEELS/nvidia/cu13/include/nvml.h" | sort -u | sed "s/.*/void &(void) {}/" |
        gcc -w -shared -x c - -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so && echo -L. -lnvidia-ml
}
. "$1"
if declare -F plain; then
    (NAME=own; build)
    plain
fi
NAME=plain
build'
[ $# -gt 0 ] || set -- $(cd "$here/recipes" && ls ./*.sh)
for recipe in "$@"; do
    recipe=$(basename "$recipe" .sh) copy=$(mktemp -d)
    read -r _ repository commit _ <"$here/recipes/$recipe.sh"
    checkout=$sources/${repository##*/}
    [ "$(git -C "$checkout" rev-parse HEAD)" = "$commit" ] || {
        echo "build.sh: $checkout is not at $commit: git -C $checkout checkout $commit" >&2
        exit 1
    }
    tar -C "$checkout" --exclude=.git -c . | tar -x -C "$copy"
    OUT=$out/$recipe
    mkdir -p "$OUT"
    (cd "$copy" && bash -euo pipefail -c "$RUN" _ "$here/recipes/$recipe.sh") >"$out/$recipe.log" 2>&1 || {
        echo "build.sh: $recipe failed: $out/$recipe.log" >&2
        exit 1
    }
    rm -r "$copy"
    find "$OUT" -maxdepth 1 -type f -perm -u+x -exec sh -c 'strip "$1" 2>/dev/null || true' _ {} \;
    echo "$OUT"
done
