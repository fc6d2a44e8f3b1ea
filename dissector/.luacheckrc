-- SPDX-License-Identifier: MIT
std = "lua52+lua54"
max_line_length = 100
read_globals = {
    "Proto", "ProtoField", "ProtoExpert", "Pref", "Dissector", "DissectorTable", "ByteArray",
    "Address", "NSTime", "UInt64", "Listener", "TextWindow", "base", "expert", "frametype",
    "DESEGMENT_ONE_MORE_SEGMENT", "MENU_STAT_UNSORTED", "MENU_PACKET_STAT_UNSORTED",
    "MENU_TOOLS_UNSORTED", "bit", "get_version", "gui_enabled", "register_menu",
    "register_postdissector", "new_dialog", "register_packet_menu", "retap_packets",
    "set_plugin_info",
}
