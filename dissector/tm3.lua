-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- TM³ pipes for Wireshark and tshark: 4.0 (Lua 5.2) to 4.4 and later (Lua 5.4).
--
-- How it works. TCP hands over what a pipe carries; `tm3.dissector` cuts it into messages. In the
-- first pass over the capture each message is given to the model of what its receiver does:
-- `route` finds the connection it belongs to, `place` its place in that connection's order.
-- What was found is kept as one small record a message, in arrays side by side (`S.m_*`), found
-- again by frame and position in it. Every later look at a frame (pinfo.visited) only reads
-- records, so the order of clicks is of no matter. What a connection carries is handed on, in
-- order, as the TCP connection it stands for: see `hand_on`.
--
-- Payload is held for messages that wait for a gap to close, and a few KB of each HTTP body on
-- its way (see `body`), nowhere else; of messages that waited, the last few MB are kept for a
-- second look (preference "Early payload kept"; if that is 0, only open gaps hold payload).
--
-- A second dissector, `inside`, runs when all others are done with a frame. It hands on what
-- became due in it, and looks at the TCP headers of pipes: where they begin and end, where
-- segments are missing, how many bytes the wire carried.

-- Loaded twice (installed, and named on the command line as well) the first one counts.
if Dissector.get("tm3") then return end

local byte, char, rep = string.byte, string.char, string.rep
local format, concat, floor = string.format, table.concat, math.floor

local tm3 = Proto("tm3", "TM³ pipe")
local inside = Proto("tm3_stream", "TM³ application stream")
set_plugin_info({
    version = "1.0.0",
    author = "the TM³ laboratory",
    description = "Decodes TM³ pipes and follows connections across them",
})

-- Constants ----------------------------------------------------------------

-- Wireshark's: 400 is 4.0.
local VERSION
do
    local major, minor = tostring(get_version and get_version() or ""):match("^(%d+)%.(%d+)")
    VERSION = major and tonumber(major) * 100 + tonumber(minor) or 400
end

local HEADER = 8
local LEN_DATA_MIN, LEN_DATA_MAX, LEN_SYN, LEN_FIN = 9, 4104, 0xffff, 0xfffe
local LEN_LARGE_MAX = 16392           -- of a connection's data, where both ends agreed to it
local SIZE_SYN, SIZE_FIN = 14, 9
local CIRCLE, HALF_CIRCLE = 0x100000000, 0x80000000
local AHEAD_MAX = 0x100000            -- further ahead than this ends a connection
local REST = 30                       -- seconds that a closed id remembers its owner
local EARLY_BASELINE = 4 * 1024 * 1024
-- A number that a header found in the middle of a stream may plausibly have.
local PLAUSIBLE_NUMBER = 0x1000000
-- Without its beginning, a direction whose numbers are at most LOW may be a new one whose
-- message 0 is on its way: it is waited for, for so many messages or seconds.
local LOW, WAIT_MESSAGES, WAIT_SECONDS = 1024, 256, 2
local NEAR = 4096                     -- so far apart are numbers of messages that belong together
local SMALL = 0x10000
local SEARCH_WINDOW = 4 * LEN_DATA_MAX
local BEYOND_FRAMES = 0x1000000       -- no frame is so long
-- A segment that others overtook comes so soon behind them, if the round trip is not known.
local OVERTAKEN_SECONDS = 0.003
local WORDS_MAX = 6                   -- messages told in the info column of one frame
-- Wireshark takes all of these ports for X11; here only what opens as X11 does is handed to it.
local X11_FIRST, X11_LAST = 6000, 6063
local SCTP = { INIT = 1, ABORT = 6, SHUTDOWN = 7 } -- types of its chunks
local TCP = { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 } -- flags of its header
local HALF_CLOSE, FIN_ORDER, FIN_RESET = 0x77, 0x88, 0x99

-- What `tm3.order` can be.
local IN_ORDER, EARLY, LATE, LATE_RESENT, COPY, AFTER, UNPLACED, TOO_FAR, APART, GARBAGE =
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10

local ORDER = {
    [IN_ORDER] = "in order",
    [EARLY] = "early",
    [LATE] = "late",
    [LATE_RESENT] = "late, retransmitted",
    [COPY] = "duplicate",
    [AFTER] = "after the end",
    [UNPLACED] = "unplaced",
    [TOO_FAR] = "too far ahead",
    [APART] = "no order",
    [GARBAGE] = "not a message",
}

local ORDER_LONG = {
    [IN_ORDER] = "delivered at once",
    [EARLY] = "waits for a message before it",
    [LATE] = "filled a gap: others came earlier",
    [LATE_RESENT] = "filled a gap that a TCP retransmission on its pipe had left",
    [COPY] = "dropped: its number came before",
    [AFTER] = "behind its direction's FIN: dropped",
    [UNPLACED] = "the capture does not show where this direction began",
    [TOO_FAR] = "more than 2^20 ahead: this ends the connection",
    [APART] = "acts when it arrives",
}

-- Value strings --------------------------------------------------------------

local TYPE_SYN, TYPE_FIN, TYPE_DATA, TYPE_EXT = 0xffff, 0xfffe, 0, 0x100

local EXT_NAME = {
    "HELLO", "WELCOME", "SYNACK", "WINDOW", "PING", "PONG", "GOODBYE", "HINT", "ACK",
    [11] = "OPEN", [12] = "DATAGRAM", [13] = "LISTEN", [14] = "LISTENING", [15] = "PATH",
    [16] = "TOO_BIG",
}
local HELLO, WELCOME, SYNACK, ACK, OPEN, DATAGRAM = 1, 2, 3, 9, 11, 12
local ID_OF_RP = 0x8000               -- from here on RP opens in the extension, below LP does

local TYPES = { [TYPE_DATA] = "data", [TYPE_SYN] = "SYN", [TYPE_FIN] = "FIN" }
for number, name in pairs(EXT_NAME) do
    TYPES[TYPE_EXT + number] = name
end

local REASONS = {
    [FIN_ORDER] = "closed in order (FIN)",
    [FIN_RESET] = "reset (RST)",
    [HALF_CLOSE] = "no more from this end (half-close)",
}
local DIRECTIONS = { [1] = "uplink (LP to RP)", [2] = "downlink (RP to LP)" }
local STATUS = {
    [0] = "new", [1] = "resumed", [2] = "unknown: reset all connections", [3] = "refused",
    [4] = "busy: later",
}
local RESULTS = {
    [0] = "connected", [1] = "refused", [2] = "unreachable", [3] = "timed out",
    [4] = "denied", [5] = "a limit", [6] = "the name does not resolve",
}
local GOODBYES = {
    [0] = "shutting down", [1] = "the peer broke the protocol", [2] = "a limit",
}
local KINDS = {
    [0] = "none", [4] = "IPv4", [6] = "IPv6", [0x6e] = "name", [0x4c] = "listener",
}
local PROTOCOLS = { [6] = "TCP", [17] = "UDP" }
local PATH_STATES = { [0] = "in use", [1] = "backup", [2] = "off" }
local FEATURE_SET = { [0x5f] = "all of it", [0] = "none of it" }

-- Fields ---------------------------------------------------------------------

local f = {
    conn = ProtoField.uint16("tm3.conn", "Connection id", base.DEC),
    seq = ProtoField.uint32("tm3.seq", "Number", base.DEC, nil, nil,
        "Counts messages of this connection in this direction"),
    len = ProtoField.uint16("tm3.len", "Length", base.DEC_HEX, nil, nil,
        "Size with header, or 0xffff for SYN, 0xfffe for FIN"),
    type = ProtoField.uint16("tm3.type", "Type", base.HEX, TYPES),
    dst_ip = ProtoField.ipv4("tm3.dst.ip", "Destination address"),
    dst_ip6 = ProtoField.ipv6("tm3.dst.ip6", "Destination address"),
    dst_name = ProtoField.string("tm3.dst.name", "Destination name"),
    dst_port = ProtoField.uint16("tm3.dst.port", "Destination port", base.DEC),
    reason = ProtoField.uint8("tm3.reason", "Reason", base.HEX, REASONS),
    payload = ProtoField.bytes("tm3.payload", "Payload"),
    payload_len = ProtoField.uint16("tm3.payload.len", "Payload length", base.DEC),
    garbage = ProtoField.bytes("tm3.undecoded", "Bytes that are no message"),
    expert = ProtoField.none("tm3.expert", "Something odd", "There is expert information"),

    -- computed
    session = ProtoField.uint32("tm3.session", "Session", base.DEC, nil, nil,
        "Number of the group of pipes in this capture"),
    pipe = ProtoField.uint32("tm3.pipe", "Pipe", base.DEC, nil, nil,
        "Number of the pipe in its session, from 0"),
    direction = ProtoField.uint8("tm3.direction", "Direction", base.DEC, DIRECTIONS),
    stream = ProtoField.uint32("tm3.stream", "Connection index", base.DEC, nil, nil,
        "Number of the connection in this capture; ids are used again, this is not"),
    order = ProtoField.uint8("tm3.order", "Order", base.DEC, ORDER),
    wait = ProtoField.relative_time("tm3.wait", "Waited at the receiver",
        "Seconds in the reorder queue: from its arrival to that of what filled the gap"),
    held = ProtoField.relative_time("tm3.held", "Held up in its pipe",
        "Seconds in the pipe's own TCP, from its arrival to that of a segment that was missing"),
    filled_by = ProtoField.framenum("tm3.filled_by", "Gap filled in frame", base.NONE),
    releases = ProtoField.framenum("tm3.releases", "Releases message of frame", base.NONE),
    release_count = ProtoField.uint32("tm3.release_count", "Messages released", base.DEC),
    original = ProtoField.framenum("tm3.original", "Came before in frame", base.NONE,
        frametype.DUP_ACK),
    syn_frame = ProtoField.framenum("tm3.syn_frame", "SYN in frame", base.NONE,
        frametype.REQUEST),
    fin_frame = ProtoField.framenum("tm3.fin_frame", "FIN in frame", base.NONE,
        frametype.RESPONSE),
    since_syn = ProtoField.relative_time("tm3.since_syn", "Time since SYN"),
    offset = ProtoField.uint64("tm3.offset", "Offset in the application's stream", base.DEC),

    -- extension
    ext_type = ProtoField.uint8("tm3.ext.type", "Extension type", base.DEC),
    version = ProtoField.uint8("tm3.version", "Version", base.DEC),
    features = ProtoField.uint32("tm3.features", "Features", base.HEX),
    session_id = ProtoField.bytes("tm3.session_id", "Session id"),
    pipe_index = ProtoField.uint8("tm3.pipe_index", "Pipe index", base.DEC),
    pipe_count = ProtoField.uint8("tm3.pipe_count", "Pipe count", base.DEC),
    incarnation = ProtoField.uint32("tm3.incarnation", "Incarnation", base.DEC),
    path = ProtoField.uint8("tm3.path", "Path", base.DEC),
    path_flags = ProtoField.uint8("tm3.path.flags", "Path's flags", base.HEX),
    path_backup = ProtoField.bool("tm3.path.flags.backup", "Backup", 8, nil, 1),
    path_cost = ProtoField.uint16("tm3.path.cost", "Path's cost", base.DEC),
    path_state = ProtoField.uint8("tm3.path.state", "Path's state", base.DEC, PATH_STATES),
    serial = ProtoField.uint32("tm3.path.serial", "Serial", base.DEC),
    reorder_limit = ProtoField.uint32("tm3.reorder_limit", "Bytes kept out of order at most",
        base.DEC),
    connections = ProtoField.uint16("tm3.connections", "Connections at a time", base.DEC),
    conn_early = ProtoField.uint32("tm3.conn_early", "Connection early limit", base.DEC),
    session_early = ProtoField.uint32("tm3.session_early", "Session early limit", base.DEC),
    waits_s = ProtoField.uint16("tm3.waits_s", "Session waits for a pipe (s)", base.DEC),
    status = ProtoField.uint8("tm3.status", "Status", base.DEC, STATUS),
    about = ProtoField.uint16("tm3.about", "About connection id", base.DEC, nil, nil,
        "The connection that a message of the extension is about"),
    result = ProtoField.uint8("tm3.result", "Result", base.DEC, RESULTS),
    window_offset = ProtoField.uint64("tm3.window_offset", "Offset", base.DEC, nil, nil,
        "Payload bytes that may have been sent on this id since the session began"),
    token = ProtoField.uint64("tm3.token", "Token", base.HEX),
    sent_us = ProtoField.uint64("tm3.sent_us", "Sent (µs)", base.DEC),
    received_us = ProtoField.uint64("tm3.received_us", "Received (µs)", base.DEC),
    goodbye = ProtoField.uint8("tm3.goodbye", "Goodbye reason", base.DEC, GOODBYES),
    listener = ProtoField.uint16("tm3.listener", "Listener", base.DEC, nil, nil,
        "What RP listens on for LP, by LP's number"),
    listening = ProtoField.uint8("tm3.listening", "Listening", base.DEC, {
        [0] = "listens", [1] = "in use", [2] = "no such address there", [4] = "denied",
        [5] = "a limit",
    }),
    priority = ProtoField.uint8("tm3.priority", "Priority", base.DEC),
    remaining = ProtoField.uint64("tm3.remaining", "Remaining bytes", base.DEC),
    paths = ProtoField.uint8("tm3.paths", "Paths", base.HEX, nil, nil,
        "A bit for each path that may be used; bit 7: copies on all of them; 0: any path"),
    ack_time = ProtoField.uint64("tm3.ack.time_us", "Time (µs)", base.DEC),
    reorder_bytes = ProtoField.uint32("tm3.reorder_bytes", "Bytes out of order", base.DEC),
    ack_pipes = ProtoField.uint8("tm3.ack.pipes", "Pipes acknowledged", base.DEC),
    ack_pipe = ProtoField.uint8("tm3.ack.pipe", "Pipe index", base.DEC),
    ack_incarnation = ProtoField.uint32("tm3.ack.incarnation", "Incarnation", base.DEC),
    received = ProtoField.uint64("tm3.ack.received", "Messages parsed", base.DEC),
    protocol = ProtoField.uint8("tm3.protocol", "Protocol", base.DEC, PROTOCOLS),
    window = ProtoField.uint32("tm3.window", "Window", base.DEC, nil, nil,
        "Payload bytes that the other end may send in this use of the id at first"),
    mtu = ProtoField.uint16("tm3.mtu", "MTU of the path", base.DEC),
    kind = ProtoField.uint8("tm3.kind", "Address kind", base.DEC, KINDS),
    address_len = ProtoField.uint8("tm3.address_len", "Address length", base.DEC),
    address = ProtoField.bytes("tm3.address", "Address"),
    future = ProtoField.bytes("tm3.future", "Fields of a later version"),
}

local FEATURES = {
    { 0x20, "hint", "HINT" },
    { 0x80, "datagram", "DATAGRAM" },
    { 0x100, "listen", "LISTEN and LISTENING" },
    { 0x200, "path", "PATH" },
    { 0x400, "mtu", "TOO_BIG" },
    { 0x800, "large", "Data messages of up to 16392 bytes" },
}
local feature_fields = {
    [0] = ProtoField.uint32("tm3.features.version_1", "Version 1", base.HEX, FEATURE_SET, 0x5f),
}
for i, feature in ipairs(FEATURES) do
    feature_fields[i] = ProtoField.bool("tm3.features." .. feature[2], feature[3], 32, nil,
        feature[1])
end

