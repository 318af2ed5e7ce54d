"""A shell after `module load`, `unload`, `swap`, `purge`: exactly the right variables, and none of them left."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import site_folder
from module_systems import Step, System

from pyshim import __version__
from pyshim.start.environment import is_sanitizer, preload, preloaded

LOAD, UNLOAD = "module load overlap-preload", "module unload overlap-preload"
ENTRY = "lib/liboverlap.so"
USUAL = ("OVERLAP_HOME", "OVERLAP_MODULE_SET")
OTHERS = ("libasan.so.8", "libforeign.so", "libclang_rt.tsan-x86_64.so")


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with libraries that others preload. They are all empty, so that programs of the test bear them."""
    folder = tmp_path_factory.mktemp("foreign")
    compiled = folder / OTHERS[0]
    subprocess.run(["cc", "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o", str(compiled)], check=True)
    for name in OTHERS[1:]:
        shutil.copy(compiled, folder / name)
    return folder


@pytest.fixture
def own_site(site: Path, tmp_path: Path, modules: System) -> Path:
    """A site folder to change, to which the modules belong."""
    copy = tmp_path / "overlap"
    shutil.copytree(site, copy, symlinks=True)
    site_folder.belongs_to(copy, site)
    modules.clean = {**modules.clean, "MODULEPATH": str(copy / "modulefiles")}
    return copy


def exported(site: Path, name: str) -> dict[str, str]:
    lines = (site / "env" / f"{name}.env").read_text().splitlines()
    return {**dict(line[len("export ") :].split("=", 1) for line in lines), "LD_PRELOAD": f"{site}/{ENTRY}"}


def added(step: Step, before: Step) -> dict[str, str]:
    """What the modules have set, without what they need for themselves."""
    new = {name: value for name, value in step.environment.items() if before.environment.get(name) != value}
    assert before.environment.keys() <= step.environment.keys()
    return {name: value for name, value in new.items() if name not in USUAL}


def quiet(*steps: Step) -> None:
    """No failure, and nothing said but what Environment Modules always says."""
    for step in steps:
        usual = r"(Loading|Unloading) overlap|  (Loading|Unloading useless) requirement"
        assert [line for line in step.stderr.splitlines() if line and not re.match(usual, line)] == []
        assert step.status == 0


def test_without_preload_nothing_that_runs_changes(modules, own_site):
    (own_site / "bin").mkdir()
    (own_site / "bin" / "overlap-run").touch()
    before, loaded, unloaded = modules("true", "module load overlap", "module unload overlap")
    quiet(loaded, unloaded)
    assert added(loaded, before) == {"PATH": f"{own_site}/bin:{before.environment['PATH']}"}
    assert loaded.environment["OVERLAP_HOME"] == str(own_site)
    assert unloaded.environment == before.environment


def test_the_commands_are_in_path_only_where_they_are_installed(modules, site):
    before, loaded = modules("true", "module load overlap")
    assert added(loaded, before) == {}


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("name", ["auto", "observe", "mi300x"])
def test_a_policy_is_there_while_the_module_is(modules, site, name, shell):
    env = {"OVERLAP_POLICY": name}
    steps = modules("true", LOAD, LOAD, UNLOAD, f"{LOAD}; {LOAD}; {UNLOAD}", LOAD, "module purge", env=env, shell=shell)
    quiet(*steps)
    before, loaded, twice, *others = steps
    assert added(loaded, before) == exported(site, name)
    assert twice.environment == loaded.environment
    assert [step.environment == before.environment for step in others] == [True, True, False, True]


def test_a_preload_of_others_is_kept_behind_ours_and_comes_back(modules, site, foreign):
    value = f"{foreign}/libforeign.so"
    before, loaded, unloaded = modules("true", LOAD, UNLOAD, env={"LD_PRELOAD": value})
    quiet(loaded, unloaded)
    assert loaded.environment["LD_PRELOAD"] == f"{site}/{ENTRY}:{value}"
    assert unloaded.environment == before.environment


