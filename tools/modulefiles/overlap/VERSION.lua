-- Lmod. Copied to @PREFIX@/modulefiles by tools/site/install; VERSION beside it says the same to Tcl modules.
help([[
overlap-run @VERSION@, without changing what runs: OVERLAP_HOME, and PATH where the commands are installed there.
To run every program of this shell under a policy: module load overlap-preload.
]])
whatis("Name: overlap-run")
whatis("Version: @VERSION@")
whatis("Description: lets communication of multi-GPU programs overlap their computation")

local bin = "@PREFIX@/bin"
setenv("OVERLAP_HOME", "@PREFIX@")
if isFile(bin .. "/overlap-run") or (":" .. os.getenv("PATH") .. ":"):find(":" .. bin .. ":", 1, true) then
    prepend_path("PATH", bin)
end
