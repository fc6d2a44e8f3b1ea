-- SPDX-License-Identifier: MIT
--
-- Wireshark's menus and windows, as far as tm3.lua uses them, and somebody who uses them:
-- `lua stand_in.lua tm3.lua PACKETS gui.lua WIRESHARK ACTION...`. WIRESHARK is 4.0, where Lua may
-- not write into the menu of a packet, or 4.4. An action is one of these, its words set apart by
-- tabs:
--
--     open                    a capture begins, as by a reload
--     read FIRST LAST         these frames come and are looked at for the first time
--     menu ENTRY [ANSWER]     picks an entry of a menu; ANSWER is what a dialog is told
--     packet ENTRY VALUE      picks an entry of the menu of a packet whose field has this value
--     press TITLE BUTTON      presses a button of the window that was opened last with this title
--
-- Prints a line each: entries as they are registered, windows as they are opened, texts as they
-- are set; again with tabs, lines of a text as "\n".

local wireshark, actions = arg[4], { table.unpack(arg, 5) }
local entries, packet_entries, windows, taps, seen, answer = {}, {}, {}, {}, {}, nil

local function tell(...) print(table.concat({ ... }, "\t")) end

MENU_STAT_UNSORTED, MENU_TOOLS_UNSORTED = "Statistics", "Tools"

function gui_enabled() return true end

function register_menu(entry, act, menu)
    entries[entry] = act
    tell("entry", menu, entry)
end

if wireshark == "4.4" then
    function register_packet_menu(entry, act, field)
        packet_entries[entry] = { act = act, field = field }
        tell("entry", "packet", entry)
    end
end

function new_dialog(_, act)
    act(answer)
end

local Window = {}
Window.__index = Window
TextWindow = {}
function TextWindow.new(title)
    windows[title] = setmetatable({ title = title, buttons = {} }, Window)
    tell("window", title)
    return windows[title]
end
function Window:set(text) tell("text", self.title, (text:gsub("\n", "\\n"))) end
function Window:add_button(label, act) self.buttons[label] = act end

-- A tap makes Wireshark look at all frames again; without one there is nobody to do it for.
Listener = {}
function Listener.new(name, filter)
    assert(name == "frame" and filter:find("^tm3%.stream == %d+$"), filter)
    local tap = {}
    taps[tap] = true
    function tap.remove() taps[tap] = nil end
    return tap
end

return function(packets, look_at, init)
    local lines = {}
    for line in io.lines(packets) do lines[#lines + 1] = line end

    function retap_packets()
        if not next(taps) then return end
        for _, line in ipairs(seen) do look_at(line, true) end
    end

    local act = {}
    function act.open()
        seen = {}
        init()
    end
    function act.read(first, last)
        for number = math.floor(tonumber(first)), math.min(math.floor(tonumber(last)), #lines) do
            seen[#seen + 1] = lines[number]
            look_at(lines[number], false)
        end
    end
    function act.menu(entry, told)
        answer = told
        entries[entry]()
    end
    function act.packet(entry, value)
        local each = packet_entries[entry]
        each.act({ name = "tm3.conn", value = 77 }, { name = each.field, value = tonumber(value) + 0.0 })
    end
    function act.press(title, button) windows[title].buttons[button]() end

    for _, action in ipairs(actions) do
        local words = {}
        for word in action:gmatch("[^\t]+") do words[#words + 1] = word end
        act[words[1]](table.unpack(words, 2))
    end
    assert(not next(taps), "a tap was left behind")
end