@pytest.mark.parametrize("separator", [":", " "])
@pytest.mark.parametrize("names", [OTHERS[:1], OTHERS[:2], (OTHERS[2], OTHERS[1]), OTHERS[:1] + OTHERS[:0:-1]])
def test_a_sanitizer_runtime_stays_in_front_of_ours(modules, site, foreign, names, separator):
    value = separator.join(f"{foreign}/{name}" for name in names)
    before, loaded, unloaded = modules("true", LOAD, UNLOAD, env={"LD_PRELOAD": value})
    quiet(loaded, unloaded)
    ours = f"{site}/{ENTRY}"
    entries = preloaded(loaded.environment["LD_PRELOAD"])
    assert entries.count(ours) == 1
    assert [entry for entry in entries if entry != ours] == preloaded(value)
    assert all(entries.index(entry) < entries.index(ours) for entry in entries if is_sanitizer(entry))
    if separator == ":":
        assert loaded.environment["LD_PRELOAD"] == preload(value, ours)
    assert unloaded.environment == before.environment


@pytest.mark.parametrize("name", ["libasan-tools/x.so", "libasanity.so", "xlibasan.so", "libubsan.so.1"])
def test_what_is_only_called_like_one_stays_behind_ours(modules, site, tmp_path, name):
    _, loaded = modules("true", LOAD, env={"LD_PRELOAD": f"{tmp_path}/{name}"})
    assert loaded.environment["LD_PRELOAD"] == f"{site}/{ENTRY}:{tmp_path}/{name}"


def test_others_that_come_while_it_is_loaded_stay_when_it_goes(modules, site, foreign):
    other = foreign / "libforeign.so"
    line = f"LD_PRELOAD={other}:$LD_PRELOAD OVERLAP_QUIET=1; export LD_PRELOAD OVERLAP_QUIET"
    before, _, unloaded = modules("true", f"{LOAD}; {line}", UNLOAD)
    assert added(unloaded, before) == {"LD_PRELOAD": str(other), "OVERLAP_QUIET": "1"}


@pytest.mark.parametrize("name", ["liboverlap.so", "other/liboverlap.so"])
def test_a_copy_that_is_preloaded_already_stays_alone(modules, site, tmp_path, name):
    (tmp_path / "other").mkdir()
    shutil.copy(site / "lib/liboverlap.so", tmp_path / name)
    env = {"LD_PRELOAD": str(tmp_path / name), "OVERLAP_TABLE": "outer"}
    before, loaded, unloaded = modules("true", LOAD, UNLOAD, env=env)
    quiet(loaded, unloaded)
    assert added(loaded, before) == {}
    assert unloaded.environment == before.environment


@pytest.mark.parametrize("policy", ["mi300x", "none"])
def test_a_policy_that_is_there_already_stands(modules, site, policy):
    env = {"OVERLAP_POLICY": policy, "OVERLAP_TABLE": "outer"}
    before, loaded, unloaded = modules("true", LOAD, UNLOAD, env=env)
    quiet(loaded, unloaded)
    assert added(loaded, before) == {"LD_PRELOAD": f"{site}/{ENTRY}"}
    assert unloaded.environment == before.environment


def test_a_variable_of_the_user_stands(modules, site):
    env = {"OVERLAP_POLICY": "mi300x", "TORCH_NCCL_HIGH_PRIORITY": "0"}
    before, loaded, unloaded = modules("true", LOAD, UNLOAD, env=env)
    quiet(loaded, unloaded)
    assert set(added(loaded, before)) == {"LD_PRELOAD", "OVERLAP_TABLE"}
    assert unloaded.environment == before.environment


