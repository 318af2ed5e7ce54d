"""Bugs planted in what runs on clusters: the task-prolog and the folder of a site."""

from __future__ import annotations

from tools.mutants.table import Mutant

_PROLOG, _INSTALL = "tools/slurm/task-prolog", "tools/site/install"
_SCRIPT, _JOBS, _SITE, _READERS, _RUNS = (
    f"tests/slurm/test_{name}.py" for name in ("script", "task_prolog", "install", "readers", "runs")
)
_LUA, _TCL = (f"tools/modulefiles/overlap-preload/VERSION{end}" for end in (".lua", ""))
_MODULES = "tests/modulefiles/test_modulefiles.py"


def _one(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name, ((file, old, new),), tests)


SLURM_MUTANTS = [
    # ---- What must not get into a job ----
    _one(
        "values are not looked at",
        _PROLOG,
        "case $1 in *[!A-Za-z0-9._/+:=@%~,-]*) return 1",
        "case 1 in 2) return 1",
        _SCRIPT,
    ),
    _one(
        "names of policies are not looked at", _PROLOG, "'' | .* | *[!A-Za-z0-9._-]*) return 1", "'') return 1", _SCRIPT
    ),
    _one(
        "any variable may be set",
        _PROLOG,
        "    *) return 1 ;;\n    esac\n}\n\n# What a file holds",
        "    esac\n}\n\n# What a file holds",
        _SCRIPT,
    ),
    _one("lists of devices may be set", _PROLOG, " | *VISIBLE_DEVICES)", ")", _SCRIPT),
    _one(
        "the task's preload is not looked at",
        _PROLOG,
        "LD_PRELOAD of the task holds what cannot be passed on' ;;",
        "' >/dev/null ;;",
        _SCRIPT,
    ),
    _one(
        "lines of files are passed on",
        _PROLOG,
        "*) continue ;; esac\n        line",
        '*) exports="$exports$line$newline" ;; esac\n        line',
        _SCRIPT,
    ),
    _one(
        "numbers are not looked at",
        _PROLOG,
        "case $1 in '' | *[!0-9]* | 0?* | ???????????*) return 1 ;; esac",
        "",
        _SCRIPT,
    ),
    # ---- Who chooses, and what stays as it is ----
    _one("off is a policy", _PROLOG, '[ "$policy" != off ] || leave', '[ "$policy" != of ] || leave', _SCRIPT),
    _one(
        "off is on", _PROLOG, '[ "${OVERLAP_RUN-}" != off ] || leave', '[ "${OVERLAP_RUN-}" != of ] || leave', _SCRIPT
    ),
    _one("the user does not choose", _PROLOG, 'policy=$(first_line "$by")\n    fi\n    if', "fi\n    if", _SCRIPT),
    _one(
        "an outer choice is overruled",
        _PROLOG,
        'if [ "${OVERLAP_TABLE-}" ]; then',
        'if [ "${OVERLAP_TABL-}" ]; then',
        _SCRIPT,
        _JOBS,
    ),
    _one("an outer library is exchanged", _PROLOG, "library=$(preloaded)", "library=''", _SCRIPT),
    _one("what the task has set is overruled", _PROLOG, 'eval "[ \\"\\${$1+set}\\" ]"', "false", _SCRIPT),
    _one("nccl.conf is overruled", _PROLOG, '"$1="* | "$1 "*) return 0', '"$1="* | "$1 "*) return 1', _SCRIPT),
    _one("a shell gets $PLATFORM", _PROLOG, '"${SLURM_SCRIPT_CONTEXT-}" = prolog_task', "prolog_task", _SCRIPT),
    _one("an outer library under $PLATFORM is lost", _PROLOG, '"${entry%/*/*}/liboverlap.so"', '"$entry"', _SCRIPT),
    _one("Tcl modules name no platform", _TCL, "lib/\\$PLATFORM/", "lib/", _MODULES),
    _one("Lmod names no platform", _LUA, "lib/$PLATFORM/", "lib/", _MODULES),
    _one("other preloads are dropped", _PROLOG, '"$first$1$rest"', '"$first$1"', _SCRIPT),
    _one("sanitizers come second", _PROLOG, '"$first$1$rest"', '"$1:$first$rest"', _SCRIPT),
    # ---- What may be wrong on a node ----
    _one(
        "the architecture does not matter",
        _PROLOG,
        '"127 69 76 70 2 1 $machine") ;;',
        '"127 69 76 70 2 1 "*) ;;',
        _SCRIPT,
    ),
    _one("a missing library is preloaded", _PROLOG, '[ ! "$why" ] || leave "$why"', "", _SCRIPT, _JOBS),
    _one("a pipe is waited for", _PROLOG, '[ -f "$1" ] && [ -r "$1" ]', '[ -r "$1" ]', _SCRIPT),
    _one("the status says what happened", _PROLOG, "    trap 'exit 0' EXIT HUP INT PIPE TERM\n", "", _SCRIPT),
    _one("the loader is heard", _PROLOG, "unset LD_PRELOAD #", ": #", _SCRIPT),
    _one("home is an environment variable", _PROLOG, 'eval "home=~$user"', ":", _SCRIPT),
    _one("the steps of a job are one", _PROLOG, "step=${SLURM_STEP_ID:-4294967291}", "step=0", _SCRIPT, _JOBS),
    _one("an attempt is no run of its own", _PROLOG, "attempt % 256 << 24", "0 << 24", _SCRIPT),
    _one("a step has the run of its script", _PROLOG, "'' | \"${identifier%????????}\"????????)", "'')", _RUNS),
    _one("any named run is replaced", _PROLOG, '"${identifier%????????}"????????', '"${OVERLAP_RUN_ID-}"', _SCRIPT),
    _one("values of any length", _PROLOG, "[ ${#1} -le 122880 ]", ":", _SCRIPT),
    _one("half of a policy is one", _PROLOG, "[ ${#text} -lt 262144 ] || return", "", _SCRIPT),
    # ---- The modulefiles, and what all readers of the folder have in common ----
    _one("a prolog sets what ranks must agree on", _PROLOG, "RCCL_MSCCL*) return 1 ;;", "RCCL_MSCCL*) ;;", _READERS),
    _one("Lmod sets what ranks must agree on", _LUA, "NCCL_*CTAS ", "", _READERS),
    _one("Tcl modules set what ranks must agree on", _TCL, "NCCL_*CTAS ", "", _READERS),
    _one("Lmod overrules nccl.conf", _LUA, '"[ \\t]*=") then return true', '"[ \\t]*=") then return false', _READERS),
    _one("Tcl modules overrule nccl.conf", _TCL, '\\[ \\t]*="] >= 0', '\\[ \\t]*="] >= 99', _READERS),
    _one("Lmod takes the first line", _LUA, 'if text ~= "" then return', "if text then return", _READERS),
    _one("Tcl modules take the first line", _TCL, "{[^ \\t]}", "{}", _READERS),
    _one(
        "Tcl modules: what is unset in a swap is set",
        _TCL,
        'if {[variable_of $variable] ne ""} {return 1}',
        "if {[info exists ::env($variable)]} {return 1}",
        _MODULES,
    ),
    _one(
        "Lmod: a folder is a runtime", _LUA, 'path:match("[^/]*$"):match("^lib(.*)")', 'path:match("lib(.*)")', _MODULES
    ),
    _one("Tcl modules: a folder is a runtime", _TCL, "\\y[^/ ]*( |$)}", "\\y}", _MODULES),
    # ---- The folder ----
    _one("modulefiles of others are removed", _INSTALL, " if MARK in path.read_bytes()", "", _SITE),
    _one("umask decides who reads it", _INSTALL, "            scratch.chmod(item.mode)\n", "", _SITE),
    _one(
        "files are written in place",
        _INSTALL,
        "scratch.replace(target)",
        "target.write_bytes(scratch.read_bytes())",
        _SITE,
    ),
    _one("old policies stay", _INSTALL, "        forget(prefix, items)\n", "", _SITE),
    _one(
        "the administrator's variables are the jobs'",
        _INSTALL,
        "    os.environ.clear()",
        "    os.environ.copy()",
        _SITE,
    ),
    _one("a site's policy hides a shipped one", _INSTALL, "if policy.name in found or policy", "if policy", _SITE),
    # ---- The commands ----
    _one(
        "a prolog speaks for all ranks",
        "pyshim/cli/env.py",
        'options.format == "slurm" and options.all_ranks',
        "False",
        "tests/cli/test_env.py",
    ),
    _one(
        "OVERLAP_POLICY overrules --policy",
        "pyshim/launch/plan.py",
        'if policy is not None or base.get("OVERLAP_TABLE"):',
        'if base.get("OVERLAP_TABLE"):',
        "tests/cli/test_run.py",
        "tests/cli/test_env.py",
    ),
]
