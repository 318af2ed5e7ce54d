"""What is said and set before a launcher, as a pure function; the launchers themselves are in the other files."""

from __future__ import annotations

import os

import pytest

from pyshim.start import launchers
from pyshim.start.program import LAUNCHER_KINDS

LIBRARY = "/opt/lib/liboverlap.so"
OURS = {"LD_PRELOAD": LIBRARY, "OVERLAP_TABLE": "Ul+/=="}
LIST = f"LD_PRELOAD={LIBRARY};OVERLAP_TABLE=Ul+/=="
AGAIN = ("/opt/bin/overlap-run", "--policy", "h100")
RUN = "/opt/bin/overlap-run --policy h100"
ENV = "/opt/bin/overlap env --policy h100 --format"


@pytest.fixture(autouse=True)
def programs(tmp_path_factory, monkeypatch):
    """The words p, q, a and b, and the launchers, are programs in PATH."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("p", "q", "a", "b", *LAUNCHER_KINDS):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def look(command: str | list[str], base: dict[str, str] | None = None, ours: dict[str, str] = OURS) -> launchers.Route:
    split = command.split() if isinstance(command, str) else command
    return launchers.look(launchers.LauncherCall(split, {"PATH": os.environ["PATH"], **(base or {})}, ours, AGAIN))


FRONT = f"{RUN} in front of the program that it starts"
EXPORT = "--export=ALL,LD_PRELOAD=/x"
DOCKER = f"{ENV} docker >overlap.env;"


@pytest.mark.parametrize(
    ("command", "where"),
    [
        ("srun --export=NONE -n2 p -x", "with --export=NONE"),
        ("srun -n 2 --export NONE p", "with --export NONE"),
        ("srun --export=A,LD_PRELOAD p", "with --export=A,LD_PRELOAD"),
        (f"srun {EXPORT} p", "with LD_PRELOAD=/x"),
        ("srun --export=ALL --export=NONE p", "with --export=NONE"),
        ("srun --export= p", "with --export="),
        ("srun p : --export=NONE q", "with --export=NONE"),
        ("srun --export=NONE p : q", "with --export=NONE"),
        ("srun --export=NONE --multi-prog c", "with --export=NONE"),
        ("nohup env A=1 srun --export=NIL p", "with --export=NIL"),
        ("env SLURM_EXPORT_ENV=A srun p", "with --export=A"),
        ("salloc -N2 srun --export=NONE p", "with --export=NONE"),
        ("mpirun -x A --host x,y p", "with --host"),
        ("mpirun -x LD_PRELOAD=/x p", "with LD_PRELOAD=/x"),
        ("mpirun --tune f -H x p : -H y q", "with -H"),
        ("mpirun --app f", "with --app"),
        ("mpiexec -genvnone -n 2 p", "with -genvnone"),
        ("mpiexec -envlist A,B p", "with -envlist"),
        ("env -i A=1 p", "with -i"),
        ("env - p", "with -"),
        ("env -u LD_PRELOAD p", "with -u LD_PRELOAD"),
        ("env LD_PRELOAD=/x p", "with LD_PRELOAD=/x"),
        ("sudo -u me A=1 p", ""),
        ("sudo -E p", ""),
        ("doas p", ""),
        ("su - me", "with -"),
        ("runuser -l me -c p", "with -l"),
        ("ssh h p", ""),
    ],
)
def test_where_the_environment_is_lost_a_line_says_what_to_write(command, where):
    told = f"{where} starts programs without this environment: write {FRONT}"
    assert (look(command).doubt or "").partition(" ")[2] == told.lstrip()


@pytest.mark.parametrize(
    ("command", "base", "where"),
    [
        ("sbatch --export=NONE job", {}, "with --export=NONE"),
        ("sbatch --export-file=f job", {}, "with --export-file"),
        ("sbatch job", {"SBATCH_EXPORT": "A"}, "with --export=A"),
    ],
)
def test_a_batch_script_is_told_where_it_belongs(command, base, where):
    assert look(command, base).doubt == f"sbatch {where} starts programs without this environment: write {FRONT}"


def test_a_script_that_can_be_read_once_is_left_to_sbatch(tmp_path):
    read, write = os.pipe()
    os.write(write, b"#!/bin/sh\n#SBATCH --export=NONE\n")
    os.close(write)
    try:
        assert look(f"sbatch /dev/fd/{read}").doubt is None
        assert os.read(read, 100).startswith(b"#!/bin/sh")
    finally:
        os.close(read)


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("docker run --rm i p", f"{DOCKER} give run -v /opt/lib:/opt/lib:ro --env-file overlap.env"),
        ("podman exec c p", f"{DOCKER} give exec --env-file overlap.env"),
        ("apptainer exec i p", f"{DOCKER} give exec --bind /opt/lib --env-file overlap.env"),
    ],
)
def test_a_container_is_told_to_bring_folder_and_environment(command, written):
    name = command.partition(" ")[0]
    assert look(command).doubt == f"{name} starts programs without this environment: write {written}"


def test_a_job_of_ray_starts_with_overlap_run():
    told = "write /opt/bin/overlap-run --policy h100 in front of the program that it starts"
    assert look("ray job submit --address a -- p").doubt == f"ray starts programs without this environment: {told}"


@pytest.mark.parametrize(
    ("command", "base"),
    [
        ("srun -n2 p --export=NONE", {}),
        ("srun --export=ALL,A=1 p", {}),
        ("srun --export=NONE --export=ALL p", {}),
        ("srun --export=all p", {"SLURM_EXPORT_ENV": "NONE"}),
        ("srun --export=LD_PRELOAD,OVERLAP_TABLE p", {}),
        ("srun --export=ALL,NCCL_ALGO=Tree p", {}),  # on all ranks
        ("sbatch p --export=NONE", {}),
        ("sbatch --export=ALL job", {"SBATCH_EXPORT": "NONE"}),
        ("salloc p", {"SLURM_EXPORT_ENV": "NONE"}),
        ("mpirun -np 2 p -x A --host x,y", {}),
        ("mpirun -x A -np 2 p", {}),
        ("mpirun -x LD_PRELOAD -x OVERLAP_TABLE --host x,y p", {}),
        ("mpiexec -genvall p", {}),
        ("mpiexec -genvlist LD_PRELOAD,OVERLAP_TABLE p", {}),
        ("env A=1 p -i", {}),
        ("env", {}),
        ("env -S x", {}),
        ("sudo --preserve-env=LD_PRELOAD,OVERLAP_TABLE p", {}),
        ("su me -c p", {}),
        ("timeout -k 5 60 p", {}),
        ("docker ps", {}),
        (f"env LD_PRELOAD={LIBRARY} p", {}),
        ("docker run --env-file e i p", {}),
        ("docker run -e LD_PRELOAD -e OVERLAP_TABLE i p", {}),
        ("apptainer exec -B /opt/lib i p", {}),
        ("apptainer exec i p", {"APPTAINER_BIND": "/opt/lib"}),
        ("apptainer exec --bind /opt:/opt:ro i p", {}),
        ("apptainer exec i p", {"HOME": "/opt"}),
        ("singularity run i", {"SINGULARITY_BINDPATH": "/x,/opt:/opt"}),
        ("apptainer build i", {}),
        ("ray start --head", {}),
        ("ray job submit --runtime-env f -- p", {}),
        ("deepspeed p", {}),
        ("torchrun p", {}),
        ("accelerate launch p", {}),
        ("python env -i", {}),
    ],
)
def test_where_it_arrives_or_that_cannot_be_told_nothing_is_said(command, base):
    assert look(command, base, {**OURS, "NCCL_ALGO": "Ring"} if "NCCL" in command else OURS).doubt is None


def test_every_launcher_of_the_table_is_silent_where_nothing_is_set():
    for name in LAUNCHER_KINDS:
        way = look([name, "--export=NONE", "run", "x"], {"SLURM_EXPORT_ENV": "NONE"}, {})
        assert (way.doubt, way.changes) == (None, {})


@pytest.mark.parametrize(
    ("base", "value"),
    [
        ({}, LIST),
        ({"OMPI_MCA_mca_base_env_list": "A;B=1=2"}, f"A;B=1=2;{LIST}"),
        ({"OMPI_MCA_mca_base_env_list": "OVERLAP_TABLE=old;A;LD_PRELOAD"}, f"A;{LIST}"),
        (
            {"OMPI_MCA_mca_base_env_list": "A#B=;", "OMPI_MCA_mca_base_env_list_delimiter": "#"},
            f"A#B=;#{LIST.replace(';', '#')}",
        ),
    ],
)
def test_the_list_of_open_mpi_holds_the_users_and_ours(base, value):
    for command in ("mpirun p", "mpirun -np 2 a : -np 1 b -x", "nohup nice -n 5 mpiexec --host x p"):
        assert look(command, base).changes == {"OMPI_MCA_mca_base_env_list": value}


@pytest.mark.parametrize(
    "command",
    [
        "mpirun -x A p",
        "mpirun a : -x A b",
        "mpirun --tune f p",
        "mpirun -am f p",
        "mpirun --mca mca_base_env_list A p",
        "mpirun -gmca mca_base_env_list A p",
        "mpirun --mca mca_base_param_files f p",
    ],
)
def test_beside_another_list_there_is_none(command):
    assert look(command).changes == {}


def test_a_value_that_no_list_can_hold_is_not_put_there():
    way = look("mpirun --host x p", {}, {**OURS, "NCCL_X": "a;b"})
    assert (way.changes, "with --host" in (way.doubt or "")) == ({}, True)


def test_files_of_open_mpi_that_name_a_list_keep_theirs(tmp_path):
    (tmp_path / ".openmpi").mkdir()
    file = tmp_path / ".openmpi" / "mca-params.conf"
    file.write_text("# mca_base_env_list = A\n")
    assert look("mpirun p", {"HOME": str(tmp_path)}).changes
    file.write_text("btl = tcp\nmca_base_env_list = A\n")
    assert not look("mpirun p", {"HOME": str(tmp_path)}).changes
    assert not look("mpirun p", {"OMPI_MCA_mca_base_param_files": f"/x:{file}"}).changes


@pytest.mark.parametrize(
    ("script", "lost"),
    [
        ("#!/bin/sh\n#SBATCH -N2\n#SBATCH --export=NONE\np\n", True),
        ("#!/bin/sh\n\n# a word\n#SBATCH --export NONE\n", True),
        ("#!/bin/sh\n#SBATCH --export=NONE\n#SBATCH --export=ALL\n", False),
        ("#!/bin/sh\np\n#SBATCH --export=NONE\n", False),
        ("\xff", False),
    ],
)
def test_lines_of_the_batch_script_count(tmp_path, script, lost):
    (tmp_path / "job").write_text(script, encoding="latin-1")
    way = look(f"sbatch {tmp_path}/job")
    assert bool(way.doubt) == lost
    assert not lost or "with --export" in (way.doubt or "")
    assert look(f"sbatch --export=ALL {tmp_path}/job").doubt is None


@pytest.mark.parametrize(
    ("options", "hosts", "base", "lost"),
    [
        ("--hostfile={}", "a slots=2\n#x\n\nb slots=2\n", {}, True),
        ("-H {} --num_gpus 2 --no_python", "a slots=2\nb slots=2\n", {}, True),
        ("--hostfile {}", "a slots=2\n", {}, False),
        ("--hostfile {} --force_multi", "a slots=2\n", {}, True),
        ("--hostfile {} --num_nodes 1", "a slots=2\nb slots=2\n", {}, False),
        ("--hostfile {} --include a", "a slots=2\nb slots=2\n", {}, False),
        ("--hostfile {}", "a slots=2\nb slots=2\n", {"DS_ENV_FILE": "/f"}, False),
        ("", "a slots=2\nb slots=2\n", {}, False),
    ],
)
def test_deepspeed_on_several_hosts(tmp_path, options, hosts, base, lost):
    file = tmp_path / "hosts"
    file.write_text(hosts)
    command = f"deepspeed {options.format(file)} train.py --hostfile {file}"
    where = options.split(" --")[0]
    told = f"write {ENV} docker >overlap.env; export DS_ENV_FILE=$PWD/overlap.env"
    wanted = f"deepspeed with {where.format(file)} starts programs without this environment: {told}" if lost else None
    assert look(command, base).doubt == wanted


def test_what_must_arrive():
    base = {"HOME": "/", "OVERLAP_TABLE": "t", "OVERLAP_POLICY_PATH": "/p", "NCCL_ALGO": "Ring"}
    result = {**base, "LD_PRELOAD": LIBRARY, "OVERLAP_LAUNCHER_PID": "7", "NCCL_PROTO": "LL"}
    assert launchers.ours(base, result) == {"OVERLAP_TABLE": "t", "LD_PRELOAD": LIBRARY, "NCCL_PROTO": "LL"}
    assert launchers.ours({"LD_PRELOAD": "/x.so"}, {"LD_PRELOAD": "/x.so"}) == {}


def test_options_that_overlap_env_knows_are_told():
    again = ["overlap-run", "--quiet", "--simulate", "h100", "--policy=a b", "--strict", "--report", "d"]
    asked = launchers.LauncherCall(["docker", "run", "i"], {}, OURS, again)
    told = "write overlap env '--policy=a b' --report d --format docker >"
    assert told in (launchers.look(asked).doubt or "")