def test_who_chooses_the_policy(modules, own_site):
    """The variable, else the user's file, else the site's default, else auto."""
    tables = {exported(own_site, name)["OVERLAP_TABLE"]: name for name in ("auto", "observe", "h100", "mi300x")}
    file = Path(modules.clean["HOME"]) / ".config/overlap-run/policy"
    file.parent.mkdir(parents=True)
    loads = (
        "true",
        f"echo observe >{own_site}/default",
        f"echo h100 >{file}",
        "OVERLAP_POLICY=mi300x; export OVERLAP_POLICY",
        "unset OVERLAP_POLICY; mkdir -p ~/x/overlap-run; echo auto >~/x/overlap-run/policy; export XDG_CONFIG_HOME=~/x",
    )
    steps = modules(*(f"module purge; {line}; {LOAD}" for line in loads))
    found = [tables[step.environment["OVERLAP_TABLE"]] for step in steps]
    assert found == ["auto", "observe", "h100", "mi300x", "auto"]


@pytest.mark.parametrize("env", [{"OVERLAP_RUN": "off"}, {"OVERLAP_POLICY": "off"}])
def test_off_is_off(modules, site, env):
    before, loaded, unloaded = modules("true", LOAD, UNLOAD, env=env)
    quiet(loaded, unloaded)
    assert added(loaded, before) == {}
    assert unloaded.environment == before.environment


def test_a_policy_that_was_chosen_anew_comes_with_the_next_load(modules, site):
    before, loaded, unloaded = modules(
        "true", f"OVERLAP_POLICY=mi300x; export OVERLAP_POLICY; {LOAD}", f"OVERLAP_POLICY=observe; {UNLOAD}"
    )
    assert loaded.environment["TORCH_NCCL_HIGH_PRIORITY"] == "1"
    assert added(unloaded, before) == {"OVERLAP_POLICY": "observe"}


def test_another_version_takes_its_place(modules, own_site, foreign):
    for path in list((own_site / "modulefiles").rglob(f"{__version__}*")):
        other = path.with_name(path.name.replace(__version__, "99"))
        other.write_text(path.read_text().replace(__version__, "99").replace(str(own_site), f"{own_site}/99"))
    shutil.copytree(own_site / "lib", own_site / "99" / "lib")
    shutil.copytree(own_site / "env", own_site / "99" / "env")
    for file in (own_site / "99" / "env").iterdir():
        file.write_text(file.read_text().replace("export OVERLAP_TABLE=", "export OVERLAP_TABLE=99"))
    both = f"module swap overlap-preload/{__version__} overlap-preload/99"
    env = {"LD_PRELOAD": f"{foreign}/libforeign.so", "OVERLAP_POLICY": "mi300x"}
    steps = modules("true", f"{LOAD}/{__version__}", both, "module purge", env=env)
    before, _, swapped, purged = steps
    library = f"{own_site}/99/{ENTRY}:{foreign}/libforeign.so"
    assert added(swapped, before) == {**exported(own_site / "99", "mi300x"), "LD_PRELOAD": library}
    assert swapped.environment["OVERLAP_HOME"] == f"{own_site}/99"
    assert purged.environment == before.environment


def test_loaded_anew_it_is_as_before(modules, site, foreign):
    env = {"LD_PRELOAD": f"{foreign}/libforeign.so", "OVERLAP_POLICY": "mi300x"}
    again = {"lmod": "module update", "tcl": "module reload"}[modules.name]
    before, loaded, reloaded, purged = modules("true", LOAD, again, "module purge", env=env)
    assert "TORCH_NCCL_HIGH_PRIORITY" in added(loaded, before)
    assert added(reloaded, before) == added(loaded, before)
    assert purged.environment == before.environment