local all_fields = {}
for _, field in pairs(f) do all_fields[#all_fields + 1] = field end
for _, field in pairs(feature_fields) do all_fields[#all_fields + 1] = field end
tm3.fields = all_fields

-- Expert information ---------------------------------------------------------

local GROUP, SEVERITY = expert.group, expert.severity

local function expert_of(name, text, group, severity)
    return ProtoExpert.new("tm3.expert." .. name, text, group, severity)
end

local e = {
    length = expert_of("length", "Length means nothing: the framing is broken",
        GROUP.MALFORMED, SEVERITY.ERROR),
    id_0 = expert_of("id_0", "Connection id 0 on a baseline pipe", GROUP.PROTOCOL, SEVERITY.ERROR),
    syn_number = expert_of("syn_number", "SYN with a number other than 0",
        GROUP.PROTOCOL, SEVERITY.ERROR),
    syn_downlink = expert_of("syn_downlink", "SYN on the downlink",
        GROUP.PROTOCOL, SEVERITY.ERROR),
    reason = expert_of("reason", "Unknown reason of a FIN", GROUP.PROTOCOL, SEVERITY.ERROR),
    gap = expert_of("gap", "The gap before this message is never filled",
        GROUP.SEQUENCE, SEVERITY.WARN),
    after_fin = expert_of("after_fin", "Message behind its direction's FIN",
        GROUP.SEQUENCE, SEVERITY.WARN),
    copy = expert_of("duplicate", "Duplicate: dropped by its receiver",
        GROUP.SEQUENCE, SEVERITY.NOTE),
    too_far = expert_of("too_far", "More than 2^20 messages ahead: ends the connection",
        GROUP.SEQUENCE, SEVERITY.ERROR),
    early_limit = expert_of("early_limit", "Early data beyond the limit",
        GROUP.PROTOCOL, SEVERITY.ERROR),
    id_reused = expert_of("id_reused",
        "SYN for an id that is live: a new owner, or another local proxy behind the address",
        GROUP.SEQUENCE, SEVERITY.NOTE),
    over = expert_of("over", "The connection is over: dropped by its receiver",
        GROUP.SEQUENCE, SEVERITY.CHAT),
    reset = expert_of("reset", "Connection reset", GROUP.SEQUENCE, SEVERITY.NOTE),
    skipped = expert_of("skipped", "No message could be found in these bytes",
        GROUP.UNDECODED, SEVERITY.NOTE),
    out_of_order = expert_of("tcp_out_of_order",
        "TCP segments of this pipe came out of order: turn on the preference "
        .. "tcp.reassemble_out_of_order", GROUP.REASSEMBLE, SEVERITY.WARN),
    incomplete = expert_of("incomplete", "The rest of this message is not to be had",
        GROUP.REASSEMBLE, SEVERITY.WARN),
    short = expert_of("short", "Shorter than the fields of its type",
        GROUP.MALFORMED, SEVERITY.ERROR),
    unknown = expert_of("unknown_type", "Unknown type: stepped over",
        GROUP.UNDECODED, SEVERITY.NOTE),
    ext_id = expert_of("ext_id", "About connection id 0", GROUP.PROTOCOL, SEVERITY.ERROR),
    ext_syn = expert_of("ext_syn", "The extension has no SYN: ends the session",
        GROUP.PROTOCOL, SEVERITY.ERROR),
    ext_pipe = expert_of("ext_pipe", "Pipe index is not below a count of 1 to 64: closes the pipe",
        GROUP.PROTOCOL, SEVERITY.ERROR),
    ext_protocol = expert_of("ext_protocol", "Neither TCP nor UDP: ends the connection",
        GROUP.PROTOCOL, SEVERITY.ERROR),
    ext_welcome = expert_of("ext_welcome", "Sent before WELCOME came on this pipe",
        GROUP.PROTOCOL, SEVERITY.WARN),
    ext_first = expert_of("ext_first", "A pipe of the extension does not begin so",
        GROUP.PROTOCOL, SEVERITY.ERROR),
    ext_direction = expert_of("ext_direction", "Not sent in this direction: ends the session",
        GROUP.PROTOCOL, SEVERITY.ERROR),
    address = expert_of("address", "The address does not go with its kind",
        GROUP.MALFORMED, SEVERITY.ERROR),
    twice = expert_of("twice", "This pipe was captured at two points, which `python -m "
        .. "dissector.join` tells apart; here each packet counts where it was seen first",
        GROUP.SEQUENCE, SEVERITY.NOTE),
    mptcp = expert_of("mptcp", "MPTCP: the capture does not show where these bytes belong in their "
        .. "pipe, so they are not read", GROUP.UNDECODED, SEVERITY.NOTE),
    not_kept = expert_of("not_kept", "Payload of early messages is no longer held: "
        .. "see the preference \"Early payload kept\"", GROUP.UNDECODED, SEVERITY.NOTE),
}
local all_experts = {}
for _, expert_info in pairs(e) do all_experts[#all_experts + 1] = expert_info end
tm3.experts = all_experts

-- Preferences ----------------------------------------------------------------

local STATISTICS_OFF, STATISTICS_TABLE, STATISTICS_JSON = 0, 1, 2

tm3.prefs.ports = Pref.range("Ports of pipes", "6000,6010",
    "TCP ports that remote proxies listen on. A stream that opens as X11 does stays X11", 65535)
tm3.prefs.ext_port = Pref.uint("Port of the extension", 6010,
    "Here the first message of each pipe has to be HELLO or WELCOME")
tm3.prefs.session_pipes = Pref.uint("Pipes of a session", 0,
    "How many pipes one local proxy opens. 0: all that are open from one address; a "
    .. "number tells apart several local proxies behind one address")
tm3.prefs.content = Pref.bool("Hand on what connections carry", true,
    "Hand the application's bytes, in order, to the dissectors of the destination's port")
tm3.prefs.keep_mb = Pref.uint("Early payload kept (MB)", 16,
    "For looking at a frame again: payload of messages that waited for a gap. 0: payload is held "
    .. "for open gaps only")
tm3.prefs.statistics = Pref.enum("Statistics at the end", STATISTICS_OFF,
    "tshark prints them when it has read all", {
        { 1, "off", STATISTICS_OFF },
        { 2, "table", STATISTICS_TABLE },
        { 3, "json", STATISTICS_JSON },
        { 4, "csv", 3 },
        { 5, "jsonl", 4 },
        { 6, "all", 5 },
    }, false)
tm3.prefs.follow = Pref.string("Follow connection", "",
    "tshark prints in hex what this connection (tm3.stream) carried, in its order")

-- Preferences as they were read last: looking one up costs a search.
local options = {}

local function read_options()
    for _, name in ipairs({ "ext_port", "session_pipes", "content", "keep_mb", "statistics",
        "follow" }) do
        options[name] = tm3.prefs[name]
    end
    -- Rows and a followed connection need each message, not only its place in the order.
    options.in_detail = options.statistics > STATISTICS_JSON or options.follow ~= ""
end

-- Methods of Wireshark's objects, looked up once: obj:method() costs twice as much.
local call = {}

function call.learn_tvb(tvb)
    call.raw, call.len, call.reported_len, call.offset =
        tvb.raw, tvb.len, tvb.reported_len, tvb.offset
end

-- State of a capture ---------------------------------------------------------

local S          -- everything found in the first pass
local ports = {} -- watched: where remote proxies listen
local nested = false -- the frame whose content is being handed on: none of it is a pipe

-- One look at one frame. `frame` is nil between two looks, for the same frame may be looked at
-- twice in a row: first (visited is false), then again. See `begin_look` and `end_look`.
local look = {}
local end_look

-- Of most records these are 0, and nothing is stored.
local function mostly_zero()
    return setmetatable({}, { __index = function() return 0 end })
end

local function new_state()
    return {
        halves = {},   -- address, address, both ports -> one direction of a pipe
        by_ports = {}, -- both ports -> the same; false if pipes of several addresses have them
        groups = {},   -- LP and RP -> the session that new pipes join
        hellos = {},   -- session id of the extension -> session
        endpoints = {},-- "address:port" of remote proxies
        sessions = {}, conns = {}, streams = {},
        -- records: one message each, all of a frame side by side
        n = 0, first = {},
        m_frame = {}, m_half = {}, m_conn = {}, m_order = {}, m_offset = {},
        m_pos = mostly_zero(), m_wait = mostly_zero(), m_fill = mostly_zero(),
        m_held = mostly_zero(),
        released = {}, -- record of what filled a gap -> what it released
        notes = {},    -- record -> what is to be said about it
        early = {},    -- record -> payload: of open gaps, and of the last that were closed
        kept = {}, is_kept = {}, kept_from = 1, kept_to = 0, kept_bytes = 0,
        kept_bytes_max = 0, held_bytes = 0, held_bytes_max = 0, body_bytes = 0,
        seen = {},     -- record -> what rows tell beside it
        calls = {},    -- frame -> direction -> calls of who stands in front: see `layer`
        twins = {},    -- frames of SYNs that were captured at a second point
        segments_made = 0, -- handed on in the first pass
        ip_at = 14,    -- where the IP header was found last
        watched = {},
        tokens = {}, subflows = {}, mptcp_frames = {}, -- see `mptcp`
        by_ends = {},  -- addresses and ports as they are written -> one direction of a pipe
    }
end
S = new_state()

local at_init = {} -- what else is to be done where a capture begins

function tm3.init()
    S = new_state()
    for _, each in ipairs(at_init) do each() end
    end_look()
end

-- a - b on the circle of numbers: positive if a is ahead.
local function ahead(a, b)
    local d = (a - b) % CIRCLE
    if d >= HALF_CIRCLE then return d - CIRCLE end
    return d
end

local function note(i, what, on, text)
    local list = S.notes[i]
    if not list then
        list = {}
        S.notes[i] = list
    end
    list[#list + 1] = { what = what, on = on, text = text }
end

-- Payload of a message that waits for a gap to close, until `store.drop` or `store.keep`.
local store = {}

function store.hold(i, payload)
    S.early[i] = payload
    S.held_bytes = S.held_bytes + #payload
    if S.held_bytes > S.held_bytes_max then S.held_bytes_max = S.held_bytes end
end

function store.drop(i)
    local payload = S.early[i]
    if not payload or S.is_kept[i] then return end
    S.early[i] = nil
    S.held_bytes = S.held_bytes - #payload
end

function store.hold_again(i, payload)
    S.again = S.again or { before = S.held_bytes, most = S.held_bytes_max }
    if S.held_bytes - S.again.before + #payload <= S.again.most then store.hold(i, payload) end
end

-- Payload of messages that waited: the last keep_mb of it. If none is to be kept, it is held for
-- a gap that is looked at again, as the first time: up to what was held then, until it closes.
function store.keep(i, payload, visited)
    local limit = options.keep_mb * 1024 * 1024
    if S.is_kept[i] then return end
    if limit == 0 then
        if visited then return store.hold_again(i, payload) end
        return store.drop(i)
    end
    store.drop(i)
    S.early[i], S.is_kept[i] = payload, true
    S.kept_to = S.kept_to + 1
    S.kept[S.kept_to] = i
    S.kept_bytes = S.kept_bytes + #payload
    while S.kept_bytes > limit do
        local oldest = S.kept[S.kept_from]
        S.kept[S.kept_from] = nil
        S.kept_from = S.kept_from + 1
        S.kept_bytes = S.kept_bytes - #S.early[oldest]
        S.early[oldest], S.is_kept[oldest] = nil, nil
    end
    if S.kept_bytes > S.kept_bytes_max then S.kept_bytes_max = S.kept_bytes end
end

-- Pipes and sessions ---------------------------------------------------------

local pipe = {
    chunk = Proto("tm3_chunk", "TM³ pipe over SCTP"),
    -- The same where Wireshark would go by the PPID; see `pipe.take_ppids`.
    counted = Proto("tm3_counted", "TM³ pipe over SCTP, counted"),
    -- Dissects pipes that were seen before; see `pipe.known`.
    proto = Proto("tm3_pipe", "TM³ pipe, followed"),
}

function pipe.between(src, src_port, dst, dst_port, sctp)
    local from = S.halves[src]
    local to = from and from[dst]
    return to and to[src_port * 65536 + dst_port + (sctp and CIRCLE or 0)]
end

function pipe.set(src, src_port, dst, dst_port, half)
    S.halves[src] = S.halves[src] or {}
    S.halves[src][dst] = S.halves[src][dst] or {}
    local key = src_port * 65536 + dst_port
    if half.stream.sctp then
        S.halves[src][dst][key + CIRCLE] = half
        return
    end
    local others = S.by_ports[key]
    local alone = others == nil or others and others == S.halves[src][dst][key]
    S.halves[src][dst][key] = half
    S.by_ports[key] = alone and half
end

-- The same by ports alone, which is quick: of no other addresses were pipes with them seen.
function pipe.known(src_port, dst_port)
    return S.by_ports[src_port * 65536 + dst_port]
end

-- What is found in the TCP headers of pipes: see there.
local wire, mptcp = {}, nil

local function new_half(stream, key, up)
    return {
        key = key, stream = stream, up = up,
        sync = stream.started and "found" or "unsure",
        messages = 0, payload = 0, bytes = 0, wire = 0, frames = 0,
        pending = {}, pending_at = {}, resent = 0, reordered = 0, first = true,
    }
end

local function new_session(group, extension)
    local session = {
        number = #S.sessions + 1, group = group, pipes = {}, slots = {},
        whole = true, extension = extension, early = 0,
    }
    S.sessions[session.number] = session
    return session
end

local function leave(stream)
    local session = stream.session
    if not session then return end
    for i, other in ipairs(session.pipes) do
        if other == stream then
            table.remove(session.pipes, i)
            break
        end
    end
    for i, other in ipairs(session.pipes) do
        if not other.index then other.number = i - 1 end
    end
    if #session.pipes == 0 and session.number == #S.sessions then
        S.sessions[session.number] = nil
        S.groups[session.group] = nil
    end
end

local function join(stream, session)
    stream.session = session
    stream.number = #session.pipes
    session.pipes[#session.pipes + 1] = stream
    local first = session.pipes[1]
    session.spread = session.spread or first.lp ~= stream.lp or first.rp ~= stream.rp
    if not stream.started then session.whole = false end
end

-- RP sends nothing before a group is complete: a pipe that is opened when its session has been
-- answered is another session's, of another local proxy behind the address. In the extension HELLO
-- tells whose it is.
local function join_group(stream)
    local session = S.groups[stream.group]
    local limit, told = options.session_pipes, stream.started and stream.extension
    if not session or session.over or not told and (limit > 0 and #session.pipes >= limit
        or stream.started and session.answered) then
        session = new_session(stream.group, stream.extension)
        S.groups[stream.group] = session
    end
    join(stream, session)
end

-- HELLO names the session; `first`: it is that of the session's first pipe. If it is not and no
-- HELLO named the session before, the capture begins in its middle, and the session is that of the
-- pipes whose HELLO is not in the capture.
local function join_extension(stream, id, index, first)
    local joined, named = stream.session, S.hellos[id]
    local session = named or not first and joined.extension and not joined.named and joined
    if session ~= joined then
        leave(stream)
        session = session or new_session(stream.group, true)
        join(stream, session)
    end
    if not named then
        session.named, session.whole = true, first and session.whole
        S.hellos[id] = session
    end
    stream.index, stream.number = index, index
end

-- A pipe from LP (address and port) to RP; `started`: its first TCP segment was seen.
local function new_stream(lp, lp_port, rp, rp_port, started, sctp)
    local mark = sctp and " sctp" or ""
    local up = lp .. ":" .. lp_port .. ">" .. rp .. ":" .. rp_port .. mark
    local down = rp .. ":" .. rp_port .. ">" .. lp .. ":" .. lp_port .. mark
    local stream = {
        lp = lp, lp_port = lp_port, rp = rp, rp_port = rp_port, started = started, sctp = sctp,
        group = lp .. ">" .. rp .. ":" .. rp_port,
        extension = rp_port == options.ext_port,
        unsure = not started and not sctp, -- whether it is one of several subflows
    }
    stream.up = new_half(stream, up, true)
    stream.down = new_half(stream, down, false)
    pipe.set(lp, lp_port, rp, rp_port, stream.up)
    pipe.set(rp, rp_port, lp, lp_port, stream.down)
    S.streams[#S.streams + 1] = stream
    S.endpoints[rp .. ":" .. rp_port] = true
    S.watched[rp_port] = true
    join_group(stream)
    return stream
end

-- Whose end is RP? `hint`: "dst" or "src" if what is said tells.
local function find_half(pinfo, hint)
    local src, dst = tostring(pinfo.src), tostring(pinfo.dst)
    local src_port, dst_port = pinfo.src_port, pinfo.dst_port
    local half = pipe.between(src, src_port, dst, dst_port)
    if half then return half end
    if not hint then
        local from, to = src .. ":" .. src_port, dst .. ":" .. dst_port
        if S.endpoints[to] or ports[dst_port] then
            hint = "dst"
        elseif S.endpoints[from] or ports[src_port] then
            hint = "src"
        else
            hint = dst_port <= src_port and "dst" or "src"
        end
    end
    if hint == "dst" then
        return new_stream(src, src_port, dst, dst_port, false).up
    end
    return new_stream(dst, dst_port, src, src_port, false).down
end

-- A direction of an SCTP pipe. Its user messages are messages, so nobody needs to have seen how it
-- began to tell them; but numbers then begin anywhere.
function pipe.of_sctp(src, src_port, dst, dst_port)
    local half = pipe.between(src, src_port, dst, dst_port, true)
    if half then return half end
    local to_rp = ports[dst_port] or not ports[src_port] and dst_port <= src_port
    if to_rp then return new_stream(src, src_port, dst, dst_port, false, true).up end
    return new_stream(dst, dst_port, src, src_port, false, true).down
end

-- Framing --------------------------------------------------------------------

local framing = {
    TLS_MAX = 0x10000,                -- what is put together of records is shorter
    most = LEN_DATA_MAX,              -- of a connection's data, in the session that is looked at
}

local function size_of(id, len)
    if len >= LEN_DATA_MIN and len <= (id == 0 and LEN_DATA_MAX or framing.most) then return len end
    if len == LEN_SYN then return SIZE_SYN end
    if len == LEN_FIN then return SIZE_FIN end
    return nil
end

local function header(s, at)
    local a, b, c, d, g, h, k, l = byte(s, at, at + 7)
    return a + b * 256, c + d * 256 + g * 65536 + h * 16777216, k + l * 256
end

-- The size of a message that could begin at `at` of a stream whose framing is not known.
function framing.plausible(s, at)
    if #s - at + 1 < HEADER then return nil end
    local id, number, len = header(s, at)
    local size = size_of(id, len)
    if not size or number >= PLAUSIBLE_NUMBER then return nil end
    local body = byte(s, at + HEADER)
    if id == 0 then
        local known = not body or EXT_NAME[body]
        local numbered = not body or body == OPEN or body == SYNACK
        return len == size and (numbered or number == 0) and known and size or nil
    end
    if len == LEN_SYN and number ~= 0 then return nil end
    if len == LEN_FIN and body and not REASONS[body] then return nil end
    return size
end

-- Messages that could follow each other from `at` to the end of what there is: how many, whether
-- the last one ends there, and whether LP hands out such ids. nil: something else is in between.
function framing.chain(s, at)
    local count, low, last = 0, true, #s + 1
    while last - at >= HEADER do
        local size = framing.plausible(s, at)
        if not size then return nil end
        low = low and byte(s, at + 1) < 128
        count, at = count + 1, at + size
    end
    return count, at == last, low
end

-- Payload that counts leads into messages by chance, or looks like some itself. Of the chain that
-- begins at `at`: where those begin that all either have a small number, as those of short
-- connections, or go with another of their connection, whose number is a little higher or lower.
-- nil: that is the last one at most.
function framing.supported(s, at)
    local places, near = {}, {}
    while #s - at + 1 >= HEADER do
        local id, number = header(s, at)
        local place = { at = at, number = number, good = number < SMALL }
        near[id] = near[id] or {}
        for _, other in ipairs(near[id]) do
            local d = ahead(number, other.number)
            if d > 0 and d <= NEAR then place.good, other.good = true, true end
        end
        table.insert(near[id], place)
        places[#places + 1] = place
        at = at + framing.plausible(s, at)
    end
    local first = #places
    while first > 0 and places[first].good do first = first - 1 end
    return #places - first >= 2 and places[first + 1].at or nil
end

-- Where messages begin: three or more of them to the end, or two that end with it, that support
-- each other; better ones of ids that LP hands out. `weak`: if there are none, others will do.
function framing.find_sync(s, weak)
    local any, few
    local zero = s:find("\0", 6, true)
    -- The highest byte of a plausible number is 0: most places are passed over by looking for it.
    while zero and zero <= #s - 2 do
        local at = zero - 5
        zero = s:find("\0", zero + 1, true)
        if framing.plausible(s, at) then
            local count, exact, low = framing.chain(s, at)
            local enough = count and (count >= 3 or count == 2 and exact)
            local begin = enough and framing.supported(s, at)
            if begin and low then return begin end
            any = any or begin
            if low and (enough or count == 2 or exact) then few = few or at end
        end
    end
    return any or weak and few or nil
end

-- Does a stream on a port that is not ours open as a pipe does? nil, or where RP is.
function framing.opens_as_pipe(s, n, known)
    local size = n > HEADER and framing.plausible(s, 1)
    if not size then return nil end
    local id, _, len = header(s, 1)
    if len == LEN_SYN then
        if n < SIZE_SYN or byte(s, 9) == 0 or byte(s, 9) >= 224 then return nil end
        if byte(s, 13) + byte(s, 14) == 0 then return nil end
        local rest = n - SIZE_SYN
        if rest >= HEADER and not framing.plausible(s, SIZE_SYN + 1) then return nil end
        return "dst"
    end
    if id == 0 then
        local kind = byte(s, 9)
        if kind == HELLO and size >= 44 and #s >= 32 and byte(s, 10) == 1
            and byte(s, 31) < byte(s, 32) and byte(s, 32) <= 64 then
            return "dst"
        end
        if kind == WELCOME and size >= 31 and #s >= 15 and byte(s, 10) == 1
            and byte(s, 15) <= 4 then
            return "src"
        end
        return nil
    end
    if known then return known end
    local at, count = 1, 0
    while at <= #s - HEADER + 1 do
        size = framing.plausible(s, at)
        if not size then return nil end
        count = count + 1
        at = at + size
    end
    return count >= 3 and "lower" or nil
end

-- A record of TLS that begins with a ClientHello: no message begins with such a number.
function framing.opens_as_tls(s)
    if #s < 6 then return false end
    local kind, major, minor, _, _, what = byte(s, 1, 6)
    return kind == 22 and major == 3 and minor <= 4 and what == 1
end

function framing.opens_as_x11(s)
    local a, _, c, d = byte(s, 1, 4)
    return a == 0x42 and c == 0 and d == 11 or a == 0x6c and c == 11 and d == 0
end

-- The order of one direction of a connection ----------------------------------

local function new_lane(up)
    return {
        up = up, next = nil, held = {}, arrived = {}, held_count = 0, held_bytes = 0,
        seen = {}, messages = 0, payload = 0, offset = 0, copies = 0,
        fin = nil, done = false, pipes = {}, pipe_count = 0,
    }
end

local function new_conn(session, id, now)
    local conn = {
        index = #S.conns, id = id, session = session, began = now, last = now,
        up = new_lane(true), down = new_lane(false), fins = {},
    }
    S.conns[conn.index + 1] = conn
    return conn
end

-- Places in the order begin where the capture shows it, or as the protocol has it.
local function begin_lane(conn, lane, number, now)
    if conn.session.whole or number == 0 then
        lane.next = 0
    elseif number > LOW then
        lane.next, lane.middle = number, true
    else
        lane.since = lane.since or now
    end
end

-- A FIN is due: the connection is over, but for a half-close.
local function finish(conn, lane, reason, now)
    lane.done = true
    if reason == HALF_CLOSE then
        lane.half_closed = true
        local other = lane.up and conn.down or conn.up
        if not other.half_closed then return end
    end
    if not conn.over then
        conn.over, conn.how, conn.by_up = now, reason, lane.up
    end
end

-- Message i of `size` bytes (reason: of a FIN) is due: the receiver acts on it.
local function due(conn, lane, i, payload, reason, now)
    if lane.offset == 0 and payload > 0 and not lane.up then conn.answered = now end
    S.m_offset[i] = lane.offset
    lane.offset = lane.offset + payload
    if reason then finish(conn, lane, reason, now) end
end

-- Behind a FIN in the extension comes another use of the id, but for a 0x99 behind a 0x77.
local function ends_use(conn, lane, number)
    return lane.done and conn.session.extension
        and not (lane.reasons and lane.reasons[number] == FIN_RESET)
end

-- Releases what waited for number lane.next; `i` filled the gap. Returns how many.
local function release(conn, lane, i, now)
    local count, bytes, fin = 0, 0, nil
    while true do
        local number = lane.next
        local j = lane.held[number]
        if not j or ends_use(conn, lane, number) then break end
        S.m_wait[j] = now - lane.arrived[number]
        S.m_fill[j] = i
        local size = S.m_offset[j]
        lane.held[number], lane.arrived[number] = nil, nil
        lane.held_count = lane.held_count - 1
        lane.held_bytes = lane.held_bytes - size
        fin = lane.reasons and lane.reasons[number]
        due(conn, lane, j, size, fin, now)
        lane.next = (number + 1) % CIRCLE
        count, bytes = count + 1, bytes + size
    end
    if count > 0 then S.released[i] = { count = count, bytes = bytes, fin = fin } end
    return count
end

local function hold(lane, i, number, payload, reason, now)
    lane.held[number], lane.arrived[number] = i, now
    lane.held_count = lane.held_count + 1
    lane.held_bytes = lane.held_bytes + payload
    S.m_offset[i] = payload      -- until its place in the stream is known
    if reason then
        lane.reasons = lane.reasons or {}
        lane.reasons[number] = reason
    end
end

-- The beginning was waited for in vain: what is held begins the order.
local function give_up_waiting(conn, lane, now)
    local lowest
    for number in pairs(lane.held) do
        if not lowest or number < lowest then lowest = number end
    end
    lane.next, lane.middle, lane.since = lowest, true, nil
    local first = lane.held[lowest]
    release(conn, lane, first, now)
    S.released[first] = nil
    for number = lowest, lane.next - 1 do
        local i = lane.seen[number]
        S.m_order[i], S.m_wait[i], S.m_fill[i] = UNPLACED, nil, nil
        store.drop(i)
    end
end

-- Gives message i its place. Returns its order and what it released.
local function place(conn, lane, i, number, payload, reason, resent, now)
    if not lane.next then
        begin_lane(conn, lane, number, now)
        if not lane.next and (lane.held_count >= WAIT_MESSAGES
            or now - lane.since > WAIT_SECONDS) and lane.held_count > 0 then
            give_up_waiting(conn, lane, now)
        end
    end
    local seen = lane.seen[number]
    if seen then
        lane.copies = lane.copies + 1
        S.m_fill[i] = seen
        return COPY
    end
    if lane.fin and ahead(number, lane.fin) > 0 and not (lane.fin_reason == HALF_CLOSE
        and reason == FIN_RESET) then
        return AFTER
    end
    lane.seen[number] = i
    if reason then lane.fin, lane.fin_reason = number, reason end
    local d = lane.next and ahead(number, lane.next) or 1
    if d == 0 then
        local waiting = lane.held[(number + 1) % CIRCLE]
        local begins = lane.middle and lane.offset == 0 and lane.messages <= 1
        due(conn, lane, i, payload, reason, now)
        lane.next = (number + 1) % CIRCLE
        if waiting and release(conn, lane, i, now) > 0 then
            return resent and LATE_RESENT or LATE
        end
        return begins and UNPLACED or IN_ORDER
    elseif d > AHEAD_MAX then
        return TOO_FAR
    elseif d > 0 then
        hold(lane, i, number, payload, reason, now)
        return EARLY
    end
    if lane.middle then return UNPLACED end
    lane.copies = lane.copies + 1
    return COPY
end

-- Whose message is it ----------------------------------------------------------

-- Is it the former owner's? Once the successor was heard on a pipe, no more on that pipe.
local function former_owns(former, half, number, syn, now)
    local lane = half.up and former.conn.up or former.conn.down
    if now > former.expires or former.switched[half] or lane.done then return false end
    if not syn and lane.next and ahead(number, lane.next) >= 0 then return true end
    former.switched[half] = true
    return false
end

local function succeed(slot, half, session, id, now)
    local old = slot.conn
    slot.former = { conn = old, expires = now + REST, switched = { [half] = true } }
    slot.conn = new_conn(session, id, now)
    slot.conn.successor = true
    return old
end

-- Early messages of a successor that looked as if they were the old owner's: behind its FIN, or
-- copies.
local function adopt_strays(old, conn, now)
    for _, stray in ipairs(old.strays or {}) do
        if not conn.up.seen[stray.number] and now - stray.now < REST then
            local i = stray.i
            S.m_conn[i], S.m_order[i], S.m_fill[i], S.notes[i] = conn, EARLY, nil, nil
            conn.up.seen[stray.number] = i
            if stray.reason then
                conn.up.fin, conn.up.fin_reason = stray.number, stray.reason
            end
            hold(conn.up, i, stray.number, stray.payload, stray.reason, stray.now)
            conn.up.messages = conn.up.messages + 1
            conn.up.payload = conn.up.payload + stray.payload
            old.up.messages = old.up.messages - 1
            old.up.payload = old.up.payload - stray.payload
            if stray.reason then conn.fins[#conn.fins + 1] = S.m_frame[i] end
        end
    end
    old.strays = nil
end

-- An uplink message that is no SYN, for an id whose connection is over: a successor's?
local function early_for_successor(conn, number)
    return conn.over and conn.up.next and not conn.up.seen[number]
        and ahead(number, conn.up.next) < 0
end

-- The connection that a message belongs to.
local function route(half, id, number, syn, now)
    local session = half.stream.session
    local slot = session.slots[id]
    if not slot then
        slot = { conn = new_conn(session, id, now) }
        session.slots[id] = slot
        return slot.conn
    end
    local former, conn = slot.former, slot.conn
    if former and former_owns(former, half, number, syn, now) then return former.conn end
    if not half.up then return conn end
    if syn then
        local begun = conn.syn or conn.up.middle or conn.over
        if begun then
            local old = succeed(slot, half, session, id, now)
            adopt_strays(old, slot.conn, now)
            return slot.conn, old
        end
    elseif early_for_successor(conn, number) then
        succeed(slot, half, session, id, now)
        return slot.conn
    end
    return conn
end

-- Uses of an id in the extension -------------------------------------------------

-- There the numbers of an id go on over its uses: a use begins with the number of its OPEN, and on
-- the way back with that of its SYNACK. So a message's use is told by its number. What comes
-- before its OPEN or SYNACK may have to wait with the use before, and moves when that comes.
local ext = {}

function ext.lane(conn, up)
    if up then return conn.up end
    return conn.down
end

-- Did the order begin in the middle, and behind this number?
function ext.passed(lane, number)
    return lane.middle and ahead(number, lane.next) < 0
end

-- Does a message wait that lies before this number?
function ext.holds_before(lane, number)
    for held in pairs(lane.held) do
        if ahead(held, number) < 0 then return true end
    end
    return false
end

-- Does the message belong to the use before `conn`, as far as is known?
function ext.is_former(conn, half, m)
    local first = ext.lane(conn, half.up).first
    if not conn.former and (conn.session.whole or not first) then return false end
    if first then return ahead(m.number, first) < 0 end
    local before = ext.lane(conn.former, half.up)
    if m.begins then return before.seen[m.number] ~= nil end
    return not before.fin or ahead(m.number, before.fin) <= 1
end

-- Does the message show that the id is used anew? An OPEN does, or what lies behind the FIN of who
-- opened; directly behind it may stand a 0x99.
function ext.begins_another(conn, half, m)
    local lane = ext.lane(conn, half.up)
    if m.syn then
        if conn.syn then return ahead(m.number, lane.first) > 0 end
        return (lane.middle or conn.over or ext.holds_before(lane, m.number))
            and not ext.passed(lane, m.number)
    end
    local opener = half.up == (m.id < ID_OF_RP)
    return opener and lane.fin and ahead(m.number, lane.fin) > 1
end

-- The use of the id that a message belongs to.
function ext.route(half, m, now)
    local session = half.stream.session
    local slot = session.slots[m.id]
    if not slot then
        slot = { conn = new_conn(session, m.id, now) }
        session.slots[m.id] = slot
    end
    local conn = slot.conn
    if ext.begins_another(conn, half, m) then
        slot.conn = new_conn(session, m.id, now)
        slot.conn.former = conn
        return slot.conn
    end
    while ext.is_former(conn, half, m) do
        conn.former = conn.former or new_conn(session, m.id, now)
        conn = conn.former
    end
    return conn
end

-- Messages behind number `first` that wait in `former` are of the use that begins there.
function ext.move_held(former, conn, up, first)
    local from, to = ext.lane(former, up), ext.lane(conn, up)
    for number, i in pairs(from.held) do
        if ahead(number, first) > 0 then
            local payload, reason = S.m_offset[i], from.reasons and from.reasons[number]
            from.held[number], from.seen[number] = nil, nil
            from.held_count, from.held_bytes = from.held_count - 1, from.held_bytes - payload
            from.messages, from.payload = from.messages - 1, from.payload - payload
            to.messages, to.payload = to.messages + 1, to.payload + payload
            S.m_conn[i], to.seen[number] = conn, i
            hold(to, i, number, payload, reason, from.arrived[number])
            from.arrived[number] = nil
            if reason and not (to.fin and ahead(number, to.fin) > 0) then
                to.fin, to.fin_reason = number, reason
            end
        end
    end
end

-- An OPEN or SYNACK: here the use begins in this direction.
function ext.begin_use(conn, half, m)
    local lane = ext.lane(conn, half.up)
    if lane.first then return end
    lane.first = m.number
    if (conn.former or not conn.session.whole) and not ext.passed(lane, m.number) then
        lane.next = m.number
    end
    if conn.former then ext.move_held(conn.former, conn, half.up, m.number) end
end

-- The extension: what its messages hold -----------------------------------------

-- Field, offset, size; what the sizes add up to is the least length of the message. `address`: at
-- which offset the kind of an address stands, and what follows it is added by `view.address`.
local EXT = {
    [HELLO] = { size = 44, way = "up",
        { f.version, 9, 1 }, { f.features, 10, 4 }, { f.session_id, 14, 16, "bytes" },
        { f.pipe_index, 30, 1 }, { f.pipe_count, 31, 1 }, { f.incarnation, 32, 4 },
        { f.path, 36, 1 }, { f.path_flags, 37, 1 }, { f.path_cost, 38, 2 },
        { f.reorder_limit, 40, 4 } },
    [WELCOME] = { size = 31, way = "down",
        { f.version, 9, 1 }, { f.features, 10, 4 }, { f.status, 14, 1 },
        { f.connections, 15, 2 }, { f.conn_early, 17, 4 }, { f.session_early, 21, 4 },
        { f.waits_s, 25, 2 }, { f.reorder_limit, 27, 4 } },
    [SYNACK] = { size = 20, way = "answer", about = true,
        { f.about, 9, 2 }, { f.result, 11, 1 }, { f.window_offset, 12, 8 } },
    [4] = { size = 19, about = true, { f.about, 9, 2 }, { f.window_offset, 11, 8 } },
    [5] = { size = 25, { f.token, 9, 8 }, { f.sent_us, 17, 8 } },
    [6] = { size = 33, { f.token, 9, 8 }, { f.sent_us, 17, 8 }, { f.received_us, 25, 8 } },
    [7] = { size = 10, { f.goodbye, 9, 1 } },
    [8] = { size = 21, about = true,
        { f.about, 9, 2 }, { f.priority, 11, 1 }, { f.remaining, 12, 8 }, { f.paths, 20, 1 } },
    [ACK] = { size = 22,
        { f.ack_time, 9, 8 }, { f.reorder_bytes, 17, 4 }, { f.ack_pipes, 21, 1 } },
    [OPEN] = { size = 20, way = "opener", about = true, address = 12,
        { f.about, 9, 2 }, { f.protocol, 11, 1 } },
    [DATAGRAM] = { size = 15, about = true, address = 11, { f.about, 9, 2 } },
    [13] = { size = 16, way = "up", address = 12,
        { f.listener, 9, 2 }, { f.protocol, 11, 1 } },
    [14] = { size = 14, way = "down",
        { f.listener, 9, 2 }, { f.listening, 11, 1 }, { f.dst_port, 12, 2 } },
    [15] = { size = 17, way = "up",
        { f.path, 9, 1 }, { f.path_state, 10, 1 }, { f.path_cost, 11, 2 }, { f.serial, 13, 4 } },
    [16] = { size = 13, way = "down", about = true, { f.about, 9, 2 }, { f.mtu, 11, 2 } },
}

local function be(s, at, size)
    local n = 0
    for i = at, at + size - 1 do n = n * 256 + byte(s, i) end
    return n
end

local function le16(s, at)
    local a, b = byte(s, at + 1, at + 2)
    return a + b * 256
end

local function le32(s, at)
    local a, b, c, d = byte(s, at + 1, at + 4)
    return a + b * 256 + c * 65536 + d * 16777216
end

-- The address whose kind stands at offset `at`: its bytes and how it is written, or nil and why
-- not.
function ext.address(s, at)
    local kind, n = byte(s, at + 1, at + 2)
    if #s < at + 4 + n then return nil, "short" end
    local address = s:sub(at + 3, at + 2 + n)
    local from = ""
    if kind == 0x4c and (n == 6 or n == 18) then
        from = format("listener %d from ", le16(address, 0))
        kind, n = n == 6 and 4 or 6, n - 2
    end
    local ip = from == "" and address or address:sub(3)
    if kind == 0 and n == 0 then
        return address, "any address"
    elseif kind == 4 and n == 4 then
        return address, from .. concat({ byte(ip, 1, 4) }, ".")
    elseif kind == 6 and n == 16 then
        local words = {}
        for i = 0, 14, 2 do
            words[#words + 1] = format("%x", byte(ip, i + 1) * 256 + byte(ip, i + 2))
        end
        return address, from .. "[" .. concat(words, ":") .. "]"
    elseif kind == 0x6e and n > 0 and not address:find("\0", 1, true) then
        return address, (address:gsub("[^\33-\126]", "?"))
    end
    return nil, "address"
end

-- How many bytes the message has to have, as far as it says so itself.
function ext.least(s, spec)
    if spec.address then return spec.size + byte(s, spec.address + 2) end
    if spec == EXT[ACK] then return spec.size + 13 * byte(s, 22) end
    return spec.size
end

-- The direction in which a message of this way and id is not sent, in words.
function ext.wrong_way(spec, id, up)
    local only = spec.way
    if only == "opener" then only = id < ID_OF_RP and "up" or "down" end
    if only == "answer" then only = id < ID_OF_RP and "down" or "up" end
    if not only or (only == "up") == up then return nil end
    return only == "up" and "is sent uplink only" or "is sent downlink only"
end

-- What is wrong with a message of the extension: the expert, the bytes, the words.
function ext.fault(half, s, size)
    local kind = byte(s, 9)
    local spec = EXT[kind]
    if not spec then return e.unknown, "type", format("Unknown type %d: stepped over", kind) end
    local least = #s >= spec.size and ext.least(s, spec) or spec.size
    if size < least then
        return e.short, "len", format("%s of %d bytes: its fields take %d", EXT_NAME[kind], size,
            least)
    end
    if #s < least then return nil end
    local id = spec.about and le16(s, 9)
    if id == 0 then return e.ext_id, "about" end
    local wrong = ext.wrong_way(spec, id, half.up)
    if wrong then return e.ext_direction, "type", EXT_NAME[kind] .. " " .. wrong end
    if kind == HELLO and (byte(s, 31) >= byte(s, 32) or byte(s, 32) > 64) then
        return e.ext_pipe, "pipe"
    end
    local protocol = kind == OPEN and byte(s, 12)
    if protocol and not PROTOCOLS[protocol] then return e.ext_protocol, "protocol" end
    local address = spec.address and byte(s, spec.address + 1)
    if spec.address and (not ext.address(s, spec.address)
        or protocol == 6 and address == 0
        or address == 0x4c and not (protocol == 6 and id >= ID_OF_RP)) then
        return e.address, "address"
    end
    return nil
end

-- What messages of the extension tell about the session.
function ext.act(half, s)
    local stream, kind = half.stream, byte(s, 9)
    if kind == HELLO then
        stream.extension = true
        join_extension(stream, s:sub(15, 30), byte(s, 31), le32(s, 32) == 0)
    elseif kind == WELCOME then
        local session, status = stream.session, byte(s, 15)
        if status > 1 then return end
        -- The first pipe of a session is told that it is new, all others that they resume it.
        session.new = session.new or status == 0
        session.whole = session.whole and session.new
        session.conn_early, session.session_early = le32(s, 17), le32(s, 21)
        session.large = floor(le32(s, 10) / 0x800) % 2 == 1
        framing.most = session.large and LEN_LARGE_MAX or LEN_DATA_MAX
    end
end

-- Early data: more than the receiver has promised to hold? Returns the limit in words.
function ext.early_excess(conn, lane, payload)
    local session = conn.session
    if not session.extension then
        if lane.held_bytes + payload > EARLY_BASELINE and not conn.syn then
            return "more than 4 MiB before the SYN"
        end
        return nil
    end
    -- Of what was opened before the capture began nobody knows whether SYNACK came.
    if conn.synack or lane.middle or not (conn.syn or session.whole) then return nil end
    session.early, conn.early = session.early + payload, (conn.early or 0) + payload
    if not session.conn_early then return nil end
    if conn.early > session.conn_early then
        return format("%d bytes of the connection before its SYNACK, %d are allowed",
            conn.early, session.conn_early)
    elseif session.early > session.session_early then
        return format("%d bytes of the session before SYNACKs, %d are allowed",
            session.early, session.session_early)
    end
    return nil
end

-- A SYNACK ends the early limits of its use.
function ext.answered(conn, result)
    if conn.synack then return end
    conn.synack = result
    conn.session.early = conn.session.early - (conn.early or 0)
end

-- The first look at a message ---------------------------------------------------

local function new_record(half, frame, pos, order)
    local state = S
    local i = state.n + 1
    state.n = i
    if not state.first[frame] then state.first[frame] = i end
    state.m_frame[i], state.m_half[i], state.m_conn[i] = frame, half, false
    state.m_order[i], state.m_offset[i] = order, 0
    if pos ~= 0 then state.m_pos[i] = pos end
    return i
end

-- A message counts for its direction of the pipe, where it came with this frame.
local function count_in_half(half, size, payload)
    half.messages, half.bytes = half.messages + 1, half.bytes + size
    half.payload = half.payload + payload
end

-- Message i is of this direction of a connection, whatever its place there will be.
local function count_in_lane(conn, lane, i, payload, now)
    S.m_conn[i], conn.last = conn, now
    lane.messages, lane.payload = lane.messages + 1, lane.payload + payload
end

local function set_destination(conn, i, ip, text, port, now)
    conn.syn, conn.syn_frame, conn.syn_time = i, S.m_frame[i], now
    conn.dst_ip, conn.dst_text, conn.dst_port = ip, text, port
    conn.dst = text .. ":" .. port
end

local function count_pipe(lane, half)
    if not lane.pipes[half.stream] then
        lane.pipes[half.stream] = true
        lane.pipe_count = lane.pipe_count + 1
    end
end

-- The payload of a data message, as far as captured.
local function payload_of(m)
    return m.avail > HEADER and call.raw(m.tvb, m.at + HEADER, m.avail - HEADER) or ""
end

local function remember_payload(i, m)
    if options.content and m.payload > 0 then store.hold(i, payload_of(m)) end
end

-- Places message i of a connection and notes what is to be said. `m`: the message.
local function take(half, i, m, now)
    local extension = half.stream.session.extension
    local conn, old
    if extension then
        conn = ext.route(half, m, now)
        if m.begins then ext.begin_use(conn, half, m) end
    else
        conn, old = route(half, m.id, m.number, m.syn, now)
    end
    local lane = half.up and conn.up or conn.down
    count_in_lane(conn, lane, i, m.payload, now)
    count_pipe(lane, half)
    if old and not old.over then note(i, e.id_reused, "id") end
    if half.up == (not extension or m.id < ID_OF_RP) and m.payload > 0 then
        local words = ext.early_excess(conn, lane, m.payload)
        if words then note(i, e.early_limit, nil, "Early data beyond the limit: " .. words) end
    end
    if m.reason then
        conn.fins[#conn.fins + 1] = S.m_frame[i]
        if m.reason == FIN_RESET then note(i, e.reset) end
        for number, j in pairs(extension and {} or lane.held) do
            if ahead(number, m.number) > 0 then note(j, e.after_fin) end
        end
    end
    if conn.over and conn.by_up ~= half.up and not m.reason
        and not (extension and lane.seen[m.number]) then
        note(i, e.over)
    end
    if m.syn and not (extension and conn.syn) then
        set_destination(conn, i, m.ip, m.text, m.port, now)
    end
    if m.synack then ext.answered(conn, m.synack) end
    local resent = half.hole and wire.is_resent(half, half.hole_since, now)
    local order = place(conn, lane, i, m.number, m.payload, m.reason, resent, now)
    S.m_order[i] = order
    if order == EARLY then
        remember_payload(i, m)
    elseif order == COPY then
        note(i, e.copy, "number")
    elseif order == TOO_FAR then
        note(i, e.too_far, "number")
    elseif order == AFTER then
        note(i, e.after_fin)
    end
    if half.up and lane.done and not m.syn and not extension
        and (order == AFTER or order == COPY) then
        conn.strays = conn.strays or {}
        conn.strays[#conn.strays + 1] = { i = i, number = m.number, payload = m.payload,
            reason = m.reason, now = now }
        remember_payload(i, m)
        if S.early[i] then store.keep(i, S.early[i]) end
    end
end

-- The first message of a pipe is HELLO or WELCOME, and LP waits for the latter.
function ext.check_begin(half, i, id, s)
    local first, stream = half.first, half.stream
    half.first = false
    if not stream.extension or half.sync ~= "found" or not stream.started then return end
    local want = half.up and HELLO or WELCOME
    if first then
        local kind = id == 0 and (byte(s, 9) or want) -- not captured: taken to be right
        if kind ~= want then
            note(i, e.ext_first, "id", "The first message of this pipe is not " .. EXT_NAME[want])
        end
    elseif half.up and stream.down.messages == 0 then
        note(i, e.ext_welcome, "id")
    end
end

-- OPEN and SYNACK have their place among the messages of their connection.
function ext.take_numbered(half, i, m, s, now)
    local kind = byte(s, 9)
    m.id, m.begins = le16(s, 9), true
    if kind == SYNACK then
        m.synack = byte(s, 12)
    else
        local address, text = ext.address(s, EXT[OPEN].address)
        m.ip = byte(s, 13) == 4 and text or nil
        m.text, m.port = text, le16(s, 14 + #address)
    end
    take(half, i, m, now)
    m.id = 0
end

function ext.take(half, i, m, s, now)
    S.m_order[i] = APART
    if m.len ~= m.size then
        local what = m.len == LEN_SYN and e.ext_syn or e.ext_id
        note(i, half.stream.extension and what or e.id_0, "id")
        return
    end
    local kind = byte(s, 9)
    if not half.stream.extension and not (kind == HELLO and half.up and half.messages == 1
        and half.stream.rp_port ~= 6000) then
        note(i, e.id_0, "id")
    end
    if not kind then return end
    local fault, on, text = ext.fault(half, s, m.size)
    if fault then
        note(i, fault, on, text)
        return
    end
    if #s < EXT[kind].size or #s < ext.least(s, EXT[kind]) then return end
    if kind == OPEN or kind == SYNACK then
        ext.take_numbered(half, i, m, s, now)
    else
        ext.act(half, s)
    end
end

-- A message as a whole: `s` its bytes, of a data message the header.
local function first_look(half, frame, pos, m, s, now)
    local i = new_record(half, frame, pos, APART)
    local id, number, len, size = m.id, m.number, m.len, m.size
    m.payload = id ~= 0 and len < LEN_FIN and size - HEADER or 0
    count_in_half(half, size, m.payload)
    if not half.up then half.stream.session.answered = true end
    if half.hole and half.begin then
        local came = wire.came(half, (half.begin + half.bytes) % CIRCLE)
        if came then S.m_held[i] = now - came end
    end
    if half.first or half.stream.extension then ext.check_begin(half, i, id, s) end
    if id == 0 then
        ext.take(half, i, m, s, now)
        return i
    end
    if len == LEN_SYN then
        if half.stream.extension then
            note(i, e.ext_syn, "type")
            return i
        elseif not half.up then
            note(i, e.syn_downlink, "type")
            return i
        elseif number ~= 0 then
            note(i, e.syn_number, "number")
            return i
        elseif #s < SIZE_SYN then
            return i
        end
        m.ip = concat({ byte(s, 9, 12) }, ".")
        m.text, m.port = m.ip, le16(s, 12)
    elseif len == LEN_FIN then
        m.reason = m.reason or FIN_ORDER
        local orderly = half.stream.extension and HALF_CLOSE or FIN_ORDER
        if m.reason ~= orderly and m.reason ~= FIN_RESET then
            note(i, e.reason, "reason", format("Unknown reason 0x%02x of a FIN", m.reason))
        end
    end
    take(half, i, m, now)
    return i
end

-- What a connection carries, for Wireshark's own dissectors ------------------------

local tcp_dissector, tcp_ports, sctp_ports, call_tcp
local NO_INFO = "(info)"

-- A source port of the dynamic range that nobody has claimed.
local function source_port(conn)
    if conn.source_port then return conn.source_port end
    local port = 49152 + conn.index % 16384
    for _ = 1, 16384 do
        if not ports[port] and not tcp_ports:get_dissector(port) then break end
        port = port < 65535 and port + 1 or 49152
    end
    conn.source_port = port
    return port
end

local function be16(n) return char(floor(n / 256) % 256, n % 256) end
local function be32(n)
    return char(floor(n / 16777216) % 256, floor(n / 65536) % 256, floor(n / 256) % 256, n % 256)
end

-- TCP looks through all segments that were never acknowledged: so they are, every so often.
local ACK_EVERY = 8
-- The end of a TCP header by its flags: made once.
local header_end = setmetatable({}, { __index = function(ends, flags)
    ends[flags] = char(0x50, flags) .. "\255\255\0\0\0\0"
    return ends[flags]
end })

-- Did a dissector run into the end of its bytes? Wireshark has put that into the tree already, and
-- nobody else has anything to do with it.
local function malformed(why)
    return tostring(why):find("Malformed frame", 1, true) ~= nil
end

-- What all made-up segments of a direction have in common: ports, and a name for their bytes.
local function name_lane(conn, lane)
    local near, far = source_port(conn), conn.dst_port
    lane.ports = be16(lane.up and near or far) .. be16(lane.up and far or near)
    lane.name = format("TM³ connection %d %s", conn.id, lane.up and "uplink" or "downlink")
end

-- Hands bytes of a connection to the TCP dissector as the segment that they would have been,
-- with a made-up header: so they are reassembled and found by port as all others are, and each
-- connection has a stream of its own to be followed.
local function hand_on(conn, lane, offset, payload, flags, pinfo, tree, ack)
    if not lane.ports then name_lane(conn, lane) end
    local isn = conn.index * 65536 % HALF_CIRCLE
    local sequence = (isn + offset + (flags == TCP.SYN and 0 or 1)) % CIRCLE
    local segment = lane.ports .. be32(sequence)
        .. (ack and be32((isn + ack + 1) % CIRCLE) or "\0\0\0\0") .. header_end[flags] .. payload
    local tvb = ByteArray.new(segment, true):tvb(lane.name)
    nested = look.frame
    if not look.visited then S.segments_made = S.segments_made + 1 end
    local ok, why = pcall(call_tcp, tcp_dissector, tvb, pinfo, tree)
    nested = false
    if not ok and not malformed(why) then error(why, 0) end
end

-- Wireshark keeps what it reassembled by the number of the layer in its frame, which counts all
-- dissectors that had a part of it so far, and they are not the same ones in each pass: of a body
-- only its end is handed on at first. So all that is handed on in a frame begins at the same layer:
-- what `layer.within` calls is counted off again, for it declines what it was given.
local layer = {
    raise = Proto("tm3_layer", "TM³ layer"),
    within = Proto("tm3_within", "TM³ content of a connection"),
}

-- Before 4.4, while there is a tree to write into, Wireshark forgets to count off the layer of a
-- dissector that asks for more bytes and has written nothing, as nearly all do; TLS writes first.
-- It is not called when the frame is looked at again; then one is added. Whether it is called is
-- seen by who stands in front of it and declines: `layer.watch` or `body.watch`.
layer.LEAKS = VERSION < 404
layer.watch = Proto("tm3_known", "TM³ content of a known port")

function layer.watch.dissector()
    layer.calls = layer.calls + 1
    return 0
end

-- Bodies whose length HTTP knows. Until such a body is whole, TCP only files its segments, and
-- for each of them looks through all those before it. So in the first pass what is inside a body
-- is handed on several messages at a time; its end comes in the frame that it came in. Later
-- passes find everything filed: each frame hands on its own.
local body = {
    watch = Proto("tm3_content", "TM³ content"),
    HEAD_MAX = 8 * 1024,
    TOGETHER = 16 * 1024,            -- so much of a body is handed on at once
    HELD_MAX = 4 * 1024 * 1024,      -- held of all bodies
}

-- How many bytes are missing to the message that begins here, as its Content-Length has it.
function body.missing(tvb)
    local size = tvb:len()
    local s = tvb:raw(0, math.min(size, body.HEAD_MAX))
    local head = s:find("\r\n\r\n", 1, true)
    local length = head and s:sub(1, head + 1):lower():match("\r\ncontent%-length:[ \t]*(%d+)\r\n")
    return length and head + 3 + tonumber(length) - size or 0
end

-- Stands in front of HTTP in a made-up TCP stream. Of a segment that begins a body and does not
-- end it, it asks HTTP itself whether it will wait for the rest, which HTTP may not (an answer
-- to HEAD). All else it declines, for TCP tells HTTP more than can be told from here.
function body.watch.dissector(tvb, pinfo, tree)
    local lane = body.lane
    layer.calls = layer.calls + 1
    if not lane then
        if body.asked then body.asked.body_end = nil end
        return 0
    end
    body.lane = nil
    local missing = body.missing(tvb)
    if missing <= 0 or pinfo.can_desegment == 0 then return 0 end
    pinfo.can_desegment = 2
    local ok, taken = pcall(call_tcp, body.http, tvb, pinfo, tree)
    if not ok then
        if not malformed(taken) then error(taken, 0) end
        return tvb:len()
    end
    if pinfo.desegment_len == missing then
        lane.body_end, body.asked = body.stop + missing, lane
    end
    return taken
end

-- Connections that nobody reads: no dissector has their port, and of what was handed on so far none
-- took the conversation, for then the one that stands in front of it would not have been asked.
-- What else they carry is not handed on in the first pass, unless there is a tree to show it in.
local unread = { watch = Proto("tm3_unread", "TM³ content that nobody reads"), TRIES = 8 }

function unread.watch.dissector()
    unread.asked = true
    return 0
end

-- A piece was handed on.
function unread.count(conn)
    if not conn.unread or conn.unread >= unread.TRIES then return end
    conn.unread = unread.asked and conn.unread + 1 or nil
    if conn.unread == unread.TRIES then conn.nobody = true end
end

-- Behind the SYN of a connection.
function body.begin(conn, pinfo)
    local dissector = tcp_ports:get_dissector(conn.dst_port)
    if dissector and tostring(dissector) == "HTTP" then
        body.http = dissector
        pinfo.conversation = body.watch
    elseif not dissector then
        conn.unread, pinfo.conversation = 0, unread.watch
    elseif layer.LEAKS and tostring(dissector) ~= "TLS" then
        pinfo.conversation = layer.watch
    end
end

function body.count(size)
    S.body_bytes = S.body_bytes + size
    S.held_bytes = S.held_bytes + size
    if S.held_bytes > S.held_bytes_max then S.held_bytes_max = S.held_bytes end
end

-- Bytes inside a body wait for more of it; false: there is enough, or the body is at its end.
function body.holds(lane, offset, bytes)
    local size, parts = #bytes, lane.body_parts
    local held = parts and lane.body_size or 0
    if offset + size >= lane.body_end or held + size >= body.TOGETHER
        or S.body_bytes >= body.HELD_MAX or options.keep_mb == 0 then
        return false
    end
    if not parts then
        parts, lane.body_from = {}, offset
        lane.body_parts = parts
    end
    parts[#parts + 1] = bytes
    lane.body_size = held + size
    body.count(size)
    return true
end

-- Does this piece wait for more of its body? If not, what waited is put in front of it.
function body.waits(lane, piece)
    if lane.body_end and not piece.reason and body.holds(lane, piece.offset, piece.bytes) then
        return true
    end
    local parts = lane.body_parts
    if parts then
        parts[#parts + 1] = piece.bytes
        piece.bytes, piece.offset = concat(parts), lane.body_from
        body.count(-lane.body_size)
        lane.body_parts, lane.body_size = nil, nil
    end
    return false
end

-- The piece is about to be handed on: may a body begin in it, whose end is then counted from the
-- piece's own? Not if the piece begins inside one, or ends the stream.
function body.expect(lane, piece)
    local stop = piece.offset + #piece.bytes
    local may_begin = not piece.reason and not (lane.body_end and piece.offset < lane.body_end)
    body.lane, body.stop, body.asked = may_begin and lane or nil, stop, nil
    if lane.body_end and stop >= lane.body_end then lane.body_end = nil end
end

-- Acknowledges what was handed on, for TCP's analysis in the first pass; it is not shown.
local function acknowledge(conn, lane, pinfo, tree)
    lane.unacknowledged = (lane.unacknowledged or 0) + 1
    if lane.unacknowledged < ACK_EVERY then return end
    lane.unacknowledged = 0
    local other = lane.up and conn.down or conn.up
    local item = tree:add(inside, "acknowledgement")
    item.hidden = true
    -- It would come from the other side, and TCP tells directions by address.
    local src, dst = pinfo.src, pinfo.dst
    pinfo.src, pinfo.dst = dst, src
    hand_on(conn, other, other.handed or 0, "", TCP.ACK, pinfo, item, lane.handed)
    pinfo.src, pinfo.dst = src, dst
end

local inside_dissector


function layer.raise.dissector(tvb)
    return tvb:len()
end

function layer.within.dissector()
    layer.failed = nil
    local ok, why = pcall(layer.act, layer.piece, layer.pinfo, layer.tree, layer.visited)
    if not ok then layer.failed = why end
    return 0
end

local function hand_on_piece(piece, pinfo, tree, visited)
    local conn, lane, reason = piece.conn, piece.lane, piece.reason
    if tree:referenced(inside_dissector) then
        local arrow, size = lane.up and "↑ to " or "↓ from ", #piece.bytes
        local item = tree:add(inside, format("TM³ application stream, connection %d%s%s, %s from "
            .. "offset %.0f (the TCP header is made up)", conn.id, arrow, conn.dst,
            size == 1 and "1 byte" or size .. " bytes", piece.offset))
        item:set_generated(true)
    end
    if piece.syn then
        hand_on(conn, lane, 0, "", TCP.SYN, pinfo, tree)
        if not visited then body.begin(conn, pinfo) end
    end
    local flags = #piece.bytes > 0 and TCP.PSH or 0
    if reason == FIN_ORDER or reason == HALF_CLOSE then flags = flags + TCP.FIN end
    if not visited then body.expect(lane, piece) end
    unread.asked = false
    if flags > 0 then hand_on(conn, lane, piece.offset, piece.bytes, flags, pinfo, tree) end
    body.lane, body.asked = nil, nil
    if flags > 0 and not visited then
        if #piece.bytes > 0 then unread.count(conn) end
        lane.handed = piece.offset + #piece.bytes
        acknowledge(conn, lane, pinfo, tree)
    end
    if reason == FIN_RESET then
        hand_on(conn, lane, piece.offset + #piece.bytes, "", TCP.RST, pinfo, tree)
    end
    piece.bytes = nil
end

-- The bytes that become due with a message: its own and of those that it released, as far as
-- they are held.
local function due_bytes(released, lane, number, own)
    local parts = { own }
    for step = 1, released.count do
        parts[step + 1] = S.early[lane.seen[(number + step) % CIRCLE]] or ""
    end
    return concat(parts)
end

-- The gap is closed. What was handed on may be looked at again; the rest is of no use.
local function let_go(lane, number, count, handed)
    for step = 1, count do
        local j = lane.seen[(number + step) % CIRCLE]
        local payload = S.early[j]
        if payload and handed then
            store.keep(j, payload)
        else
            store.drop(j)
        end
    end
end

-- What becomes due in a frame, by direction of a connection; handed on when all of the frame
-- was looked at, as one segment: Wireshark cannot show a PDU that was put together from
-- several segments of one frame. The tables of the pieces are used again.
local due_now = { count = 0 }

-- Adds bytes of message i: to what is due in this direction already, or as a piece of its own.
local function add_due(conn, lane, offset, bytes, syn, reason)
    local last = lane.due
    if last and lane.due_in == look.count and not last.reason then
        local more = last.more or { last.bytes }
        more[#more + 1] = bytes
        last.more, last.reason = more, reason
        return
    end
    due_now.count = due_now.count + 1
    local piece = due_now[due_now.count] or {}
    due_now[due_now.count], lane.due, lane.due_in = piece, piece, look.count
    piece.conn, piece.lane, piece.offset, piece.bytes = conn, lane, offset, bytes
    piece.syn, piece.reason = syn, reason
end

-- Each piece as one.
function due_now.join()
    for at = 1, due_now.count do
        local piece = due_now[at]
        if piece.more then piece.bytes, piece.more = concat(piece.more), nil end
    end
end

-- In the first pass: of what is due only what does not wait for more of its body.
function body.gather()
    local count = 0
    for at = 1, due_now.count do
        local piece = due_now[at]
        local nobody = piece.conn.nobody and not look.has_tree
        if piece.syn or not nobody and not body.waits(piece.lane, piece) then
            count = count + 1
            due_now[at], due_now[count] = due_now[count], piece
        end
    end
    due_now.count = count
end

-- One row a message, if they are wanted: what a record does not keep.
local listing = {}

function listing.note(i, m, now)
    local kind = m.syn and "SYN" or m.reason and "FIN" or "data"
    S.seen[i] = { time = now, number = m.number, type = kind, bytes = m.payload }
end

-- What the connection with this index (tm3.stream) carries, in the order in which it became due. It
-- is collected as the capture is read (tshark), or when all is looked at `again` (Wireshark).
local follow = { pieces = {}, again = false }

-- Nothing is collected yet, and nothing else is to be than the preference says.
function follow.begin()
    follow.index, follow.pieces, follow.again = tonumber(options.follow), {}, false
end
at_init[#at_init + 1] = follow.begin

function follow.add(conn, lane, bytes, visited)
    if conn.index ~= follow.index or #bytes == 0 or visited ~= follow.again then return end
    local pieces = follow.pieces
    pieces[#pieces + 1] = { up = lane.up, frame = look.frame, bytes = bytes }
end

-- Adds what becomes due with message i and goes to the application's dissectors. False: nothing.
local function add_piece(i, m, conn, lane, visited, tree)
    if not conn.dst_port or lane.middle then return false end
    local offset, released, own = S.m_offset[i], S.released[i], ""
    if m.id ~= 0 and m.len < LEN_FIN then
        own = payload_of(m)
        if #own ~= m.size - HEADER and not visited then lane.torn = lane.torn or offset end
    end
    if lane.torn and offset >= lane.torn then return false end
    local bytes = released and due_bytes(released, lane, m.number, own) or own
    if released and #bytes ~= #own + released.bytes then
        if visited then
            tree:add_proto_expert_info(e.not_kept)
        else
            lane.torn = lane.torn or offset
        end
        return false
    end
    if follow.index then follow.add(conn, lane, bytes, visited) end
    if conn.dst_port >= X11_FIRST and conn.dst_port <= X11_LAST then
        if not visited and lane.up and offset == 0 and framing.opens_as_x11(bytes) then
            conn.x11_from = i
        end
        if not conn.x11_from or i < conn.x11_from then return false end
    end
    add_due(conn, lane, offset, bytes, m.syn, m.reason or released and released.fin)
    return true
end

-- Collects what becomes due with message i, in both passes alike.
local function collect(i, m, visited, tree)
    local conn, order = S.m_conn[i], S.m_order[i]
    if not conn or order ~= IN_ORDER and order ~= LATE and order ~= LATE_RESENT then return end
    local lane = S.m_half[i].up and conn.up or conn.down
    local added = add_piece(i, m, conn, lane, visited, tree)
    local released = S.released[i]
    if released and (not visited or options.keep_mb == 0) then
        let_go(lane, m.number, released.count, added)
    end
end

-- Seen again, an early message is held again for the frame that closes its gap.
local function hold_again(i, m)
    if S.m_fill[i] == 0 or m.len >= LEN_FIN or m.id == 0 or S.early[i] then return end
    local lane = S.m_half[i].up and S.m_conn[i].up or S.m_conn[i].down
    if S.m_conn[i].dst_port and not lane.middle and not lane.torn then
        store.keep(i, payload_of(m), true)
    end
end

-- Words ------------------------------------------------------------------------

local function plural(n, word)
    return n == 1 and "1 " .. word or n .. " " .. word .. "s"
end

local function seconds(t)
    if t < 0.0000005 then return "0 s" end
    if t < 1 then return format("%.3f ms", t * 1000) end
    return format("%.6f s", t)
end

-- "data 3, 120 bytes", "SYN to 192.0.2.33:443", "FIN 7, reset"
local function what(m, s)
    if m.id == 0 then
        if m.len ~= m.size then return m.len == LEN_SYN and "SYN" or "FIN" end
        local kind = byte(s, HEADER + 1)
        local name = EXT_NAME[kind] or "unknown type " .. tostring(kind)
        local spec = EXT[kind]
        if not spec or #s < spec.size then return name end
        if kind == OPEN then
            local address, text = ext.address(s, spec.address)
            if not address then return name .. " of " .. le16(s, 9) end
            return format("OPEN %d of %d to %s:%d", m.number, le16(s, 9), text,
                le16(s, 14 + #address))
        elseif kind == SYNACK then
            return format("SYNACK %d of %d, %s", m.number, le16(s, 9),
                RESULTS[byte(s, 12)] or "failed")
        elseif spec.about then
            return name .. " of " .. le16(s, 9)
        elseif name == "LISTENING" then
            return format("LISTENING of listener %d: %s", le16(s, 9),
                byte(s, 12) == 0 and "on port " .. le16(s, 12) or "no")
        elseif kind == ACK then
            return format("ACK of %s", plural(byte(s, 22), "pipe"))
        elseif kind == WELCOME then
            return name .. ": " .. (STATUS[byte(s, 15)] or "?")
        elseif kind == HELLO then
            return format("%s: pipe %d of %d", name, byte(s, 31), byte(s, 32))
        end
        return name
    elseif m.len == LEN_SYN then
        if #s < SIZE_SYN then return "SYN" end
        return format("SYN to %s:%d", concat({ byte(s, 9, 12) }, "."), le16(s, 12))
    elseif m.len == LEN_FIN then
        return format("FIN %d, %s", m.number, REASONS[m.reason] or "unknown reason")
    end
    return format("data %d, %s", m.number, plural(m.size - HEADER, "byte"))
end

local columns = {}

-- What the order says of a message, behind its words.
function columns.of_order(i)
    local order, words = S.m_order[i], ""
    if order == EARLY then
        if S.m_fill[i] == 0 then
            words = " (early)"
        else
            words = format(" (early, waits %s)", seconds(S.m_wait[i]))
        end
    elseif order ~= IN_ORDER and order ~= APART then
        words = " (" .. ORDER[order] .. ")"
    end
    local released = S.released[i]
    if released then words = words .. ", releases " .. released.count end
    return words
end

function columns.of_data(i, number, bytes)
    local words = format(S.m_half[i].up and "%d↑ data %d, %d bytes" or "%d↓ data %d, %d bytes",
        S.m_conn[i].id, number, bytes)
    if S.m_order[i] == IN_ORDER then return words end
    return words .. columns.of_order(i)
end

local function words_of(i, m, s)
    local arrow = S.m_half[i].up and "↑" or "↓"
    local words = m.id == 0 and arrow .. " " .. what(m, s) or m.id .. arrow .. " " .. what(m, s)
    return words .. columns.of_order(i)
end

-- The tree ------------------------------------------------------------------------

local view = {}

local TYPE_SPAN = "type"  -- key of the item that experts about the type hang on

function view.generated(item)
    item:set_generated(true)
    return item
end

function view.ns_time(t)
    local negative = t < 0
    local us = floor((negative and -t or t) * 1000000 + 0.5)
    local secs = floor(us / 1000000)
    local nsecs = (us - secs * 1000000) * 1000
    if negative then return NSTime.new(-secs, -nsecs) end
    return NSTime.new(secs, nsecs)
end

function view.features(tree, range)
    local item = tree:add_le(f.features, range)
    for i = 0, #feature_fields do item:add_le(feature_fields[i], range) end
end

-- The address whose kind stands at offset `from`, and its port. Returns where that ends.
function view.address(tree, tvb, at, from, avail, s, items)
    local n = byte(s, from + 2)
    tree:add(f.kind, tvb:range(at + from, 1))
    tree:add(f.address_len, tvb:range(at + from + 1, 1))
    local fits = math.min(n, avail - from - 2)
    if fits > 0 then
        local range = tvb:range(at + from + 2, fits)
        local kind, address, text = byte(s, from + 1), ext.address(s, from)
        if address and kind == 4 then
            tree:add(f.dst_ip, range)
        elseif address and kind == 6 then
            tree:add(f.dst_ip6, range)
        elseif address and kind == 0x4c then
            tree:add_le(f.listener, tvb:range(at + from + 2, 2))
        elseif address then
            tree:add(f.dst_name, range, text)
        end
        items.address = tree:add(f.address, range)
    end
    if avail >= from + 4 + n then
        local item = tree:add_le(f.dst_port, tvb:range(at + from + 2 + n, 2))
        if byte(s, HEADER + 1) == DATAGRAM and byte(s, from + 1) == 0
                and le16(s, from + 2 + n) == 1 then
            item:append_text(" (no port: it must not be fragmented)")
        end
    end
    return from + 4 + n
end

-- What an ACK says of each pipe. Returns where that ends.
function view.acked(tree, tvb, at, avail, s)
    local from = EXT[ACK].size
    for _ = 1, byte(s, 22) do
        if from + 13 > avail then return avail end
        tree:add(f.ack_pipe, tvb:range(at + from, 1))
        tree:add_le(f.ack_incarnation, tvb:range(at + from + 1, 4))
        tree:add_le(f.received, tvb:range(at + from + 5, 8))
        from = from + 13
    end
    return from
end

-- What follows the fields whose place is fixed. Returns where that ends.
function view.behind_fixed(tree, tvb, at, kind, known, avail, s, items)
    local from = EXT[kind].address
    if kind == ACK then return view.acked(tree, tvb, at, avail, s) end
    if not from or avail < from + 2 then return known end
    known = view.address(tree, tvb, at, from, avail, s, items)
    if kind == OPEN and known + 4 <= avail then
        tree:add_le(f.window, tvb:range(at + known, 4))
        known = known + 4
    elseif kind == DATAGRAM and known <= avail then
        view.generated(tree:add(f.payload_len, avail - known))
        if known < avail then tree:add(f.payload, tvb:range(at + known, avail - known)) end
        known = avail
    end
    return known
end

function view.extension(tree, tvb, at, avail, s, items)
    local kind = byte(s, HEADER + 1)
    if not kind then return end
    items[TYPE_SPAN] = tree:add(f.type, tvb:range(at + 8, 1), TYPE_EXT + kind)
    if not EXT_NAME[kind] then
        items[TYPE_SPAN]:set_text(format("Type: unknown to the extension (%d)", kind))
    end
    tree:add(f.ext_type, tvb:range(at + 8, 1))
    local spec = EXT[kind]
    local known = HEADER + 1
    for _, field in ipairs(spec or {}) do
        local from, to = field[2], field[2] + field[3]
        if to > avail then return end
        local range = tvb:range(at + from, field[3])
        if field[1] == f.features then
            view.features(tree, range)
        elseif field[4] then
            tree:add(field[1], range)
        else
            local item = tree:add_le(field[1], range)
            if field[1] == f.path_flags then item:add(f.path_backup, range) end
            if field[1] == f.about then items.about = item end
            if field[1] == f.pipe_count then items.pipe = item end
            if field[1] == f.protocol then items.protocol = item end
        end
        known = to
    end
    if spec then known = view.behind_fixed(tree, tvb, at, kind, known, avail, s, items) end
    if known < avail then tree:add(f.future, tvb:range(at + known, avail - known)) end
end

function view.body(tree, tvb, at, m, avail, s, items)
    if m.id == 0 and m.len == m.size then
        view.extension(tree, tvb, at, avail, s, items)
        return
    end
    local kind = m.len == LEN_SYN and TYPE_SYN or m.len == LEN_FIN and TYPE_FIN or TYPE_DATA
    items[TYPE_SPAN] = tree:add(f.type, tvb:range(at + 6, 2), kind)
    if kind == TYPE_SYN then
        if avail < SIZE_SYN then return end
        tree:add(f.dst_ip, tvb:range(at + 8, 4))
        tree:add_le(f.dst_port, tvb:range(at + 12, 2))
    elseif kind == TYPE_FIN then
        if avail < SIZE_FIN then return end
        items.reason = tree:add(f.reason, tvb:range(at + 8, 1))
    else
        view.generated(tree:add(f.payload_len, m.size - HEADER))
        if avail > HEADER then tree:add(f.payload, tvb:range(at + 8, avail - HEADER)) end
    end
end

function view.destination(tree, conn, own)
    if own or not conn.dst then return end
    if conn.dst_ip then
        view.generated(tree:add(f.dst_ip, Address.ip(conn.dst_ip)))
    else
        view.generated(tree:add(f.dst_name, conn.dst_text))
    end
    view.generated(tree:add(f.dst_port, conn.dst_port))
end

function view.order(tree, i, lane, m, items)
    local order, fill = S.m_order[i], S.m_fill[i]
    local item = view.generated(tree:add(f.order, order))
    item:append_text(": " .. ORDER_LONG[order])
    if order == EARLY and fill == 0 then
        if lane.next then
            local missing = format("Number %d of connection %d never comes: %s behind the gap",
                lane.next, m.id, plural(lane.held_count, "message"))
            items.gap = missing
        end
        return
    end
    if order == COPY then
        if fill > 0 then view.generated(tree:add(f.original, S.m_frame[fill])) end
        return
    end
    if order == EARLY then
        view.generated(tree:add(f.wait, view.ns_time(S.m_wait[i])))
        view.generated(tree:add(f.filled_by, S.m_frame[fill]))
    elseif order == IN_ORDER or order == LATE or order == LATE_RESENT then
        view.generated(tree:add(f.wait, view.ns_time(0)))
    end
    local released = S.released[i]
    if not released then return end
    view.generated(tree:add(f.release_count, released.count))
    for step = 1, released.count do
        local j = lane.seen[(m.number + step) % CIRCLE]
        local each = view.generated(tree:add(f.releases, S.m_frame[j]))
        each:append_text(format(" (number %d, waited %s)", (m.number + step) % CIRCLE,
            seconds(S.m_wait[j])))
    end
end

function view.computed(tree, i, m, pinfo, items)
    local half = S.m_half[i]
    local stream, conn = half.stream, S.m_conn[i]
    view.generated(tree:add(f.session, stream.session.number))
    view.generated(tree:add(f.pipe, stream.number))
    view.generated(tree:add(f.direction, half.up and 1 or 2))
    if S.m_held[i] > 0 then view.generated(tree:add(f.held, view.ns_time(S.m_held[i]))) end
    if not conn then return end
    local lane = half.up and conn.up or conn.down
    view.generated(tree:add(f.stream, conn.index))
    view.destination(tree, conn, m.syn)
    if conn.syn_frame then
        view.generated(tree:add(f.syn_frame, conn.syn_frame))
        view.generated(tree:add(f.since_syn, view.ns_time(pinfo.abs_ts - conn.syn_time)))
    end
    for _, frame in ipairs(conn.fins) do view.generated(tree:add(f.fin_frame, frame)) end
    view.order(tree, i, lane, m, items)
    local order = S.m_order[i]
    if m.len < LEN_FIN and m.id ~= 0 and (order == IN_ORDER or order == LATE
        or order == LATE_RESENT or order == EARLY and S.m_fill[i] > 0) then
        view.generated(tree:add(f.offset, UInt64(S.m_offset[i] % CIRCLE,
            floor(S.m_offset[i] / CIRCLE))))
    end
end

function view.notes(i, tree, items, visited)
    for _, each in ipairs(S.notes[i] or {}) do
        local item = items[each.on] or tree
        if each.text then
            item:add_proto_expert_info(each.what, each.text)
        else
            item:add_proto_expert_info(each.what)
        end
    end
    local gap = visited and items.gap
    if gap then tree:add_proto_expert_info(e.gap, gap) end
    if gap or S.notes[i] then tree:add(f.expert).hidden = true end
end

-- A message in the tree. Returns the item that stands for it.
function view.message(i, m, s, pinfo, tree)
    local tvb, at, avail = m.tvb, m.at, m.avail
    local text = "TM³ pipe, connection " .. words_of(i, m, s)
    if m.id == 0 then text = "TM³ pipe, extension " .. words_of(i, m, s) end
    local item = tree:add(tm3, tvb:range(at, avail), text)
    local items = {}
    items.id = item:add_le(f.conn, tvb:range(at, 2))
    items.number = item:add_le(f.seq, tvb:range(at + 2, 4))
    items.len = item:add_le(f.len, tvb:range(at + 6, 2))
    view.body(item, tvb, at, m, avail, s, items)
    view.computed(item, i, m, pinfo, items)
    view.notes(i, item, items, pinfo.visited)
    return item
end

-- Bytes that are no message, in the tree.
function view.garbage(i, tvb, at, size, tree)
    local text = format("TM³ pipe, %s that are no message", plural(size, "byte"))
    local item = tree:add(tm3, tvb:range(at, size), text)
    local items = {}
    if S.notes[i] and S.notes[i][1].on == "len" and size >= HEADER then
        items.id = item:add_le(f.conn, tvb:range(at, 2))
        items.number = item:add_le(f.seq, tvb:range(at + 2, 4))
        items.len = item:add_le(f.len, tvb:range(at + 6, 2))
    end
    item:add(f.garbage, tvb:range(at, size))
    local stream = S.m_half[i].stream
    view.generated(item:add(f.session, stream.session.number))
    view.generated(item:add(f.pipe, stream.number))
    view.generated(item:add(f.direction, S.m_half[i].up and 1 or 2))
    view.notes(i, item, items, false)
end

-- Cutting a pipe into messages -------------------------------------------------------

-- Record of what stood at this place of the frame when it was first seen.
function framing.find_record(frame, key, pos)
    local i = S.first[frame]
    while i and S.m_frame[i] == frame do
        if S.m_pos[i] == pos and S.m_half[i].key == key then return i end
        i = i + 1
    end
    return nil
end

-- Of a pipe that the capture has cut: how far it is to what stood next in the frame at first.
function framing.to_next_record(frame, key, pos)
    local i, nearest = S.first[frame], nil
    while i and S.m_frame[i] == frame do
        local far = math.abs(S.m_pos[i]) - math.abs(pos)
        if S.m_half[i].key == key and far > 0 and (not nearest or far < nearest) then
            nearest = far
        end
        i = i + 1
    end
    return nearest
end

function framing.new_garbage(half, frame, pos, size)
    local i = new_record(half, frame, pos, GARBAGE)
    S.m_offset[i], half.begin = size, nil
    return i
end

-- Messages begin at `from` of bytes of which the first half.waited were waited with before. How
-- many does the last one lack? TCP gives all of them again if it begins among those, and they
-- would be taken for duplicates: so that one is waited for as well.
function pipe.lacks(half, s, from)
    local at = from
    while at <= #s do
        local size, rest = nil, #s - at + 1
        if rest >= HEADER then
            local id, _, len = header(s, at)
            size = size_of(id, len)
            if not size then return nil end
        end
        if not size or size > rest then
            if at - 1 > half.waited then return nil end
            return size and size - rest or DESEGMENT_ONE_MORE_SEGMENT
        end
        at = at + size
    end
    return nil
end

-- Does a header of a known connection stand here, with a number that it may have reached?
function framing.known_header(half, s)
    if #s < HEADER then return false end
    local id, number, len = header(s, 1)
    local slot = size_of(id, len) and half.stream.session.slots[id]
    local lane = slot and (half.up and slot.conn.up or slot.conn.down)
    return lane and lane.next and math.abs(ahead(number, lane.next)) <= NEAR or false
end

-- How many bytes from `at` on belong to no message; nil: that cannot be told yet, and how many
-- more are wanted.
function framing.search(half, tvb, at, left, may_wait)
    local s = tvb:raw(at, left)
    local found
    local wait = may_wait and left < SEARCH_WINDOW and half.messages == 0
    if half.sync == "unsure" then
        local count, exact, low = framing.chain(s, 1)
        if count and count > 0 and low and (exact or count > 2 or not wait) then
            found = 1
        else
            half.sync = "lost"
        end
    end
    if half.messages > 0 and framing.known_header(half, s) then found = 1 end
    found = found or framing.find_sync(s, not wait and half.messages == 0)
    local wanted = found and may_wait and half.waited and pipe.lacks(half, s, found)
    if not found and wait then wanted = DESEGMENT_ONE_MORE_SEGMENT end
    half.waited = wanted and left or nil
    if wanted then return nil, wanted end
    if not found then return left end
    half.sync = "found"
    return found - 1
end

function framing.skip(half, frame, pos, size)
    local i = framing.new_garbage(half, frame, pos, size)
    note(i, e.skipped, nil, half.messages == 0
        and format("%s skipped until a message begins: the capture begins in the middle",
            plural(size, "byte"))
        or format("%s in which no message can be found", plural(size, "byte")))
    return i
end

function framing.broken(half, frame, pos, left, len)
    local i = framing.new_garbage(half, frame, pos, left)
    half.sync = "lost"
    note(i, e.length, "len", format("Length %d (0x%04x) means nothing: behind it no message "
        .. "can be found", len, len))
    if half.hole or half.reordered > 0 then note(i, e.out_of_order) end
    return i
end

-- What the messages of a frame are: for the info column, which is written when all dissectors
-- have had the frame, and only if there are columns. Of a data message its record, number and
-- size of payload; of others the words.
local told = { count = 0, record = {}, number = {}, payload = {}, words = {} }

function columns.tell(words, i, number, payload)
    local at = told.count + 1
    told.count = at
    if at > WORDS_MAX then return end
    told.words[at] = words
    if not words then
        told.record[at], told.number[at], told.payload[at] = i, number, payload
    end
end

-- Since Wireshark 4.2 the fields _ws.col.* are filled before postdissectors run.
columns.EARLY = VERSION >= 402

function columns.text()
    local count = told.count < WORDS_MAX and told.count or WORDS_MAX
    for at = 1, count do
        local i = told.record[at]
        if not told.words[at] then
            told.words[at] = columns.of_data(i, told.number[at], told.payload[at])
        end
    end
    local text = count == 1 and told.words[1] or concat(told.words, "; ", 1, count)
    return told.count == count and text or format("%s; and %d more", text, told.count - count)
end

-- Of a frame begun before, whatever became of it, nothing is due and nothing is told.
local function begin_look(frame, visited, now)
    due_now.count, told.count = 0, 0
    look.frame, look.visited, look.now = frame, visited, now
    look.count, look.chunks, look.told = (look.count or 0) + 1, 0, nil
end

function end_look()
    due_now.count, told.count = 0, 0
    look.frame, nested = nil, false
    body.lane, body.asked = nil, nil
end

local tm3_dissector

local function message(i, m, s, pinfo, tree)
    local item = tree
    if m.id ~= 0 and m.len < LEN_FIN and m.size > HEADER + 1 then
        columns.tell(false, i, m.number, m.size - HEADER)
    else
        columns.tell(words_of(i, m, s))
    end
    if look.shown then
        item = view.message(i, m, s, pinfo, tree)
    elseif S.notes[i] then
        view.notes(i, tree, {}, look.visited)
    end
    if not options.content then return end
    if S.m_order[i] == EARLY then
        if look.visited then hold_again(i, m) end
    else
        collect(i, m, look.visited, item)
    end
end

local function garbage(i, at, left, tree)
    local size = math.min(S.m_offset[i], left)
    if size == 0 then return left end
    if look.shown then
        view.garbage(i, look.tvb, at, math.min(size, look.captured - at), tree)
    else
        view.notes(i, tree, {}, false)
    end
    columns.tell(plural(size, "byte") .. " that are no message")
    return size
end

-- Where messages begin is not known: the record of what is to be skipped first, if any.
-- false: that cannot be told yet, and how many more bytes are wanted.
function framing.synchronise(pos, at, left, pinfo)
    local size, wanted = framing.search(look.half, look.tvb, at, math.min(left, look.captured - at),
        pinfo.can_desegment > 0 and not look.half.cut)
    if not size then return false, wanted end
    return size > 0 and framing.skip(look.half, look.frame, pos, size) or nil
end

-- The message that is looked at, one at a time; nobody keeps it.
local message_now = {}

-- The bytes from `at` on: a message, garbage, or not enough. Returns their size, or
-- nil and how many bytes are wanted.
local function next_piece(at, left, pinfo, tree)
    local half, tvb, captured = look.half, look.tvb, look.captured
    local pos = look.base == 0 and at or -look.base - at
    local i
    local may_wait = pinfo.can_desegment > 0 and not half.cut
    if look.visited then
        i = framing.find_record(look.frame, half.key, pos)
        if not i and half.cut then
            return framing.to_next_record(look.frame, half.key, pos) or left
        end
        if not i and half.sync ~= "found" then return left end
    elseif half.sync ~= "found" then
        local wanted
        i, wanted = framing.synchronise(pos, at, left, pinfo)
        if i == false then return nil, wanted end
    end
    if i and S.m_order[i] == GARBAGE then return garbage(i, at, left, tree) end
    if left < HEADER and not half.cut then return nil, DESEGMENT_ONE_MORE_SEGMENT end
    if captured - at < HEADER then
        half.sync = "lost"
        return left
    end
    local rest = captured - at
    local s = call.raw(tvb, at, rest < SIZE_SYN and rest or SIZE_SYN)
    local m = message_now
    m.tvb, m.at, m.payload, m.reason, m.begins, m.synack = tvb, at, 0, nil, nil, nil
    m.id, m.number, m.len = header(s, 1)
    m.size = size_of(m.id, m.len)
    if not m.size then
        if look.visited then return left end
        return garbage(framing.broken(half, look.frame, pos, left, m.len), at, left, tree)
    end
    local size = m.size
    if left < size then
        if may_wait then return nil, size - left end
        if not half.cut then
            tree:add_proto_expert_info(e.incomplete)
            return left
        end
        if not look.visited then half.skip = size - left end
        size = left
    end
    m.avail = m.size < rest and m.size or rest
    if m.id == 0 then s = tvb:raw(at, m.avail) end
    if #s > m.avail then s = s:sub(1, m.avail) end
    if m.len == LEN_FIN then m.reason = byte(s, HEADER + 1) end
    m.syn = m.len == LEN_SYN or m.id == 0 and m.len == m.size and byte(s, HEADER + 1) == OPEN
    if not look.visited then
        i = first_look(half, look.frame, pos, m, s, look.now)
        if options.in_detail and S.m_conn[i] then listing.note(i, m, look.now) end
    end
    if i then message(i, m, s, pinfo, tree) end
    return size
end

-- A data message as nearly all are: seen for the first time, whole, of a connection whose SYN is
-- known, the next of it or early, releasing nothing, and not to be shown. It needs few of the
-- questions that `next_piece` and `first_look` ask; what is recorded is the same. Returns the
-- message's size, or nil: ask them.
local function quick(at, left)
    local half, tvb, content = look.half, look.tvb, options.content
    if left <= HEADER + 1 or left > look.captured - at then return nil end
    local s, from = look.bytes, at
    if not s then s, from = call.raw(tvb, at, HEADER), 0 end
    local a, b, c, d, g, h, k, l = byte(s, from + 1, from + HEADER)
    local size, number = k + l * 256, c + d * 256 + g * 65536 + h * 16777216
    if size <= HEADER + 1 or size > left or size > LEN_DATA_MAX then return nil end
    local session = half.stream.session
    local slot = session.slots[a + b * 256]
    if not slot then return nil end
    local conn, up = slot.conn, half.up
    local lane = up and conn.up or conn.down
    local early = lane.next and number - lane.next or -1
    if early < 0 or early > AHEAD_MAX or early == 0 and lane.held[(number + 1) % CIRCLE]
        or lane.offset == 0
        or lane.seen[number] or lane.fin or conn.over
        or not conn.syn or lane.middle or not lane.pipes[half.stream]
        or session.extension or content and (lane.torn
            or conn.dst_port >= X11_FIRST and conn.dst_port <= X11_LAST)
        or slot.former and former_owns(slot.former, half, number, false, look.now) then
        return nil
    end
    local payload = size - HEADER
    local i = new_record(half, look.frame, look.base == 0 and at or -look.base - at, IN_ORDER)
    count_in_half(half, size, payload)
    count_in_lane(conn, lane, i, payload, look.now)
    local order = place(conn, lane, i, number, payload, nil, false, look.now)
    S.m_order[i] = order
    columns.tell(false, i, number, payload)
    if size < left and not look.bytes then look.bytes = call.raw(tvb, 0, look.captured) end
    s = look.bytes
    if not content or order == IN_ORDER and conn.nobody and not look.has_tree then return size end
    local bytes = s and s:sub(at + HEADER + 1, at + size) or call.raw(tvb, at + HEADER, payload)
    local offset = S.m_offset[i]
    if order == EARLY then
        store.hold(i, bytes)
    elseif due_now.count > 0 or not lane.body_end or not body.holds(lane, offset, bytes) then
        add_due(conn, lane, offset, bytes)
    end
    return size
end

local function dissect(half, tvb, captured, pinfo, tree)
    local length, frame, visited = call.reported_len(tvb), pinfo.number, pinfo.visited
    if look.frame ~= frame or look.visited ~= visited then
        begin_look(frame, visited, pinfo.abs_ts)
    end
    look.half, look.tvb, look.captured, look.base = half, tvb, captured, call.offset(tvb)
    look.bytes = nil             -- all of them, once there are several messages
    framing.most = half.stream.session.large and LEN_LARGE_MAX or LEN_DATA_MAX
    if (half.stream.sctp or half.stream.tls) and look.base == 0 then
        local most = half.stream.tls and framing.TLS_MAX or LEN_LARGE_MAX
        look.chunks = look.chunks + 1
        look.base = BEYOND_FRAMES + look.chunks * most
    end
    look.shown, look.has_tree = tree:referenced(tm3_dissector), tree.text ~= nil
    local may_be_quick = not visited and not look.shown and not half.hole and half.sync == "found"
        and not options.in_detail
    if captured < length then half.cut = true end
    local at = 0
    if half.skip and not visited then
        at = math.min(half.skip, length)
        half.skip = half.skip > at and half.skip - at or nil
    end
    while at < length do
        local size, want
        if may_be_quick then size = quick(at, length - at) end
        if not size then
            size, want = next_piece(at, length - at, pinfo, tree)
            if not size then
                pinfo.desegment_offset, pinfo.desegment_len = at, want
                break
            end
        end
        at = at + size
    end
    if columns.EARLY and told.count > 0 then
        local cols, text = pinfo.cols, columns.text()
        cols.info, cols.protocol = text, "TM³"
        look.told = look.told or text
    end
    return length, at
end

-- X11 has port 6000 as well. A stream that opens as it does is left to it.
local x11_dissector

-- With a key a pipe is TLS. What is in it comes back to us by "tls.port", record by record, if
-- Wireshark was given the file of --keylog; handshakes and alerts do not.
pipe.tls, pipe.in_tls, pipe.tls_ports = nil, false, nil

-- From now on this TCP connection is given to `pipe.proto`.
function pipe.follow(pinfo)
    pinfo.conversation = pipe.proto
end

function tm3.dissector(tvb, pinfo, tree)
    if not call.raw then call.learn_tvb(tvb) end
    local captured = call.len(tvb)
    if captured == 0 or nested and nested == pinfo.number then return 0 end
    local half = find_half(pinfo)
    local stream = half.stream
    if stream.mptcp or half.dark then return captured end
    if stream.tls == nil and not pinfo.visited then
        stream.tls = half.up and framing.opens_as_tls(tvb:raw(0, math.min(captured, 6)))
    end
    if stream.tls and not pipe.in_tls then
        pipe.in_tls, pinfo.can_desegment = true, 2
        local size = pipe.tls:call(tvb, pinfo, tree)
        pipe.in_tls = false
        return size
    end
    if stream.tls then return dissect(half, tvb, captured, pinfo, tree) end
    if stream.x11 == nil and not pinfo.visited then
        stream.x11 = half.up and framing.opens_as_x11(tvb:raw(0, math.min(captured, 4)))
        if stream.x11 then leave(stream) end
    end
    if stream.x11 and x11_dissector then
        pinfo.can_desegment = 2
        return x11_dissector:call(tvb, pinfo, tree)
    end
    if stream.x11 == false then pipe.follow(pinfo) end
    return dissect(half, tvb, captured, pinfo, tree)
end

-- Addresses are objects that have to be made and written as text. This is called for those TCP
-- connections only that were given to `tm3.dissector` before: if no others have their ports, they
-- are told by these.
function pipe.proto.dissector(tvb, pinfo, tree)
    if not call.raw then call.learn_tvb(tvb) end
    local captured = call.len(tvb)
    if captured == 0 or nested and nested == pinfo.number then return 0 end
    local half = pipe.known(pinfo.src_port, pinfo.dst_port) or find_half(pinfo)
    if half.stream.mptcp or half.dark then return captured end
    return dissect(half, tvb, captured, pinfo, tree)
end

-- A user message of an SCTP pipe is one message; a packet may bundle several. One that was put
-- together from several packets has no place of its own in the frame: it is told by its turn.
function pipe.chunk.dissector(tvb, pinfo, tree)
    if not call.raw then call.learn_tvb(tvb) end
    local captured = call.len(tvb)
    if captured == 0 or nested and nested == pinfo.number then return 0 end
    pipe.take_ppids()
    local half = pipe.of_sctp(tostring(pinfo.src), pinfo.src_port, tostring(pinfo.dst),
        pinfo.dst_port)
    half.sync = "found"
    return dissect(half, tvb, captured, pinfo, tree)
end

-- In the extension the PPID of a message is its count. Wireshark takes most up to 75 for
-- protocols, and asks these before it asks by port. From the first pipe of a capture on they are
-- asked through here; what is on other ports stays theirs.
local PPID_LAST = 255
local by_ppid = {} -- the dissectors that had them

function pipe.take_ppids()
    if next(by_ppid) then return end
    local ppids = DissectorTable.get("sctp.ppi")
    for ppid = 1, PPID_LAST do
        by_ppid[ppid] = ppids:get_dissector(ppid)
        if by_ppid[ppid] then ppids:add(ppid, pipe.counted) end
    end
end

function pipe.give_ppids_back()
    local ppids = DissectorTable.get("sctp.ppi")
    for ppid, dissector in pairs(by_ppid) do ppids:add(ppid, dissector) end
    by_ppid = {}
end
at_init[#at_init + 1] = pipe.give_ppids_back

function pipe.counted.dissector(tvb, pinfo, tree)
    if ports[pinfo.src_port] or ports[pinfo.dst_port]
        or pipe.between(tostring(pinfo.src), pinfo.src_port, tostring(pinfo.dst), pinfo.dst_port,
            true) then
        return pipe.chunk.dissector(tvb, pinfo, tree)
    end
    local other = by_ppid[pinfo.match_uint]
    return other and other:call(tvb, pinfo, tree) or 0
end

local function heuristic(tvb, pinfo, tree)
    if nested and nested == pinfo.number then return false end
    if not call.raw then call.learn_tvb(tvb) end
    local n = tvb:len()
    if n <= HEADER then return false end
    local to = tostring(pinfo.dst) .. ":" .. pinfo.dst_port
    local from = tostring(pinfo.src) .. ":" .. pinfo.src_port
    local known = S.endpoints[to] and "dst" or S.endpoints[from] and "src" or nil
    framing.most = LEN_DATA_MAX
    local hint = framing.opens_as_pipe(tvb:raw(0, math.min(n, 4 * LEN_DATA_MAX)), n, known)
    if not hint then return false end
    if hint == "lower" then hint = nil end
    local half = find_half(pinfo, hint)
    if half.stream.mptcp or half.dark then return true end
    half.stream.x11 = false
    pipe.follow(pinfo)
    dissect(half, tvb, n, pinfo, tree)
    return true
end

-- The TCP headers of pipes ------------------------------------------------------------

-- So many packets of a pipe may come before its SYN comes from another point.
wire.BEFORE_TWIN = 16
wire.IP_OFFSETS = { 14, 16, 20, 18, 0, 4, 22, 24 }

-- The TCP header if the IP header begins at `at`: sequence number, flags, payload bytes, addresses
-- and ports as they are written, options, and where the payload begins.
function wire.header_at(tvb, at, src_port, dst_port)
    local n = tvb:len() - at
    if n < 40 then return nil end
    local s = tvb:raw(at, math.min(n, 120))
    local first = byte(s, 1)
    local tcp, total
    if first >= 0x45 and first <= 0x4f and byte(s, 10) == 6 then
        tcp = (first - 0x40) * 4
        total = byte(s, 3) * 256 + byte(s, 4)
    elseif first >= 0x60 and first <= 0x6f and byte(s, 7) == 6 then
        tcp = 40
        total = byte(s, 5) * 256 + byte(s, 6)
        total = total > 0 and total + 40 or 0
    else
        return nil
    end
    if #s < tcp + 20 then return nil end
    local a, b, c, d, g, h, k, l = byte(s, tcp + 1, tcp + 8)
    if a * 256 + b ~= src_port or c * 256 + d ~= dst_port then return nil end
    if total == 0 then total = tvb:reported_len() - at end
    local data, flags = byte(s, tcp + 13, tcp + 14)
    local sequence = ((g * 256 + h) * 256 + k) * 256 + l
    local ends = s:sub(first < 0x60 and 13 or 9, tcp + 4)
    local size = floor(data / 16) * 4
    return sequence, flags, total - tcp - size, ends, s:sub(tcp + 21, tcp + size), at + tcp + size
end

function wire.header(tvb, src_port, dst_port)
    if not wire.header_at(tvb, S.ip_at, src_port, dst_port) then
        for _, at in ipairs(wire.IP_OFFSETS) do
            if wire.header_at(tvb, at, src_port, dst_port) then S.ip_at = at end
        end
    end
    return wire.header_at(tvb, S.ip_at, src_port, dst_port)
end

-- Is what comes now a retransmission, if what its sender sent later came at `since`? To be sent
-- again it takes a round trip; what was only overtaken comes sooner. On the subflows of MPTCP it
-- may be overtaken by as much as they differ.
function wire.is_resent(half, since, now)
    if half.stream.mptcp then return false end
    local round_trip = half.stream.round_trip
    return now - since >= (round_trip and round_trip / 2 or OVERTAKEN_SECONDS)
end

-- When did the first segment come that lies behind `sequence`, beyond a hole?
function wire.came_behind(half, sequence)
    local first
    for from, at in pairs(half.pending_at) do
        if ahead(from, sequence) > 0 and (not first or at < first) then first = at end
    end
    return first
end

-- A segment beyond a hole; `behind`: when one came that lies further behind.
function wire.beyond_hole(half, sequence, stop, behind, now)
    local had = half.pending[sequence]
    if had and ahead(stop, had) <= 0 or behind and wire.is_resent(half, behind, now) then
        half.resent = half.resent + 1
    else
        half.reordered = half.reordered + 1
    end
    if had and ahead(stop, had) <= 0 then return end
    if not half.hole then half.hole, half.hole_since = true, now end
    half.pending[sequence], half.pending_at[sequence] = stop, half.pending_at[sequence] or now
    if not half.furthest or ahead(sequence, half.furthest) > 0 then half.furthest = sequence end
end

-- The hole is filled to `half.tcp_next`: what follows it there without another is there as well.
function wire.fill_hole(half)
    local pending, at = half.pending, half.tcp_next
    while pending[at] do
        local stop = pending[at]
        pending[at], half.pending_at[at] = nil, nil
        at = stop
    end
    half.tcp_next, half.hole_since = at, nil
    for from, stop in pairs(pending) do
        if ahead(stop, at) <= 0 then
            pending[from], half.pending_at[from] = nil, nil
        elseif ahead(from, at) <= 0 then
            pending[from], half.pending_at[from] = nil, nil
            half.tcp_next = stop
            return wire.fill_hole(half)
        end
    end
    half.hole = next(pending) ~= nil
    half.hole_since = half.hole and wire.came_behind(half, at) or nil
    if not half.hole then half.furthest = nil end
end

-- What of a direction's TCP stream has arrived without a hole.
function wire.follow(half, sequence, length, now)
    if not half.tcp_next then half.tcp_next = sequence end
    local stop = (sequence + length) % CIRCLE
    if sequence == half.tcp_next and not half.hole then
        half.tcp_next = stop
        return
    end
    local behind = half.hole and ahead(half.furthest, sequence) > 0
        and wire.came_behind(half, sequence)
    if ahead(sequence, half.tcp_next) > 0 then
        wire.beyond_hole(half, sequence, stop, behind, now)
        return
    end
    if ahead(stop, half.tcp_next) <= 0 then
        half.resent = half.resent + 1
        return
    end
    if behind and wire.is_resent(half, behind, now) then half.resent = half.resent + 1 end
    half.tcp_next = stop
    if half.hole then wire.fill_hole(half) end
end

-- The message whose last byte was sent just before `stop` may have lain behind a hole of its pipe
-- that is filled now: when did it come?
function wire.came(half, stop)
    local sorted = half.sorted
    if not sorted or half.sorted_in ~= look.count then
        sorted = {}
        for from in pairs(half.pending) do sorted[#sorted + 1] = from end
        table.sort(sorted, function(a, b) return ahead(a, b) < 0 end)
        half.sorted, half.sorted_in = sorted, look.count
    end
    local low, high = 0, #sorted
    while low < high do
        local middle = floor((low + high + 1) / 2)
        if ahead(stop, sorted[middle]) > 0 then low = middle else high = middle - 1 end
    end
    local from = sorted[low]
    return from and ahead(stop, half.pending[from]) <= 0 and half.pending_at[from] or nil
end

function wire.is_watched(port)
    return ports[port] or S.watched[port]
end

-- Whose segment is it? A pipe opens with a SYN of LP.
function wire.find(pinfo, src_port, dst_port, sequence, opens)
    local src, dst = tostring(pinfo.src), tostring(pinfo.dst)
    local half = pipe.between(src, src_port, dst, dst_port)
    if opens and not (half and half.isn == sequence) then
        half = new_stream(src, src_port, dst, dst_port, true).up
        half.isn = sequence
    end
    return half
end

-- Was a packet of this kind seen, with the same number of its sender's (`id`, of IPv4)? What TCP
-- sends again has another number; so this is the same packet, captured at another point.
function wire.is_twin(half, id, rest)
    if id == "\0\0" then return false end
    local seen = half.packets or {}
    half.packets = seen
    if seen[id .. rest] then return true end
    seen[id .. rest] = true
    return false
end

-- LP's SYN again. Is the capture one of two points?
function wire.syn_again(half, tvb, pinfo, tree)
    local id = byte(call.raw(tvb, S.ip_at, 1), 1) < 0x60 and call.raw(tvb, S.ip_at + 4, 2)
    if half.syn_id and half.syn_id ~= "\0\0" and half.syn_id == id then
        half.stream.twice = true
        S.twins[pinfo.number] = true
        tree:add_proto_expert_info(e.twice)
        tree:add(f.expert).hidden = true
    end
    half.syn_id = id
end

-- A segment of a pipe that is known, without SYN, FIN and RST, its IPv4 header without options:
-- as nearly all are. True if it was one.
function wire.look_at_known(tvb, pinfo)
    local at = S.ip_at
    if call.len(tvb) < at + 40 then return false end
    local s = call.raw(tvb, at, 40)
    local half = S.by_ends[s:sub(13, 24)]
    if not half or half.stream.mptcp or half.stream.unsure then return false end
    local first, _, high, low, _, _, _, _, _, protocol = byte(s, 1, 10)
    local a, b, c, d, _, _, _, _, data, flags = byte(s, 25, 34)
    if first ~= 0x45 or protocol ~= 6 or flags % 8 ~= 0 or high + low == 0 then return false end
    if (half.stream.twice or half.frames < wire.BEFORE_TWIN)
        and wire.is_twin(half, s:sub(5, 6), s:sub(25, 34)) then
        return true
    end
    local payload = high * 256 + low - 20 - (data - data % 16) / 4
    half.frames = half.frames + 1
    half.wire = half.wire + call.reported_len(tvb)
    if payload > 0 then
        local sequence = a * 16777216 + b * 65536 + c * 256 + d
        if sequence == half.tcp_next and not half.hole then
            half.tcp_next = floor(sequence + payload) % CIRCLE
        else
            wire.follow(half, sequence, floor(payload), pinfo.abs_ts)
        end
    end
    if half.asked_at then
        half.stream.round_trip, half.asked_at = pinfo.abs_ts - half.asked_at, nil
    end
    return true
end

-- The chunk types of an SCTP packet; nil: it is none.
function wire.chunks(tvb, src_port, dst_port)
    for _, at in ipairs(wire.IP_OFFSETS) do
        local s = tvb:raw(at, math.max(0, math.min(tvb:len() - at, 1500)))
        local first = byte(s, 1) or 0
        local begin = first >= 0x45 and first <= 0x4f and byte(s, 10) == 132 and first % 16 * 4
            or first >= 0x60 and first <= 0x6f and byte(s, 7) == 132 and 40
        if begin and #s >= begin + 16 and be(s, begin + 1, 2) == src_port
            and be(s, begin + 3, 2) == dst_port then
            local types, from = {}, begin + 13
            while from + 3 <= #s do
                local size = be(s, from + 2, 2)
                types[byte(s, from)] = true
                if size < 4 then break end
                from = from + size + (4 - size % 4) % 4
            end
            return types
        end
    end
    return nil
end

-- An SCTP packet of a pipe: how it begins, how it ends, how much the wire carried.
function wire.look_at_sctp(tvb, pinfo, to_rp)
    local src_port, dst_port = pinfo.src_port, pinfo.dst_port
    local types = wire.chunks(tvb, src_port, dst_port)
    if not types then return end
    pipe.take_ppids()
    local src, dst = tostring(pinfo.src), tostring(pinfo.dst)
    local half = pipe.between(src, src_port, dst, dst_port, true)
    if types[SCTP.INIT] and to_rp and not (half and half.frames == 0) then
        half = new_stream(src, src_port, dst, dst_port, true, true).up
    end
    if not half then return end
    half.frames = half.frames + 1
    half.wire = half.wire + pinfo.len
    if types[SCTP.ABORT] or types[SCTP.SHUTDOWN] then wire.ends(half) end
end

-- A pipe that ends in baseline ends its session.
function wire.ends(half)
    half.stream.over = true
    local session = half.stream.session
    if session and not session.extension then session.over = true end
end

function wire.look(tvb, pinfo, tree)
    local src_port, dst_port = pinfo.src_port, pinfo.dst_port
    local to_rp = wire.is_watched(dst_port)
    if not to_rp and not wire.is_watched(src_port) then return end
    local sequence, flags, payload, ends, written = wire.header(tvb, src_port, dst_port)
    if not sequence then return wire.look_at_sctp(tvb, pinfo, to_rp) end
    local syn = floor(flags / TCP.SYN) % 2 == 1
    local options_of = mptcp.options(written)
    if syn and options_of[mptcp.JOIN] then
        return mptcp.join(tvb, pinfo, sequence, ends, options_of[mptcp.JOIN])
    end
    local half = S.by_ends[ends]
    if not half or syn then
        half = wire.find(pinfo, src_port, dst_port, sequence,
            syn and floor(flags / TCP.ACK) % 2 == 0 and to_rp)
        S.by_ends[ends] = half
    end
    if not half then return end
    local again = syn and half.syn_at == sequence
    if syn and half.up then wire.syn_again(half, tvb, pinfo, tree) end
    if again and half.stream.twice then return end
    half.frames = half.frames + 1
    half.wire = half.wire + pinfo.len
    if again then return end
    if syn then
        half.syn_at = sequence
        half.tcp_next = (sequence + 1) % CIRCLE
        half.begin = half.tcp_next
        -- From LP's SYN to its acknowledgement of RP's is one round trip, wherever it is captured.
        half.asked_at = half.up and pinfo.abs_ts or nil
        if options_of[mptcp.CAPABLE] then
            mptcp.offer(half, sequence, ends, options_of[mptcp.CAPABLE])
        end
        return
    end
    if half.stream.unsure and mptcp.jumps(half, options_of[mptcp.DSS]) then half.dark = true end
    if half.dark and payload > 0 then
        mptcp.say(pinfo, tree)
        return
    end
    if payload > 0 then wire.follow(half, sequence, payload, pinfo.abs_ts) end
    if flags % 2 == TCP.FIN or floor(flags / TCP.RST) % 2 == 1 then wire.ends(half) end
end

-- Pipes over MPTCP -------------------------------------------------------------------------

-- TCP puts together each subflow by itself, but the bytes of a pipe are spread over several. So
-- what TCP has put together is not dissected. The bytes are taken from the segments, get their
-- places by the option DSS, and are dissected in the frame in which they became due. The keys of
-- the first subflow tell which ones go together: who joins names the digest of one (RFC 8684).
mptcp = { OPTION = 30, CAPABLE = 0, JOIN = 1, DSS = 2, FASTCLOSE = 7, DARK = "dark", sha = {} }

-- The MPTCP options of a TCP header by their subtypes.
function mptcp.options(s)
    local found, at = {}, 1
    while at < #s do
        local kind, size = byte(s, at, at + 1)
        if kind == 0 then break end
        if kind == 1 then
            at = at + 1
        else
            if size < 2 then break end
            if kind == mptcp.OPTION and size >= 4 and at + size - 1 <= #s then
                found[floor(byte(s, at + 2) / 16)] = s:sub(at, at + size - 1)
            end
            at = at + size
        end
    end
    return found
end

-- Constants of SHA-256: of the fractions of roots of primes.
function mptcp.sha.constants()
    local sha, candidate = mptcp.sha, 2
    if sha.k then return sha end
    sha.k, sha.begin = {}, {}
    while #sha.k < 64 do
        local prime = true
        for divisor = 2, floor(candidate ^ 0.5) do
            if candidate % divisor == 0 then prime = false end
        end
        if prime then
            sha.k[#sha.k + 1] = sha.fraction(candidate, 3)
            if #sha.begin < 8 then sha.begin[#sha.begin + 1] = sha.fraction(candidate, 2) end
        end
        candidate = candidate + 1
    end
    return sha
end

-- The first 32 bits behind the point of the square or cube root of n.
function mptcp.sha.fraction(n, degree)
    local root = n ^ (1 / degree)
    return floor((root - floor(root)) * CIRCLE)
end

-- SHA-256 of a short string, as eight numbers.
function mptcp.digest(text)
    local sha, b = mptcp.sha.constants(), bit
    local padded = text .. "\128" .. rep("\0", 55 - #text) .. "\0\0\0\0" .. be32(#text * 8)
    local w = {}
    for i = 1, 16 do w[i] = be(padded, i * 4 - 3, 4) end
    for i = 17, 64 do
        local x, y = w[i - 15], w[i - 2]
        local s0 = b.bxor(b.ror(x, 7), b.ror(x, 18), b.rshift(x, 3))
        local s1 = b.bxor(b.ror(y, 17), b.ror(y, 19), b.rshift(y, 10))
        w[i] = (w[i - 16] + s0 + w[i - 7] + s1) % CIRCLE
    end
    local v = { table.unpack(sha.begin) }
    for i = 1, 64 do
        local a, x = v[1], v[5]
        local s1 = b.bxor(b.ror(x, 6), b.ror(x, 11), b.ror(x, 25))
        local choice = b.bxor(b.band(x, v[6]), b.band(b.bnot(x), v[7]))
        local t1 = v[8] + s1 + choice + sha.k[i] + w[i]
        local s0 = b.bxor(b.ror(a, 2), b.ror(a, 13), b.ror(a, 22))
        local most = b.bxor(b.band(a, v[2]), b.band(a, v[3]), b.band(v[2], v[3]))
        table.remove(v)
        table.insert(v, 1, (t1 + s0 + most) % CIRCLE)
        v[5] = (v[5] + t1) % CIRCLE
    end
    for i = 1, 8 do v[i] = (v[i] + sha.begin[i]) % CIRCLE end
    return v
end

-- A key: the token of who has it, and where the numbers of its bytes begin.
function mptcp.key(half, key)
    if half.mptcp then return end
    local digest = mptcp.digest(key)
    S.tokens[digest[1]] = half
    local begin = (digest[8] + 1) % CIRCLE
    half.mptcp = { begin = begin, next = begin, waiting = {}, rest = "" }
    half.tcp_next, half.begin = begin, begin
end

function mptcp.subflow(half, sequence, ends, first)
    S.subflows[ends] = { half = half, isn = sequence, maps = {}, first = first }
    S.by_ends[ends] = half
end

-- SYN of LP and that of RP, of a first subflow. Version 0 has other digests: nobody can tell then
-- what joins, and DSS tells only that something has.
function mptcp.offer(half, sequence, ends, option)
    local stream = half.stream
    mptcp.subflow(half, sequence, ends, true)
    if half.up then
        stream.offered, stream.unsure = true, byte(option, 3) % 16 ~= 1
    elseif stream.offered and not stream.unsure and #option >= 12 then
        stream.mptcp, S.has_mptcp = true, true
        mptcp.key(half, option:sub(5, 12))
    end
end

-- A stream of which nothing is known but that it is a subflow of something.
function mptcp.foreign(src, src_port, dst, dst_port)
    local stream = { mptcp = true }
    local key = src .. ":" .. src_port .. ">" .. dst .. ":" .. dst_port
    stream.up, stream.down = new_half(stream, key, true), new_half(stream, key, false)
    S.has_mptcp = true
    return stream
end

-- SYN of a subflow that joins, or of who answers it.
function mptcp.join(tvb, pinfo, sequence, ends, option)
    local src, dst = tostring(pinfo.src), tostring(pinfo.dst)
    local src_port, dst_port = pinfo.src_port, pinfo.dst_port
    local half
    if #option == 12 then
        -- The token is that of the one who is asked.
        local asked = S.tokens[be(option, 5, 4)]
        local stream = asked and asked.stream or mptcp.foreign(src, src_port, dst, dst_port)
        half = asked == stream.up and stream.down or stream.up
        local other = half.up and stream.down or stream.up
        pipe.set(src, src_port, dst, dst_port, half)
        pipe.set(dst, dst_port, src, src_port, other)
        if stream.session then stream.session.spread = true end
    else
        half = pipe.between(src, src_port, dst, dst_port)
        if not (half and half.stream.mptcp) then
            half = mptcp.foreign(src, src_port, dst, dst_port).up
            pipe.set(src, src_port, dst, dst_port, half)
            pipe.set(dst, dst_port, src, src_port, half.stream.down)
        end
    end
    mptcp.subflow(half, sequence, ends, false)
    half.frames, half.wire = half.frames + 1, half.wire + call.reported_len(tvb)
end

-- What a DSS says: number of the data, of the subflow, length; and whether it is the data's end.
function mptcp.mapping(option)
    local flags, at = byte(option, 4), 5
    local fin = floor(flags / 16) % 2 == 1
    if flags % 2 == 1 then at = at + (floor(flags / 2) % 2 == 1 and 8 or 4) end
    if floor(flags / 4) % 2 == 0 then return nil, nil, nil, fin end
    if floor(flags / 8) % 2 == 1 then at = at + 4 end
    if #option < at + 9 then return nil, nil, nil, fin end
    return be(option, at, 4), be(option, at + 4, 4), be(option, at + 8, 2), fin
end

-- Where other subflows are not known: were bytes sent on another one meanwhile?
function mptcp.jumps(half, option)
    if not option then return false end
    local number, from, size = mptcp.mapping(option)
    if not number or size == 0 or from == 0 then return false end
    local apart = (number - from) % CIRCLE
    local jumped = half.apart and half.apart ~= apart
    half.apart = apart
    return jumped
end

-- The place in the data of what begins at this sequence number of a subflow; nil: nobody knows.
function mptcp.place(sub, sequence, option)
    local maps, from = sub.maps, (sequence - sub.isn) % CIRCLE
    local number, first, size
    if option then number, first, size = mptcp.mapping(option) end
    if number and first ~= 0 then
        maps[#maps + 1] = { number = number, first = first, size = size > 0 and size or CIRCLE }
        if #maps > 64 then table.remove(maps, 1) end
    end
    for at = #maps, 1, -1 do
        local map = maps[at]
        local offset = ahead(from, map.first)
        if offset >= 0 and offset < map.size then return (map.number + offset) % CIRCLE end
    end
    -- The first bytes may come with the keys alone; or the peer has fallen back to TCP.
    if sub.first and #maps == 0 then return (sub.half.mptcp.begin + from - 1) % CIRCLE end
    return nil
end

-- Bytes have come that have this number. Returns those that are in order now, if any.
function mptcp.arrive(state, number, bytes)
    local d = ahead(state.next, number)
    if d < 0 then
        local had = state.waiting[number]
        if not had or #had < #bytes then state.waiting[number] = bytes end
        return nil
    elseif d >= #bytes then
        return nil
    end
    local parts, more = {}, bytes:sub(d + 1)
    while more do
        parts[#parts + 1] = more
        state.next = (state.next + #more) % CIRCLE
        more = nil
        for from, waiting in pairs(state.waiting) do
            local over = ahead(state.next, from)
            if over >= 0 then
                state.waiting[from] = nil
                if over < #waiting then
                    more = waiting:sub(over + 1)
                    break
                end
            end
        end
    end
    return concat(parts)
end

-- Messages of a pipe whose bytes came in several subflows. Returns where the last one ends.
function mptcp.dissect(half, text, pinfo, tree)
    local tvb = ByteArray.new(text, true):tvb("TM³ pipe over MPTCP")
    pinfo.can_desegment = 2
    local _, stop = dissect(half, tvb, #text, pinfo, tree)
    pinfo.desegment_len = 0
    return stop
end

-- These bytes are not read, and that is said.
function mptcp.say(pinfo, tree)
    S.mptcp_frames[pinfo.number] = mptcp.DARK
    tree:add_proto_expert_info(e.mptcp)
    tree:add(f.expert).hidden = true
end

function mptcp.segment(sub, tvb, from, sequence, payload, options_of, pinfo, tree)
    local half, state = sub.half, sub.half.mptcp
    local number = state and mptcp.place(sub, sequence, options_of[mptcp.DSS])
    half.dark = half.dark or not number or call.len(tvb) < from + payload
    if half.dark then return mptcp.say(pinfo, tree) end
    local bytes = mptcp.arrive(state, number, call.raw(tvb, from, payload))
    if bytes then
        local text = state.rest .. bytes
        local stop = mptcp.dissect(half, text, pinfo, tree)
        state.rest = text:sub(stop + 1)
        if stop > 0 then
            S.mptcp_frames[pinfo.number] = { half = half, text = text:sub(1, stop) }
        end
    end
    wire.follow(half, number, payload, pinfo.abs_ts)
end

-- A segment of a subflow: what it carries is dissected. False: it is none, or begins one.
function mptcp.take(tvb, pinfo, tree)
    if pinfo.visited then
        local seen = S.mptcp_frames[pinfo.number]
        if type(seen) == "table" then mptcp.dissect(seen.half, seen.text, pinfo, tree) end
        return false
    end
    local src_port, dst_port = pinfo.src_port, pinfo.dst_port
    if not wire.is_watched(src_port) and not wire.is_watched(dst_port) then return false end
    local sequence, flags, payload, ends, written, from = wire.header(tvb, src_port, dst_port)
    local sub = sequence and S.subflows[ends]
    if not sub or not sub.half.stream.mptcp or floor(flags / TCP.SYN) % 2 == 1 then
        return false
    end
    local half, options_of = sub.half, mptcp.options(written)
    half.frames, half.wire = half.frames + 1, half.wire + call.reported_len(tvb)
    if half.asked_at then
        half.stream.round_trip, half.asked_at = pinfo.abs_ts - half.asked_at, nil
    end
    local capable = options_of[mptcp.CAPABLE]
    if capable and #capable >= 20 then mptcp.key(half, capable:sub(5, 12)) end
    if payload > 0 then
        mptcp.segment(sub, tvb, from, sequence, payload, options_of, pinfo, tree)
    end
    local dss = options_of[mptcp.DSS]
    if dss and select(4, mptcp.mapping(dss)) or options_of[mptcp.FASTCLOSE] then wire.ends(half) end
    return true
end

-- What was not counted off with a piece at the first look is added at later ones.
function layer.make_up(lane, tvb, pinfo, tree, visited)
    if not layer.LEAKS then return end
    local calls = S.calls[look.frame]
    if not visited then
        if layer.calls == 0 or not look.has_tree then return end
        calls = calls or {}
        S.calls[look.frame], calls[lane] = calls, layer.calls
    elseif calls then
        for _ = layer.calls + 1, calls[lane] or 0 do layer.raising:call(tvb, pinfo, tree) end
    end
end

-- Where the pipes of a session have several addresses, what they carry has those of the first one:
-- TCP would take it for several connections.
local function ends_of(session, up)
    local first = session.pipes[1]
    local make = first.lp:find(":", 1, true) and Address.ipv6 or Address.ip
    local near, far = make(first.lp), make(first.rp)
    if up then return near, far end
    return far, near
end

-- Hands on what became due in this frame.
local function hand_on_all(tvb, pinfo, tree, visited, after)
    local src_port, dst_port = pinfo.src_port, pinfo.dst_port
    local nothing, failed = tvb:range(0, 0):tvb(), nil
    local src, dst
    layer.act, layer.pinfo, layer.tree, layer.visited = hand_on_piece, pinfo, tree, visited
    for at = 1, due_now.count do
        local piece = due_now[at]
        layer.piece, layer.calls = piece, 0
        if piece.conn.session.spread then
            src, dst = src or pinfo.src, dst or pinfo.dst
            pinfo.src, pinfo.dst = ends_of(piece.conn.session, piece.lane.up)
        end
        call_tcp(layer.inside, nothing, pinfo, tree)
        failed = failed or layer.failed
        layer.make_up(piece.lane, tvb, pinfo, tree, visited)
        if after then after(at < due_now.count, piece.conn) end
    end
    pinfo.src_port, pinfo.dst_port = src_port, dst_port
    if src then pinfo.src, pinfo.dst = src, dst end
    if failed then error(failed, 0) end
end

-- What is fenced in front of the info column's text, of a tunnel or of TCP's analysis. Where a
-- frame begins a message that it does not end, TCP has fenced what stood there: its own words on
-- the segment, or (4.4) those that are about to be written. These go, as do SCTP's on its chunks.
function columns.in_front(info, text)
    info:clear()
    local before = tostring(info)
    if before == "" then return before end
    local own = before:find(look.told or text, 1, true)
        or before:find("%S+ → %S+ %[[%u, ]*%] Seq=") or before:find("%u[%u_]+ %([^)]*=")
    if not own then return before end
    before = before:sub(1, own - 1)
    info:clear_fence()
    info:set(before)
    info:fence()
    return before
end

-- Writes the columns: what the messages are and, behind it, what the dissectors of their content
-- say.
function columns.write(cols, info, tvb, pinfo, tree, visited)
    local protocol, own
    local text = columns.text()
    local before = columns.in_front(info, text)
    if due_now.count > 0 then
        hand_on_all(tvb, pinfo, tree, visited, function(more, conn)
            protocol = protocol or cols.protocol
            local inner = tostring(protocol)
            if inner ~= "TCP" and inner ~= "SCTP" and inner ~= "TM³" then
                own, conn.unread = "TM³/" .. inner, nil
                text = text .. " | " .. tostring(info):sub(#before + 1):gsub("^[,%s]+", "")
            end
            info:clear_fence()
            if not more then return end
            info:set(before)
            info:fence()
            protocol:set("TM³")
        end)
    end
    if before ~= "" and before:sub(-1) ~= " " then before = before .. "; " end
    info:clear_fence()
    info:set(before .. text)
    cols.protocol = own or "TM³"
end

function columns.finish(tvb, pinfo, tree, visited)
    local cols = pinfo.cols
    local info = cols.info
    if tostring(info) ~= NO_INFO then
        columns.write(cols, info, tvb, pinfo, tree, visited)
    elseif due_now.count > 0 then
        hand_on_all(tvb, pinfo, tree, visited)
    end
end

function inside.dissector(tvb, pinfo, tree)
    if not call.raw then call.learn_tvb(tvb) end
    local visited
    local over_mptcp = S.has_mptcp and mptcp.take(tvb, pinfo, tree)
    if told.count > 0 and pinfo.number == look.frame then
        visited = look.visited
        due_now.join()
        if due_now.count > 0 and not visited then body.gather() end
        columns.finish(tvb, pinfo, tree, visited)
    else
        visited = pinfo.visited
    end
    end_look()
    if visited then
        if S.twins[pinfo.number] then
            tree:add_proto_expert_info(e.twice)
            tree:add(f.expert).hidden = true
        end
        if S.mptcp_frames[pinfo.number] == mptcp.DARK then mptcp.say(pinfo, tree) end
    elseif not over_mptcp and not wire.look_at_known(tvb, pinfo) then
        wire.look(tvb, pinfo, tree)
    end
end

-- Statistics --------------------------------------------------------------------------

local stats = {}

-- The value below which a share of the sorted values lies (nearest rank).
function stats.percentile(sorted, share)
    if #sorted == 0 then return nil end
    local rank = math.ceil(share * #sorted)
    return sorted[rank < 1 and 1 or rank]
end

-- Reorder delays (`wait`) of delivered messages and delays inside the pipe's TCP (`held`) of all
-- of them, sorted, of each of these: connections, directions of connections and of pipes.
function stats.delays()
    local delays = setmetatable({}, { __index = function(all, key)
        local new = { wait = {}, held = {} }
        all[key] = new
        return new
    end })
    local function add(key, name, value)
        local list = delays[key][name]
        list[#list + 1] = value
    end
    for i = 1, S.n do
        local conn, half, order = S.m_conn[i], S.m_half[i], S.m_order[i]
        if conn then
            local lane = half.up and conn.up or conn.down
            local delivered = order == IN_ORDER or order == LATE or order == LATE_RESENT
                or order == EARLY and S.m_fill[i] > 0
            for _, key in ipairs({ conn, lane, half }) do
                if delivered then add(key, "wait", order == EARLY and S.m_wait[i] or 0) end
                add(key, "held", S.m_held[i])
            end
        end
    end
    for _, each in pairs(delays) do
        table.sort(each.wait)
        table.sort(each.held)
    end
    return delays
end

function stats.delay_of(sorted)
    local ms = {}
    for _, share in ipairs({ 50, 75, 99 }) do
        local value = stats.percentile(sorted, share / 100)
        ms["p" .. share] = value and value * 1000 or nil
    end
    ms.max = sorted[#sorted] and sorted[#sorted] * 1000 or nil
    return ms
end

function stats.end_of(conn)
    if conn.over then
        local by = conn.by_up and "local" or "remote"
        return by .. (conn.how == FIN_RESET and "-reset" or "-fin")
    end
    return #conn.fins > 0 and "fin-waits" or "open"
end

function stats.way_of(half, total, delays)
    return {
        reorder_ms = stats.delay_of(delays[half].wait), held_ms = stats.delay_of(delays[half].held),
        messages = half.messages, payload_bytes = half.payload, message_bytes = half.bytes,
        wire_bytes = half.wire, frames = half.frames,
        share = total > 0 and half.payload / total or 0,
        efficiency = half.wire > 0 and half.payload / half.wire or nil,
        tcp_resent = not half.stream.sctp and half.resent or nil,
        tcp_out_of_order = not half.stream.sctp and half.reordered or nil,
    }
end

function stats.pipe_rows()
    local rows, delays = {}, stats.delays()
    for _, session in ipairs(S.sessions) do
        local up, down = 0, 0
        for _, stream in ipairs(session.pipes) do
            up, down = up + stream.up.payload, down + stream.down.payload
        end
        for _, stream in ipairs(session.pipes) do
            local payload = stream.up.payload + stream.down.payload
            local frames = stream.up.wire + stream.down.wire
            rows[#rows + 1] = {
                session = session.number, pipe = stream.number,
                carrier = stream.sctp and "sctp" or stream.mptcp and "mptcp" or "tcp",
                captured_twice = stream.twice and 1 or nil,
                lp = stream.lp .. ":" .. stream.lp_port, rp = stream.rp .. ":" .. stream.rp_port,
                up = stats.way_of(stream.up, up, delays),
                down = stats.way_of(stream.down, down, delays),
                share = up + down > 0 and payload / (up + down) or 0,
                efficiency = frames > 0 and payload / frames or nil,
            }
        end
    end
    return rows
end

function stats.lane_row(lane, delays)
    return {
        messages = lane.messages, payload_bytes = lane.payload, duplicates = lane.copies,
        pipes = lane.pipe_count, waiting = lane.held_count,
        reorder_ms = stats.delay_of(delays[lane].wait), held_ms = stats.delay_of(delays[lane].held),
    }
end

function stats.connection_rows()
    local rows, delays = {}, stats.delays()
    for _, conn in ipairs(S.conns) do
        local pipes, count = {}, 0
        for _, lane in ipairs({ conn.up, conn.down }) do
            for stream in pairs(lane.pipes) do
                if not pipes[stream] then
                    pipes[stream] = true
                    count = count + 1
                end
            end
        end
        if conn.up.messages + conn.down.messages > 0 then
            rows[#rows + 1] = {
                index = conn.index, session = conn.session.number, id = conn.id, dst = conn.dst,
                syn_frame = conn.syn_frame, pipes = count,
                up = stats.lane_row(conn.up, delays), down = stats.lane_row(conn.down, delays),
                reorder_ms = stats.delay_of(delays[conn].wait),
                held_ms = stats.delay_of(delays[conn].held),
                first_byte_ms = conn.answered and conn.syn_time
                    and (conn.answered - conn.syn_time) * 1000 or nil,
                duration_s = (conn.over or conn.last) - conn.began,
                ["end"] = stats.end_of(conn),
            }
        end
    end
    return rows
end

function stats.json_string(text)
    return '"' .. text:gsub('[%c"\\]', function(c)
        return format("\\u%04x", byte(c))
    end) .. '"'
end

-- Numbers that are whole are written so by every Lua.
function stats.json_number(n)
    if n == floor(n) and n < 1e15 then return format("%d", floor(n)) end
    return format(n < 1e6 and "%.9g" or "%.6f", n)
end

function stats.json(value)
    if type(value) == "number" then return stats.json_number(value) end
    if type(value) == "string" then return stats.json_string(value) end
    local parts = {}
    if #value > 0 or next(value) == nil then
        for _, each in ipairs(value) do parts[#parts + 1] = stats.json(each) end
        return "[" .. concat(parts, ",\n ") .. "]"
    end
    local keys = {}
    for key in pairs(value) do keys[#keys + 1] = key end
    table.sort(keys)
    for _, key in ipairs(keys) do
        parts[#parts + 1] = stats.json_string(key) .. ": " .. stats.json(value[key])
    end
    return "{" .. concat(parts, ", ") .. "}"
end

-- What the dissector itself holds: payload that waits for gaps, and that of closed ones.
function stats.memory()
    return {
        messages = S.n, held_bytes = S.held_bytes, held_bytes_max = S.held_bytes_max,
        kept_bytes = S.kept_bytes, kept_bytes_max = S.kept_bytes_max,
    }
end

function stats.as_json()
    return '{"format": 1, "pipes": ' .. stats.json(stats.pipe_rows()) .. ',\n"connections": '
        .. stats.json(stats.connection_rows()) .. ',\n"memory": ' .. stats.json(stats.memory())
        .. ',\n"segments_made": ' .. stats.json(S.segments_made) .. "}\n"
end

-- A table of text: left-aligned if the heading begins with "<". Widths count characters.
function stats.characters(text)
    return select(2, text:gsub("[^\128-\191]", ""))
end

function stats.text_table(title, headings, rows)
    local widths = {}
    for column, heading in ipairs(headings) do
        widths[column] = stats.characters((heading:gsub("^<", "")))
        for _, row in ipairs(rows) do
            widths[column] = math.max(widths[column], stats.characters(row[column]))
        end
    end
    local lines = { title, rep("-", stats.characters(title)) }
    local function line(cells)
        local parts = {}
        for column, cell in ipairs(cells) do
            local fill = rep(" ", widths[column] - stats.characters(cell))
            parts[column] = headings[column]:sub(1, 1) == "<" and cell .. fill or fill .. cell
        end
        lines[#lines + 1] = (concat(parts, "  "):gsub("%s+$", ""))
    end
    local plain = {}
    for column, heading in ipairs(headings) do plain[column] = heading:gsub("^<", "") end
    line(plain)
    for _, row in ipairs(rows) do line(row) end
    if #rows == 0 then lines[#lines + 1] = "(none)" end
    return concat(lines, "\n") .. "\n"
end

-- The same table; for a narrow window as two, each with the columns that are named for it.
function stats.split_table(title, headings, rows, parts)
    if not parts then return stats.text_table(title, headings, rows) end
    local tables = {}
    for _, chosen in ipairs(parts) do
        local some, cells = {}, {}
        for at, column in ipairs(chosen) do some[at] = headings[column] end
        for number, row in ipairs(rows) do
            cells[number] = {}
            for at, column in ipairs(chosen) do cells[number][at] = row[column] end
        end
        tables[#tables + 1] = stats.text_table(title, some, cells)
    end
    return concat(tables, "\n")
end

function stats.percent(share) return share and format("%.1f %%", share * 100) or "-" end
function stats.ms(value) return value and format("%.3f", value) or "-" end
function stats.whole(n) return n and format("%d", n) or "-" end

function stats.pipes_table(narrow)
    local rows = {}
    for _, row in ipairs(stats.pipe_rows()) do
        for _, way in ipairs({ "up", "down" }) do
            local w = row[way]
            rows[#rows + 1] = {
                stats.whole(row.session), stats.whole(row.pipe), way == "up" and "↑" or "↓",
                row.lp .. (way == "up" and " → " or " ← ") .. row.rp,
                stats.whole(w.messages), stats.whole(w.payload_bytes), stats.whole(w.wire_bytes),
                stats.percent(w.share), stats.percent(w.efficiency),
                stats.whole(w.tcp_out_of_order), stats.whole(w.tcp_resent),
                stats.ms(w.reorder_ms.p75), stats.ms(w.reorder_ms.max), stats.ms(w.held_ms.p75),
                stats.ms(w.held_ms.max),
            }
        end
    end
    local parts = narrow and { { 1, 2, 3, 4 }, { 1, 2, 3, 5, 6, 7, 8, 9 },
        { 1, 2, 3, 10, 11, 12, 13, 14, 15 } }
    return stats.split_table("TM³ pipes", { "session", "pipe", "<", "<LP and RP", "messages",
        "payload", "on the wire", "share", "efficiency", "out of order", "resent", "wait p75",
        "max ms", "held p75", "max ms" }, rows, parts)
        .. "share: of the session's payload in this direction; efficiency: payload of all bytes "
        .. "of its frames, acknowledgements included;\nwait: in the receiver's reorder queue; "
        .. "held: in the pipe's own TCP, behind a segment that was missing\n"
end

function stats.connections_table(narrow)
    local rows = {}
    for _, row in ipairs(stats.connection_rows()) do
        rows[#rows + 1] = {
            stats.whole(row.index), stats.whole(row.session), stats.whole(row.id), row.dst or "?",
            stats.whole(row.up.payload_bytes), stats.whole(row.down.payload_bytes),
            stats.whole(row.up.messages), stats.whole(row.down.messages), stats.whole(row.pipes),
            stats.ms(row.reorder_ms.p50), stats.ms(row.reorder_ms.p75),
            stats.ms(row.reorder_ms.p99), stats.ms(row.held_ms.max), stats.ms(row.first_byte_ms),
            stats.whole(row.up.waiting + row.down.waiting), format("%.6f", row.duration_s),
            row["end"],
        }
    end
    local parts = narrow and { { 1, 2, 3, 4, 5, 6, 7, 8 }, { 1, 9, 10, 11, 12, 13, 14 },
        { 1, 15, 16, 17 } }
    return stats.split_table("TM³ connections", { "index", "session", "id", "<destination",
        "bytes ↑", "bytes ↓", "messages ↑", "messages ↓", "pipes", "wait p50", "p75", "p99 ms",
        "held max", "first byte ms", "gap open", "seconds", "<end" }, rows, parts)
        .. "wait: in the receiver's reorder queue; held: in a pipe's own TCP, behind a segment "
        .. "that was missing;\nfirst byte: from the SYN to the first byte of the answer that was "
        .. "due; gap open: messages that still wait at the end\n"
end

function stats.as_text()
    return stats.pipes_table() .. "\n" .. stats.connections_table()
end

-- One row a message -------------------------------------------------------------------------

listing.CSV, listing.JSON_LINES, listing.ALL = 3, 4, 5
listing.NAMES = { "frame", "time", "session", "pipe", "direction", "connection", "id", "number",
        "type", "bytes", "offset", "order", "wait_s", "held_s", "filled_by", "destination" }

-- What is known of message i, by the names above; without what does not apply.
function listing.of(i)
    local half, conn, order = S.m_half[i], S.m_conn[i], S.m_order[i]
    if not conn or not S.seen[i] then return nil end
    local row, seen = {}, S.seen[i]
    row.frame, row.time, row.session = S.m_frame[i], seen.time, half.stream.session.number
    row.pipe, row.direction = half.stream.number, half.up and "up" or "down"
    row.connection, row.id, row.number = conn.index, conn.id, seen.number
    row.type, row.bytes, row.order = seen.type, seen.bytes, ORDER[order]
    row.destination = conn.dst
    local waited = order == EARLY and S.m_fill[i] > 0
    if waited or order == IN_ORDER or order == LATE or order == LATE_RESENT then
        row.offset, row.wait_s = S.m_offset[i], waited and S.m_wait[i] or 0
    end
    row.held_s = S.m_held[i]
    if waited then row.filled_by = S.m_frame[S.m_fill[i]] end
    return row
end

function listing.value(value)
    if type(value) == "number" then return stats.json_number(value) end
    value = value or ""
    return value:find('[,"]') and '"' .. value:gsub('"', '""') .. '"' or value
end

function listing.csv()
    local lines = { concat(listing.NAMES, ",") }
    for i = 1, S.n do
        local row = listing.of(i)
        local cells = {}
        for at, name in ipairs(listing.NAMES) do cells[at] = row and listing.value(row[name]) end
        if row then lines[#lines + 1] = concat(cells, ",") end
    end
    return concat(lines, "\n") .. "\n"
end

function listing.json_lines()
    local lines = {}
    for i = 1, S.n do
        local row = listing.of(i)
        if row then lines[#lines + 1] = stats.json(row) end
    end
    lines[#lines + 1] = ""
    return concat(lines, "\n")
end

-- Following a connection ----------------------------------------------------------------------

-- All frames of the connection are looked at again, one after the other. The window keeps what was
-- found: its buttons show the same when another capture is open, or more of this one has come.
function follow.show(index)
    local tap = Listener.new("frame", format("tm3.stream == %d", index))
    follow.begin()
    follow.index, follow.again = index, true
    retap_packets()
    local title, pieces = follow.title(index), follow.pieces
    follow.begin()
    tap:remove()
    local window = TextWindow.new(format("TM³ connection %d", index))
    window:set(follow.text(title, pieces))
    window:add_button("As text", function() window:set(follow.text(title, pieces)) end)
    window:add_button("In hex", function() window:set(follow.text(title, pieces, true)) end)
end

function follow.title(index)
    if not index then return "TM³ connection: no number that tm3.stream has" end
    local conn = S.conns[index + 1]
    return format("TM³ connection %.0f to %s", index, conn and conn.dst or "?")
end

-- As readable text; `hex`: each piece in hex, the answers indented, as tshark's own follow,tcp,raw.
function follow.text(title, pieces, hex)
    local lines = { title }
    for _, piece in ipairs(pieces) do
        if hex then
            local raw = piece.bytes:gsub(".", function(c) return format("%02x", byte(c)) end)
            lines[#lines + 1] = (piece.up and "" or "\t") .. raw
        else
            lines[#lines + 1] = format("%s frame %d, %d bytes", piece.up and "↑" or "↓",
                piece.frame, #piece.bytes)
            lines[#lines + 1] = (piece.bytes:gsub("\r\n", "\n"):gsub("[^\9\10\32-\126]", "."))
        end
    end
    return concat(lines, "\n") .. "\n"
end

-- Registration --------------------------------------------------------------------------

local report     -- the listener that prints at the end of tshark

local function print_statistics()
    local mode = options.statistics
    if mode == STATISTICS_TABLE then
        io.stdout:write(stats.as_text())
    elseif mode == STATISTICS_JSON then
        io.stdout:write(stats.as_json())
    elseif mode == listing.CSV then
        io.stdout:write(listing.csv())
    elseif mode == listing.JSON_LINES then
        io.stdout:write(listing.json_lines())
    elseif mode == listing.ALL then
        io.stdout:write(stats.as_json(), listing.json_lines())
    end
    if options.follow ~= "" then
        io.stdout:write(follow.text(follow.title(follow.index), follow.pieces, true))
    end
    io.stdout:flush()
end

local function set_report()
    local wanted = (options.statistics ~= STATISTICS_OFF or options.follow ~= "")
        and not gui_enabled()
    if wanted and not report then
        report = Listener.new("frame")
        report.draw = print_statistics
    elseif not wanted and report then
        report:remove()
        report = nil
    end
end

tcp_ports, sctp_ports = DissectorTable.get("tcp.port"), DissectorTable.get("sctp.port")
tcp_dissector = Dissector.get("tcp")
call_tcp = tcp_dissector.call
pipe.tls_ports, pipe.tls = DissectorTable.get("tls.port"), Dissector.get("tls")
x11_dissector = tcp_ports:get_dissector(6000)
tm3_dissector = Dissector.get("tm3")
inside_dissector = Dissector.get("tm3_stream")
layer.raising, layer.inside = Dissector.get("tm3_layer"), Dissector.get("tm3_within")

-- The ports of a range preference, and the range as it is written.
local function ports_of(range)
    local set = {}
    for from, to in tostring(range):gmatch("(%d+)%-?(%d*)") do
        for port = tonumber(from), tonumber(to) or tonumber(from) do set[port] = true end
    end
    return set
end

local set_ports
do
    local registered = ""
    local displaced = {} -- port -> the dissector that had it before us

    function set_ports()
        local range = tostring(tm3.prefs.ports)
        if range == registered then return end
        if registered ~= "" then
            tcp_ports:remove(registered, tm3)
            sctp_ports:remove(registered, pipe.chunk)
            pipe.tls_ports:remove(registered, tm3)
        end
        for port, dissector in pairs(displaced) do tcp_ports:add(port, dissector) end
        ports, displaced = ports_of(range), {}
        for port in pairs(ports) do displaced[port] = tcp_ports:get_dissector(port) end
        if range ~= "" then
            tcp_ports:add(range, tm3)
            sctp_ports:add(range, pipe.chunk)
            pipe.tls_ports:add(range, tm3)
        end
        registered = range
    end
end

function tm3.prefs_changed()
    read_options()
    follow.index = tonumber(options.follow)
    set_ports()
    set_report()
end

read_options()
set_ports()
tcp_ports:add_for_decode_as(tm3)
sctp_ports:add_for_decode_as(pipe.chunk)
tm3:register_heuristic("tcp", heuristic)
register_postdissector(inside)

local function in_window(title, make)
    return function()
        local window = TextWindow.new(title)
        window:set(make(true))
        window:add_button("As text", function() window:set(make(true)) end)
        window:add_button("As JSON", function() window:set(stats.as_json()) end)
    end
end

if gui_enabled() then
    local menu = MENU_STAT_UNSORTED or MENU_PACKET_STAT_UNSORTED or MENU_TOOLS_UNSORTED
    register_menu("TM³ pipes", in_window("TM³ pipes", stats.pipes_table), menu)
    register_menu("TM³ connections", in_window("TM³ connections", stats.connections_table), menu)
    register_menu("Follow TM³ connection", function()
        new_dialog("Follow TM³ connection", function(index)
            if tonumber(index) then follow.show(tonumber(index)) end
        end, "Connection index (tm3.stream)")
    end, MENU_TOOLS_UNSORTED)
    if register_packet_menu then
        register_packet_menu("Follow TM³ connection", function(...)
            for _, field in ipairs({ ... }) do
                if field.name == "tm3.stream" then return follow.show(field.value) end
            end
        end, "tm3.stream")
    end
end
