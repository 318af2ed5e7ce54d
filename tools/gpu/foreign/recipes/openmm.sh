# openmm/openmm 1a47c2f68439c579e27666e5f985ea1a46dd105a
build() { # the program is that of the wheels 8.6.1
    cp examples/benchmarks/benchmark.py examples/benchmarks/5dfr_solv-cube_equil.pdb "$OUT"
    rm -rf "$OUT/site" && mkdir "$OUT/site"
    cp -r "$WHEELS"/openmm "$WHEELS"/OpenMM.libs "$OUT/site"
}