def broken(change: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda site: change(site / "lib" / "liboverlap.so")


@pytest.mark.parametrize(
    ("change", "env", "sentence"),
    [
        pytest.param(broken(Path.unlink), {}, "liboverlap.so is missing or cannot be read", id="missing"),
        pytest.param(broken(lambda path: path.write_bytes(b"")), {}, "is for no known machine", id="empty"),
        pytest.param(
            broken(lambda path: path.write_bytes(bytes(18) + b"\x16\0")), {}, "is for no known machine", id="machine"
        ),
        pytest.param(Path.exists, {"OVERLAP_POLICY": "none"}, "there is no policy none in", id="policy"),
        pytest.param(Path.exists, {"OVERLAP_POLICY": "../env/auto"}, "there is no policy ../env/auto", id="path"),
    ],
)
def test_it_refuses_in_one_sentence_and_changes_nothing(modules, own_site, change, env, sentence):
    change(own_site)
    before, loaded, after = modules("true", LOAD, "true", env=env)
    said = " ".join(loaded.stderr.split())
    assert loaded.status != 0
    assert said.count("overlap-preload: ") == 1
    assert sentence in said
    assert "invoked from" not in said and "stack traceback" not in said
    assert added(after, before) == {}


def test_it_can_be_unloaded_when_the_library_is_gone(modules, own_site, foreign):
    env = {"LD_PRELOAD": f"{foreign}/libforeign.so"}
    before, _, unloaded = modules("true", f"{LOAD}; rm -r {own_site}/lib {own_site}/env", UNLOAD, env=env)
    assert unloaded.environment == before.environment


def test_no_value_is_more_than_a_value(modules, own_site):
    """An env file that somebody has tampered with."""
    values = ["`touch /x`", "$(x)", "'", "1;x", "1\r", "", "x y"]
    names = ["PATH", "LD_LIBRARY_PATH", "BASH_ENV", "CUDA_VISIBLE_DEVICES", "NCCL_", "SLURM_X", "nccl_x", "_", "2_X"]
    evil = [f"export NCCL_X{number}={value}" for number, value in enumerate(values)]
    evil += ["NCCL_X=1", " export NCCL_X=1", *(f"export {name}=1" for name in names)]
    with (own_site / "env" / "auto.env").open("a") as file:
        file.write("\n".join([*evil, "export NCCL_GOOD=a/b:1", ""]))
    before, loaded = modules("true", LOAD)
    assert set(added(loaded, before)) == {"LD_PRELOAD", "OVERLAP_TABLE", "NCCL_GOOD"}


@pytest.mark.parametrize("shell", ["csh", "tcsh", "fish"])
@pytest.mark.parametrize("more", [0, 4000])
def test_other_shells_are_told_the_same(modules, own_site, shell, more):
    file = own_site / "env" / "h100.env"
    file.write_text(re.sub("(OVERLAP_TABLE=.*)", rf"\1{'A' * more}", file.read_text()))
    said = modules.said_to(shell, "load", "overlap-preload", env={"OVERLAP_POLICY": "h100"})
    if shell == "csh" and more:  # Environment Modules would give it the first 4,000 characters
        assert "OVERLAP_TABLE" not in said
        return
    for name, value in exported(own_site, "h100").items():
        assert re.search(rf"(setenv|set -x -g|set -xg) {name} [\"']?{re.escape(value)}[\"']?;", said), said[:300]


def test_what_it_says_about_itself(modules, site):
    asked = {
        "help overlap-preload": "OVERLAP_RUN=off",
        "whatis overlap-preload": "LD_PRELOAD",
        "help overlap": "module load overlap-preload",
        "whatis overlap": "multi-GPU",
    }
    steps = modules(*(f"module {words}" for words in asked))
    for step, words in zip(steps, asked.values()):
        text = " ".join((step.stdout + step.stderr).split())
        assert words in text
        assert __version__ in text
        assert "@" not in text


def test_the_task_prolog_lets_the_word_of_the_module_stand(modules, own_site, clean_environment):
    """A site whose default differs from what the user's module has chosen."""
    (own_site / "default").write_text("h100\n")
    loaded, prolog = modules(
        LOAD,
        f"SLURM_SCRIPT_CONTEXT=prolog_task {shlex.quote(f'{own_site}/libexec/task-prolog')}",
        env={"OVERLAP_POLICY": "observe"},
    )
    said = dict(line[len("export ") :].split("=", 1) for line in prolog.stdout.splitlines())
    assert "OVERLAP_TABLE" not in said
    assert said.get("LD_PRELOAD", loaded.environment["LD_PRELOAD"]) == loaded.environment["LD_PRELOAD"]
    assert loaded.environment["OVERLAP_TABLE"] == exported(own_site, "observe")["OVERLAP_TABLE"]
