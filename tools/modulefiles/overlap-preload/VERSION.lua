-- Lmod. Copied to @PREFIX@/modulefiles by tools/site/install; VERSION beside it says the same to Tcl modules.
help([[
Every program that this shell starts runs under a policy of overlap-run @VERSION@. Which one: OVERLAP_POLICY, else the
first line of ${XDG_CONFIG_HOME:-~/.config}/overlap-run/policy, else the site's default, else auto; when the module is
loaded. What is set already stays as it is. OVERLAP_RUN=off turns everything off. In job scripts: srun and mpirun pass
the environment on (not with --export=NONE); inside containers @PREFIX@ must be mounted.
]])
whatis("Name: overlap-run, preloaded")
whatis("Version: @VERSION@")
whatis("Description: runs every program of this shell under a policy of overlap-run (LD_PRELOAD)")
depends_on("overlap/@VERSION@")

local home, library = "@PREFIX@", "@PREFIX@/lib/liboverlap.so"
local ours = "@PREFIX@/lib/$PLATFORM/liboverlap.so" -- of LD_PRELOAD: the loader puts in a folder, that of 32-bit programs, too
local taken_back = "OVERLAP_MODULE_SET" -- what load has set: whatever has changed since, unload takes back that and no more
-- The first word of what a policy may set, as in libexec/task-prolog.
local words = " OVERLAP NCCL RCCL NVSHMEM MSCCL UCX FI TORCH PYTORCH CUDA HIP HSA GPU AMD ROC "
-- Ranks must agree on these, and a module speaks for one shell only: pyshim/policy/variables.py has the same list.
local must_agree = [[
    NCCL_ALGO NCCL_PROTO NCCL_*NTHREADS NCCL_*CTAS NCCL_CTA_POLICY NCCL_*NCHANNELS* NCCL_*NRINGS NCCL_*BUFFSIZE
    NCCL_*CHUNKSIZE NCCL_NVLS_ENABLE NCCL_COLLNET_ENABLE RCCL_UNROLL_FACTOR RCCL_THREADS_PER_BLOCK RCCL_WARP_SPEED_* RCCL_MSCCL*
]]
local sanitizers = { asan = true, tsan = true, lsan = true, msan = true, hwasan = true }
local machines = { [62] = "x86_64", [183] = "aarch64" }

-- Of a file that may be anything, and may not be there.
local function lines_of(path)
    local file = isFile(path) and io.open(path)
    return file and file:lines() or function() end
end

-- The first line that is not blank, without the blanks around it.
local function first_line(path)
    for line in lines_of(path) do
        local text = line:match("^[ \t]*(.-)[ \t]*$")
        if text ~= "" then return text end
    end
end

local function is_set(text)
    return text ~= nil and text ~= ""
end

local function policy()
    local config = os.getenv("XDG_CONFIG_HOME")
    if not is_set(config) then config = (os.getenv("HOME") or "") .. "/.config" end
    local name = os.getenv("OVERLAP_POLICY")
    if not is_set(name) then name = first_line(config .. "/overlap-run/policy") end
    if not is_set(name) then name = first_line(home .. "/default") end
    return is_set(name) and name or "auto"
end

-- Why the library cannot be preloaded here; nil if it can.
local function obstacle()
    local binary = io.open(library, "rb")
    if not binary then return library .. " is missing or cannot be read: ask who installed it" end
    local low, high = (binary:read(20) or ""):byte(19, 20)
    binary:close()
    local here, its = capture("uname -m"):gsub("%s", ""), machines[(low or 0) + 256 * (high or 0)] or "no known machine"
    if its ~= here then return library .. " is for " .. its .. ", and this is " .. here end
end

local function missing(name)
    if not name:find("^[%w_-][%w._-]*$") or not isFile(home .. "/env/" .. name .. ".env") then
        return "there is no policy " .. name .. " in " .. home .. "/env: set OVERLAP_POLICY to one that is there"
    end
end

local function may_set(variable)
    for glob in must_agree:gmatch("%S+") do
        if variable:find("^" .. glob:gsub("%*", ".*") .. "$") then return false end
    end
    local word = variable:match("^(%u+)_[%u%d_]+$")
    return word and words:find(" " .. word .. " ", 1, true) and not variable:find("VISIBLE_DEVICES$")
end

-- By the shell, or by a user in a file that NCCL reads for what the environment does not say.
local function set_already(variable)
    if os.getenv(variable) ~= nil then return true end
    local of_user = (os.getenv("HOME") or "") .. "/.nccl.conf"
    for _, path in ipairs({ os.getenv("NCCL_CONF_FILE") or "", of_user, "/etc/nccl.conf" }) do
        for line in lines_of(path) do
            if line:find("^" .. variable .. "[ \t]*=") then return true end
        end
    end
end

-- By the name of the file; blanks part entries, too.
local function is_sanitizer(entry)
    for path in entry:gmatch("[^ ]+") do
        local name = path:match("[^/]*$"):match("^lib(.*)") or ""
        if sanitizers[name:gsub("^clang_rt%.", ""):match("^[%w_]*")] then return true end
    end
end

-- First, but behind sanitizer runtimes, which end the program otherwise; not where a copy is already.
local function preload()
    local before = os.getenv("LD_PRELOAD") or ""
    if (before .. ":"):find("liboverlap%.so[: ]") then return false end
    local entries, last = {}, 0
    for entry in before:gmatch("[^:]+") do
        entries[#entries + 1] = entry
        if is_sanitizer(entry) then last = #entries end
    end
    local head = table.concat(entries, ":", 1, last)
    if last > 0 then remove_path("LD_PRELOAD", head) end
    prepend_path("LD_PRELOAD", ours)
    if last > 0 then prepend_path("LD_PRELOAD", head) end
    return true
end

local function load()
    local name = policy()
    if os.getenv("OVERLAP_RUN") == "off" or name == "off" then return end
    local chosen = is_set(os.getenv("OVERLAP_TABLE")) -- by an outer overlap-run or a job's prolog: that policy stands
    local why = obstacle() or not chosen and missing(name)
    if why then LmodError("overlap-preload: " .. why) end
    local set = preload() and { "LD_PRELOAD" } or {}
    for line in lines_of(chosen and "" or home .. "/env/" .. name .. ".env") do
        local variable, value = line:match("^export ([%u%d_]+)=([%w._/+:=@%%~,-]+)$")
        if variable and may_set(variable) and not set_already(variable) then
            setenv(variable, value)
            set[#set + 1] = variable
        end
    end
    if #set > 0 then setenv(taken_back, table.concat(set, ":")) end
end

local function unload()
    for variable in (os.getenv(taken_back) or ""):gmatch("[^:]+") do
        if variable == "LD_PRELOAD" then
            prepend_path(variable, ours) -- the opposite, as always when a module is unloaded
        else
            setenv(variable, "")
        end
    end
    setenv(taken_back, "")
end

if mode() == "unload" then unload() elseif mode() == "load" or mode() == "show" then load() end
