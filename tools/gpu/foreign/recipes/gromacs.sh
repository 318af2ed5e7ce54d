# gromacs/gromacs b1a82ec1956eb9658d33f3ec6f3adfdbb6b53a7b
build() { # with CMake 3.28 or newer; WHEELS: nvidia-cufft 12; twelve minutes on two cores
    local cufft=$WHEELS/nvidia/cu13 off
    off=$(printf -- '-D%s=OFF ' BUILD_SHARED_LIBS BUILD_TESTING GMX_MPI GMX_BUILD_OWN_FFTW GMX_USE_PLUMED GMX_NNPOT GMXAPI \
        GMX_PYTHON_PACKAGE GMX_HWLOC GMX_USE_TNG GMX_IMD GMX_BUILD_HELP GMX_COOL_QUOTES GMX_INSTALL_LEGACY_API)
    # shellcheck disable=SC2086
    cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGMX_GPU=CUDA -DCMAKE_CUDA_ARCHITECTURES="${SM#sm_}" \
        -DGMX_SIMD=AVX2_256 -DGMX_FFT_LIBRARY=fftpack -DGMX_USE_COLVARS=NONE -DGMX_USE_LMFIT=NONE -DGMX_USE_MUPARSER=NONE \
        $off -DCUDA_cufft_LIBRARY="$cufft/lib/libcufft.so.12" -DCMAKE_CUDA_FLAGS="-I$cufft/include" \
        -DCMAKE_CXX_FLAGS="-I$cufft/include"
    ninja -C build gmx
    cp build/bin/gmx "$OUT/$NAME"
    export GMXLIB=$PWD/share/top GMX_MAXBACKUP=-1 LD_LIBRARY_PATH=$cufft/lib
    printf '#include "oplsaa.ff/%s.itp"\n' forcefield tip3p >water.top
    printf '[ system ]\nwater\n[ molecules ]\n' >>water.top
    build/bin/gmx solvate -cs spc216 -box 10 10 10 -p water.top -o water.gro # 98,319 atoms
    cat >water.mdp <<'M'
integrator = md
nsteps = 300
dt = 0.002
nstlist = 20
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
tcoupl = v-rescale
tc-grps = System
tau-t = 0.5
ref-t = 300
gen-vel = yes
gen-seed = 1
constraints = h-bonds
M
    sed 's/= md$/= steep/' water.mdp >least.mdp # energy: the box is made of copies
    build/bin/gmx grompp -f least.mdp -c water.gro -p water.top -o least.tpr
    build/bin/gmx mdrun -deffnm least -nb cpu -ntmpi 1
    build/bin/gmx grompp -f water.mdp -c least.gro -p water.top -o "$OUT/water.tpr"
}
plain() {
    sed -i 's/cudaStreamDefault, [a-z]*Priority)/cudaStreamDefault, 0)/' src/gromacs/gpu_utils/device_stream.cu
}
