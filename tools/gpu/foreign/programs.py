"""Programs of other authors: where each comes from, what it runs, and the number that it prints.

Nothing of them is here. Who measures builds them as the project says (for sm_90 here), and puts the binary `plain`
into a folder of its own, and `own` where the authors give streams priorities: then `plain` is the same without them.

source: repository and commit. changed: how `plain` differs from it, and both from what the authors published.
streams: which it has, and who waits for them. Words of a command: {folder}: where its binaries are; {binary}: `plain`
or `own` in it; {here}: this folder; {python}; {libraries}: folders of NVIDIA's libraries; {work}: an empty folder of
the process. NAME=VALUE in front sets a variable. It runs in {folder}; an installed package runs in {work}.
`number` matches the measured number, the last time it matches. `check` must match, and what its groups match must be
the same in all processes: the results.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Program:
    name: str
    folder: str  # of its binaries; without source: the installed Python package
    source: str
    changed: str
    streams: str
    command: str
    number: str
    unit: str
    more: bool = False  # is better
    check: str = ""
    gpus: int = 1


LIBRARIES = "LD_LIBRARY_PATH={libraries}"
MPI = "LD_LIBRARY_PATH={folder}/../mpich/lib:{libraries}"  # MPICH 5 beside the programs
RANKS = f"{MPI} {{folder}}/../mpich/bin/mpiexec -n"


def without(call: str, by: str, places: str, rest: str = "") -> str:
    """What `changed` says of most programs."""
    return f"plain: {by} for {call}, in {places}{'; both: ' if rest else ''}{rest}"


COMD = Program(
    "comd",
    "comd",
    "NVIDIA/CoMD-CUDA c3b39ed58c8c5a307e6600902979c290a4ad27c4",
    without(
        "cudaStreamCreateWithPriority",
        "cudaStreamCreate",
        "src-mpi/gpu_utility.c",
        "warp functions of CUDA 9 and later, CUB of the toolkit, no MPI, 64 atoms a cell",
    ),
    "two, of boundary and interior; the host waits for the boundary",
    "LD_LIBRARY_PATH={libraries} {binary} -e -a 1 -m METHOD -x CELLS -y CELLS -z CELLS -N STEPS",
    r"Average atom rate:\s*([\d.]+) atoms/us",
    "atoms/us",
    True,
    r"(?s)Final energy\s*:\s*(-?\d+\.\d{4}).*no atoms lost",
)


def comd(name: str, method: str, cells: int, steps: int) -> Program:
    command = COMD.command.replace("METHOD", method).replace("CELLS", str(cells)).replace("STEPS", str(steps))
    return replace(COMD, name=f"comd-{name}-{cells}", command=command)


STENCIL = Program(
    "jacobi3d",
    "stencil",
    "cwpearson/stencil 07e64de540790600637920ebadfe8280b16695c9",
    without(
        "cudaStreamCreateWithPriority",
        "cudaStreamCreateWithFlags",
        "src/rcstream.cpp, through which every stream goes",
        "a property of devices that CUDA 13 lacks is not printed, and a sum of the results is",
    ),
    "interior and exterior on one, exchange on another, raised by its authors, for which the host waits",
    f"{MPI} {{binary}} -n 1500 512 512 512",
    r"(?m)^jacobi3d,.*,([\d.e+-]+)\s*$",
    "s",
    check=r"sum of results: ([0-9a-f]+)",
)
STAGED = replace(
    STENCIL,
    name="jacobi3d-staged",
    streams="interior and exterior on one; packing, copies and unpacking on another, raised by its authors; "
    "the host polls it",
    command=f"{MPI} {{binary}} --staged -n 750 512 512 512",
)
ASTAROTH = replace(
    STENCIL,
    name="astaroth",
    changed=STENCIL.changed + "; steps are taken from the command line (the authors': ten), and none writes a file",
    streams="interior, 26 of the exterior, and the exchange, raised by its authors; the host waits for each",
    command=f"{MPI} {{binary}}-astaroth 150",
    number=r"(?m)^\d+,\d+,\d+,\d+,([\d.e+-]+),[\d.e+-]+\s*$",
)
SAMPLES = "NVIDIA/multi-gpu-programming-models 9a600f5ea8f5e53614e30b7b36e9136107178dd8"
JACOBI = "-niter 3000 -nx 8192 -ny 8192"
LOOP = without("cudaStreamCreateWithPriority", "cudaStreamCreate", "jacobi.cu, of two streams")
THREADS = Program(
    "jacobi-threads",
    "jacobi-threads",
    SAMPLES,
    LOOP + " (multi_threaded_copy_overlap)",
    "three; copies of the halo on two, for which the third and the neighbours wait",
    f"{{binary}} {JACOBI}",
    r"GPUs:\s+([\d.]+) s",
    "s",
    check=r"Num GPUs: (1)\.",
)
OPTIONS = "-i {folder}/tokens.bin -j {folder}/tokens.bin -e d12 -b 16 -t 1024 -x 25 -v 1000 -m 1 -s 0 -h 0 "
OPTIONS += "-pi fs -pf {work}"
LLM = Program(
    "llm.c",
    "llm.c",
    "karpathy/llm.c f1e2ace651495b74ae22d45d1723443fd00ecd3a",
    "the place of managed memory by the type of CUDA 13; gathering of weights waits for their update (a race); "
    "tokens.bin: 200,000 random tokens",
    "one",
    f"{LIBRARIES} {{binary}} {OPTIONS} -pg 1 -pn 1 -pr 0",
    r"iteration time: ([\d.]+) ms",
    "ms",
    check=r"step +25/25 \| loss ([\d.]+)",
)
OFFLOAD = Program(
    "torchao-offload",
    "torchao",
    "pytorch/ao, its wheel 0.18.0 in site/",
    "nothing",
    "the default one, and one of gradients to the host and weights back, for which the host waits",
    "OMP_NUM_THREADS=8 PYTHONPATH={folder}/site {python} {here}/offload.py optimizer",
    r"([\d.]+) ms a step",
    "ms",
    check=r"loss (\d+\.\d)",
)


def over(gpus: int) -> tuple[Program, ...]:
    """The programs that run on several GPUs: one process, and a rank for each."""
    jacobi = replace(THREADS, check=rf"Num GPUs: ({gpus})\.", gpus=gpus)
    ranks = f"{RANKS} {gpus}"
    return (
        replace(
            jacobi,
            name=f"jacobi-threads-{gpus}",
            streams="three on each GPU; copies of the halo on two, for which the third and the neighbours wait",
        ),
        replace(
            jacobi,
            name=f"jacobi-nccl-{gpus}",
            folder="jacobi-nccl",
            changed=LOOP + " (nccl_overlap)",
            streams="two on each GPU; NCCL and the boundary on one, for which the other waits",
            command=f"{ranks} {{binary}} {JACOBI}",
        ),
        replace(STENCIL, name=f"jacobi3d-{gpus}", gpus=gpus),
        replace(STAGED, name=f"jacobi3d-staged-{gpus}", gpus=gpus),
        replace(STENCIL, name=f"jacobi3d-ranks-{gpus}", gpus=gpus, command=STENCIL.command.replace(MPI, ranks)),
        replace(ASTAROTH, name=f"astaroth-{gpus}", gpus=gpus),
        replace(
            LLM,
            name=f"llm.c-{gpus}",
            streams="two on each GPU; NCCL on one, for which the host waits",
            command=f"{LIBRARIES} sh {{here}}/ranks.sh {gpus} {{binary}} {OPTIONS} -z 1 -pg {gpus} -pn {gpus} -pr",
            gpus=gpus,
        ),
    )


PROGRAMS = (
    STAGED,
    ASTAROTH,
    comd("eam", "thread_atom", 70, 250),
    comd("eam", "thread_atom", 100, 100),
    Program(
        "vmaf",
        "vmaf",
        "Netflix/vmaf f85a853692a8c730d0270cd733c8bb30b5b93b7c",
        "built with CUDA, and with FFmpeg's nv-codec-headers and seven functions more of the driver than these have",
        "two of each of three features, and one of each picture; events among them, and the host waits for the last",
        "sh {here}/vmaf.sh {binary} {folder} {work} {python}",
        r'"fps": ([\d.]+)',
        "frames/s",
        True,
        check=r'(?s)^(?!.*using CPU).*"mean": ([\d.]+)',
    ),
    STENCIL,
    comd("eam", "thread_atom", 30, 1500),
    comd("eam", "thread_atom", 49, 600),
    comd("eam-warp", "warp_atom", 70, 100),
    comd("eam-cta", "cta_cell", 70, 100),
    Program(
        "gromacs-water",
        "gromacs",
        "gromacs/gromacs b1a82ec1956eb9658d33f3ec6f3adfdbb6b53a7b",
        without("cudaStreamCreateWithPriority", "cudaStreamCreate", "device_stream.cu"),
        "nonbonded, PME, update; each waits for another, and the host for them",
        f"{LIBRARIES} OMP_NUM_THREADS=8 GMX_MAXBACKUP=-1 {{binary}} mdrun -s water.tpr -nb gpu -pme gpu -update gpu "
        "-ntmpi 1 -ntomp 8 -notunepme -nsteps 20000 -resethway -noconfout -deffnm {work}/water",
        r"Performance:\s+([\d.]+)",
        "ns/day",
        True,
    ),
    Program(
        "cufhe",
        "cufhe",
        "vernamlab/cuFHE 1af2f2be596e66fcc14f5659d8a89432fe53d41f",
        "eight times the gates, by the factor in its authors' comment",
        "132 equal ones, of copies and kernels of a gate; the host waits for the device once",
        "{binary}",
        r"([\d.e-]+) ms / gate",
        "ms",
        check=r"(?s)ms / gate\s+(PASS)",
    ),
    THREADS,
    Program(
        "gasal2",
        "gasal2",
        "nahmedraja/GASAL2 106d94ee53fc847214fb05f2f9f892538a5d3baf",
        "the runtime's header by its name; per-thread default streams",
        "two, polled by the host",
        "sh {here}/gasal2.sh {binary} {folder} {work}",
        r"Total execution time \(in milliseconds\): ([\d.]+)",
        "ms",
        check=r"([0-9a-f]{32})",
    ),
    Program(
        "openmm-pme",
        "openmm",
        "openmm/openmm 1a47c2f68439c579e27666e5f985ea1a46dd105a, its benchmark.py; wheels 8.6.1 in site/",
        "nothing",
        "two; the one of PME waits for the other and is waited for",
        f"{LIBRARIES} PYTHONPATH={{folder}}/site {{python}} benchmark.py --platform=CUDA --test=pme --seconds=2",
        r"ns_per_day: ([\d.]+)",
        "ns/day",
        True,
    ),
    Program(
        "fsdp-offload",
        "fsdp",
        "PyTorch as installed: FSDP2 with CPUOffloadPolicy, one rank; `own` runs its words, `plain` with PRIORITIES=0",
        "plain: torch.cuda.Stream without the priority -1 that FSDP2 gives three of its streams",
        "the default one, gathering copies, gathering and reduction; each waits for another",
        "OMP_NUM_THREADS=8 {binary} {python} {here}/offload.py fsdp",
        r"([\d.]+) ms a step",
        "ms",
        check=r"loss (\d+\.\d)",
    ),
    OFFLOAD,
    Program(
        "resnet-threads",
        "torchvision",
        "",
        "as installed",
        "eight, each of a host thread that copies in, computes, copies out, and waits for it",
        "{python} {here}/threads.py",
        r"([\d.]+) requests/s",
        "requests/s",
        True,
        check=r" (1) answer of 8 threads",
    ),
    Program(
        "transformers-serving",
        "transformers",
        "",
        "as installed: continuous batching, paged attention by sdpa, asynchronous, no graphs",
        "copies in, compute, copies out, in a circle of events; the host waits for the copies out",
        "{python} {here}/serving.py",
        r"([\d.]+) s,",
        "s",
        check=r"(?m) (18432) tokens$",
    ),
    Program(
        "transformers-cache",
        "transformers",
        "",
        'as installed: cache_implementation="offloaded"',
        "the default one, and one that fetches the next layer's cache, for which it waits",
        "{python} {here}/cache.py",
        r"([\d.]+) ms a token",
        "ms",
        check=r"tokens ([0-9a-f]{32})",
    ),
    LLM,
    Program(
        "fdtd2d",
        "fdtd2d",
        "utcs-scea/altis 042e2926d1fe9a5ea5b3e2d659b75bf925b152cc",
        "properties of devices that CUDA 13 lacks are not printed; no advice for managed memory, which it does not use",
        "two, and the legacy default stream as their barrier",
        "{binary} -s 4 -n 1",
        r"GPU Runtime: ([\d.]+)s",
        "s",
    ),
    Program(
        "babelstream",
        "babelstream",
        "UoB-HPC/BabelStream 57637d572532fc028b6c0964944f1afc27ff5436",
        "nothing",
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
        "ANL-CESAR/XSBench ba08e5221af6106252b866e50ea123c69d31a4e2",
        "nothing",
        "one",
        "{binary} -m event -s large",
        r"Runtime:\s+([\d.]+) seconds",
        "s",
        check=r"checksum: (\d+) \(Valid\)",
    ),
    *(program for gpus in (2, 4, 8) for program in over(gpus)),
)
