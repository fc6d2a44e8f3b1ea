-- SPDX-License-Identifier: MIT
--
-- As much of Wireshark's Lua API as tm3.lua uses, for Lua alone: `lua stand_in.lua tm3.lua PACKETS`.
-- PACKETS has a line a packet: frame, time, payload's place, the frame in hex; each segment holds
-- whole messages. Prints what the dissector puts into the tree in two passes, and the statistics.
-- With `gui.lua` and what that wants behind PACKETS it is Wireshark instead of tshark.

local script, packets, gui = arg[1], arg[2], arg[3]
local depth, dissectors, post = 0, {}, nil

local function say(...)
    if gui then return end
    local parts = { ... }
    for i = 1, #parts do parts[i] = tostring(parts[i]) end
    print(string.rep("  ", depth) .. table.concat(parts, " "))
end

local Tvb = {}
Tvb.__index = Tvb
local function new_tvb(bytes, offset) return setmetatable({ s = bytes, at = offset }, Tvb) end
function Tvb:len() return #self.s end
function Tvb:reported_len() return #self.s end
function Tvb:offset() return self.at end
function Tvb:raw(at, n)
    assert(at >= 0 and n >= 0 and at + n <= #self.s, "out of range")
    return self.s:sub(at + 1, at + n)
end
local Range = {}
Range.__index = Range
function Range:tvb() return new_tvb(self.s, 0) end
function Range:__tostring()
    return (self.s:gsub(".", function(c) return string.format("%02x", c:byte()) end))
end
function Tvb:range(at, n) return setmetatable({ s = self:raw(at, n) }, Range) end

local Tree = { visible = true }
Tree.__index = Tree
local function new_tree() return setmetatable({}, Tree) end
function Tree:add(field, ...)
    say("+", type(field) == "table" and field.name or field, ...)
    return new_tree()
end
Tree.add_le = Tree.add
function Tree:referenced() return true end
function Tree:set_generated() return self end
function Tree:append_text(text) say("..", text) end
function Tree:set_text(text) say("=", text) end
function Tree:add_proto_expert_info(what, text) say("!", what.name, text) end

local function words() return setmetatable({}, { __index = function(_, key) return key end }) end
base, expert, frametype = words(), { group = words(), severity = words() }, words()
local function field(name) return { name = name } end
ProtoField = setmetatable({}, { __index = function() return field end })
ProtoExpert = { new = field }
Pref = {
    range = function(_, default) return default end,
    uint = function(_, default) return default end,
    bool = function(_, default) return default end,
    enum = function(_, default) return default end,
    string = function(_, default) return default end,
}
function Proto(name)
    local proto = { name = name, prefs = {} }
    function proto.register_heuristic() end
    dissectors[name] = { call = function(_, ...) return proto.dissector(...) end }
    return proto
end
Dissector = { get = function(name)
    return dissectors[name] or name == "tcp" and { call = function(_, tvb)
        say("handed on", tvb:range(0, #tvb.s))
    end }
end }
DissectorTable = { get = function()
    return {
        add = function() end, remove = function() end, add_for_decode_as = function() end,
        get_dissector = function() end,
    }
end }
ByteArray = { new = function(s) return { tvb = function() return new_tvb(s, 0) end } end }
NSTime = { new = function(s, ns) return string.format("%d.%09d", s, ns) end }
Address = { ip = function(text) return text end }
function UInt64(low, high) return string.format("%d:%d", high, low) end
Listener = { new = function() return { remove = function() end } end }
DESEGMENT_ONE_MORE_SEGMENT = 0x0fffffff
function set_plugin_info() end
function gui_enabled() return false end
function register_postdissector(proto) post = proto end

local tm3
local real_proto = Proto
function Proto(name)
    local proto = real_proto(name)
    if name == "tm3" then tm3 = proto end
    return proto
end

local use = gui and dofile(gui)
dofile(script)

local function unhex(text)
    return (text:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end))
end

local function number16(s, at) return s:byte(at) * 256 + s:byte(at + 1) end

local function look_at(line, visited)
    local frame, time, place, hex = line:match("(%d+) (%S+) (%d+) (%x+)")
    local s = unhex(hex)
    local pinfo = {
        number = math.floor(tonumber(frame)), abs_ts = tonumber(time), visited = visited,
        src = table.concat({ s:byte(27, 30) }, "."), dst = table.concat({ s:byte(31, 34) }, "."),
        src_port = number16(s, 35), dst_port = number16(s, 37), len = #s, can_desegment = 1,
        cols = { info = "(info)", protocol = "(protocol)" },
    }
    say("frame", frame, "pass", visited and 2 or 1)
    depth = 1
    place = math.floor(tonumber(place))
    if place < #s then tm3.dissector(new_tvb(s:sub(place + 1), place), pinfo, new_tree()) end
    post.dissector(new_tvb(s, 0), pinfo, new_tree())
    depth = 0
end

if use then return use(packets, look_at, tm3.init) end
for pass = 1, 2 do
    for line in io.lines(packets) do look_at(line, pass == 2) end
end
local listener
Listener.new = function()
    listener = { remove = function() end }
    return listener
end
for mode = 1, 2 do
    tm3.prefs.statistics = mode
    tm3.prefs_changed()
    listener.draw()
end
