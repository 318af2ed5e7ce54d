"""Programs of other authors: what each runs, and the number that it prints. recipes/: where they come from.

Words of a command: {folder}: what build.sh made of its recipe; {binary}: `plain` or `own` in it, with the priorities
that the authors give their streams; {here}: this folder; {python}; {libraries}: folders of NVIDIA's libraries; {work}:
an empty folder of the process. NAME=VALUE in front sets a variable. It runs in {folder}, or in {work} without a recipe.
`number` matches the measured number, the last time it matches. `check` must match, and what its groups match must be
the same in all processes: the results.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    name: str
    recipe: str  # or the package that is installed, which a file of this folder calls
    streams: str  # which it has, and who waits for them
    command: str
    number: str
    unit: str
    more: bool = False  # is better
    check: str = ""
    gpus: int = 1


COMD = "LD_LIBRARY_PATH={libraries} {binary} -a 1 -x %d -y %d -z %d -N %d -m "
ENERGY = r"(?s)Final energy\s*:\s*(-?\d+\.\d{4}).*no atoms lost"
JACOBI = "-niter 3000 -nx 8192 -ny 8192"
LLM = (
    "-i {folder}/tokens.bin -j {folder}/tokens.bin -e d12 -b 16 -t 1024 -x 25 -v 1000 -m 1 -s 0 -h 0 -pi fs -pf {work}"
)
LIBRARIES = "LD_LIBRARY_PATH={libraries}"


def comd(name: str, options: str, cells: int, steps: int = 200) -> Program:
    return Program(
        f"comd-{name}-{cells}",
        "comd",
        "two, of boundary and interior; the host waits for the boundary",
        COMD % (cells, cells, cells, steps) + options,
        r"Average atom rate:\s*([\d.]+) atoms/us",
        "atoms/us",
        True,
        ENERGY,
    )


PROGRAMS = (
    *(comd("eam", "thread_atom -e", cells) for cells in (30, 49, 70, 100)),
    comd("eam-warp", "warp_atom -e", 70, 100),
    comd("eam-cta", "cta_cell -e", 70, 100),
    Program(
        "jacobi-threads",
        "jacobi-threads",
        "three; copies of the halo on two, for which the third and the neighbours wait",
        f"{{binary}} {JACOBI}",
        r"GPUs:\s+([\d.]+) s",
        "s",
        check=r"Num GPUs: (1)\.",
    ),
    Program(
        "gasal2",
        "gasal2",
        "two, polled by the host",
        "sh {here}/gasal2.sh {binary} {folder} {work}",
        r"Total execution time \(in milliseconds\): ([\d.]+)",
        "ms",
        check=r"([0-9a-f]{32})",
    ),
    Program(
        "fdtd2d",
        "fdtd2d",
        "two, and the legacy default stream as their barrier",
        "{binary} -s 4 -n 1",
        r"GPU Runtime: ([\d.]+)s",
        "s",
    ),
    Program(
        "simpleStreams",
        "samples",
        "four, of kernels and copies to the host",
        "{folder}/simpleStreams",
        r"4 streams:\s+([\d.]+)",
        "ms",
    ),
    Program(
        "simpleMultiCopy",
        "samples",
        "four, of copies both ways and kernels; the host waits for each in turns",
        "{folder}/simpleMultiCopy",
        r"overlapped using 4 streams\s*: ([\d.]+) ms",
        "ms",
    ),
    Program(
        "jacobiCudaGraphs",
        "samples",
        "one, by graphs",
        "{folder}/jacobiCudaGraphs",
        r"GPU Processing time: ([\d.]+)",
        "ms",
        check="PASSED",
    ),
    Program(
        "timm-loader",
        "timm",
        "a copy stream; each waits for the other",
        "{python} {here}/loader.py timm",
        r"([\d.]+) ms a step",
        "ms",
        check=r"loss (\d+\.\d)",
    ),
    Program(
        "pyg-loader",
        "torch_geometric",
        "a copy stream, for which the other waits",
        "{python} {here}/loader.py torch_geometric",
        r"([\d.]+) ms a step",
        "ms",
        check=r"loss (\d+\.\d)",
    ),
    Program(
        "jax-mnist",
        "jax",
        "XLA's: computation, copies in and out",
        "{binary} {python} {here}/mnist.py spmd_mnist_classifier_fromscratch.py",
        r"Epoch \d+ in ([\d.]+) sec",
        "s",
        check=r"(?s)Epoch 4.*Training set accuracy ([\d.]{4})",
    ),
    Program(
        "cupy-map-reduce",
        "cupy",
        "ten, and one that waits for them",
        "{python} {here}/repeated.py 40 'elapsed time ([0-9.e-]+)' map_reduce.py",
        "median ([0-9.e-]+)",
        "s",
    ),
    Program(
        "llm.c",
        "llm.c",
        "one",
        f"{LIBRARIES} {{binary}} {LLM} -pg 1 -pn 1 -pr 0",
        r"iteration time: ([\d.]+) ms",
        "ms",
        check=r"step +25/25 \| loss ([\d.]+)",
    ),
    Program(
        "babelstream",
        "babelstream",
        "one",
        "{binary} -n 2000",
        r"Triad\s+([\d.]+)",
        "MB/s",
        True,
        check=r"(?s)^(?!.*Validation failed)",
    ),
    Program(
        "xsbench",
        "xsbench",
        "one",
        "{binary} -m event -s large",
        r"Runtime:\s+([\d.]+) seconds",
        "s",
        check=r"checksum: (\d+) \(Valid\)",
    ),
    Program(
        "openmm-pme",
        "openmm",
        "two; the one of PME waits for the other and is waited for",
        f"{LIBRARIES} PYTHONPATH={{folder}}/site {{python}} benchmark.py --platform=CUDA --test=pme --seconds=2",
        r"ns_per_day: ([\d.]+)",
        "ns/day",
        True,
    ),
    Program(
        "gromacs-water",
        "gromacs",
        "nonbonded, PME, update; each waits for another, and the host for them",
        f"{LIBRARIES} GMX_MAXBACKUP=-1 {{binary}} mdrun -s water.tpr -nb gpu -pme gpu -update gpu -ntmpi 1 -ntomp 8 "
        "-notunepme -nsteps 10000 -resethway -noconfout -deffnm {work}/water",
        r"Performance:\s+([\d.]+)",
        "ns/day",
        True,
    ),
    Program(
        "jacobi-threads-2",
        "jacobi-threads",
        "three on each GPU; copies of the halo on two, for which the third and the neighbours wait",
        f"{{binary}} {JACOBI}",
        r"GPUs:\s+([\d.]+) s",
        "s",
        check=r"Num GPUs: (2)\.",
        gpus=2,
    ),
    Program(
        "jacobi-nccl-2",
        "jacobi-nccl",
        "two on each GPU; NCCL and the boundary on one, for which the other waits",
        "LD_LIBRARY_PATH={folder}/mpich/lib:{libraries} {folder}/mpich/bin/mpiexec -n 2 {binary} " + JACOBI,
        r"GPUs:\s+([\d.]+) s",
        "s",
        check=r"Num GPUs: (2)\.",
        gpus=2,
    ),
    Program(
        "llm.c-2",
        "llm.c",
        "two on each GPU; NCCL on one, for which the host waits",
        f"{LIBRARIES} sh {{here}}/ranks.sh 2 {{binary}} {LLM} -z 1 -pg 2 -pn 2 -pr",
        r"iteration time: ([\d.]+) ms",
        "ms",
        check=r"step +25/25 \| loss ([\d.]+)",
        gpus=2,
    ),
    Program(
        "jax-mnist-2",
        "jax",
        "XLA's: computation, copies and collectives",
        "{binary} {python} {here}/mnist.py spmd_mnist_classifier_fromscratch.py",
        r"Epoch \d+ in ([\d.]+) sec",
        "s",
        check=r"(?s)Epoch 4.*Training set accuracy ([\d.]{4})",
        gpus=2,
    ),
)
