-- Lmod. Copied to @PREFIX@/modulefiles by tools/site/install; VERSION beside it says the same to Tcl modules.
help([[
overlap-run @VERSION@, without changing what runs: OVERLAP_HOME, MANPATH, and PATH where the commands are installed there.
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

-- With an empty entry at its end, MANPATH adds to the system's pages and does not replace them. Unloading removes that
-- entry where it is the only one left.
local man = "@PREFIX@/share/man"
local folders = (os.getenv("MANPATH") or ""):gsub(":+$", "")
prepend_path("MANPATH", man)
if folders == "" or folders == man then
    append_path("MANPATH", "")
end
