# SPDX-License-Identifier: MIT
"""Each handshake with a key has an exchange of keys of its own, and nothing is left of it.

So who gets the key later on cannot read what was recorded before; and what was recorded, said
again, leads nowhere: nothing is said before the handshake is done (0-RTT), and there is no ticket
to come back with.
"""

import base64
import hashlib
import hmac
import os
import struct
from pathlib import Path

from tests.relay import wire_ext
from tests.relay.keyed import Keys, encrypting, keys, with_psk
from tests.relay.netns import Namespace
from tests.relay.programs import finish
from tests.relay.proxies import remote_proxy

__all__ = ["encrypting", "keys"]  # fixtures; the first skips where there is no OpenSSL

ALPN = ("-alpn", "tm3/1")
SUITE = b"\x13\x01"  # TLS_AES_128_GCM_SHA256
# RFC 8446, 4.2: extensions by their numbers.
GROUPS, ALPNS, PRE_SHARED, EARLY, VERSIONS, MODES, SHARE = 10, 16, 41, 42, 43, 45, 51
PSK_ALONE, WITH_DHE = 0, 1
X25519 = 29
ALERT, HANDSHAKE, SERVER_HELLO = 21, 22, 2
DIGEST = 32


def openssl(box: Namespace, tmp: Path, *args: str) -> str:
    """What OpenSSL's own client does and hears until rp, told something else than HELLO, closes."""
    nonsense = tmp / "nonsense"
    nonsense.write_bytes(bytes(100))
    argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{wire_ext.PORT}", *ALPN]
    _, out, err = finish([*argv, "-groups", "X25519", "-ign_eof", *args], box, 20, nonsense)
    return out + err


def test_keys_are_exchanged_and_no_ticket_comes(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """With a client that would do without an exchange."""
    psk = with_psk(keys.psk(), "-allow_no_dhe_kex")
    with remote_proxy(box, tmp_path, *keys.rp) as rp:
        said = openssl(box, tmp_path, "-brief", "-msg", *psk)
        rp.expect("it began with something else than HELLO")
    assert "CONNECTION ESTABLISHED" in said and "<<< TLS 1.3, Handshake" in said, said
    assert "Temp Key: X25519" in said, said
    assert "NewSessionTicket" not in said, said


# --- a client that does as no library's would ---


def sized(size: int, data: bytes) -> bytes:
    return len(data).to_bytes(size, "big") + data


def extension(number: int, data: bytes) -> bytes:
    return struct.pack("!H", number) + sized(2, data)


def expanded(secret: bytes, label: bytes, context: bytes) -> bytes:
    """HKDF-Expand-Label (RFC 8446, 7.1) of one digest's length."""
    info = struct.pack("!H", DIGEST) + sized(1, b"tls13 " + label) + sized(1, context) + b"\1"
    return hmac.digest(secret, info, "sha256")


def client_hello(psk: str, mode: int) -> bytes:
    """A ClientHello of a key alone, with a right proof of it; in a record."""
    exchange = b""
    if mode == WITH_DHE:
        point = struct.pack("!H", X25519) + sized(2, os.urandom(32))
        exchange = extension(GROUPS, sized(2, struct.pack("!H", X25519)))
        exchange += extension(SHARE, sized(2, point))
    offered = sized(2, sized(2, b"laptop") + bytes(4))
    proof = DIGEST + 3
    others = [
        extension(VERSIONS, sized(1, b"\x03\x04")),
        extension(ALPNS, sized(2, sized(1, b"tm3/1"))),
        extension(MODES, sized(1, bytes([mode]))),
        exchange,
        struct.pack("!HH", PRE_SHARED, len(offered) + proof) + offered,
    ]
    extensions = b"".join(others)
    said = b"\x03\x03" + os.urandom(32) + sized(1, b"") + sized(2, SUITE) + sized(1, b"\0")
    said += struct.pack("!H", len(extensions) + proof) + extensions
    said = b"\1" + (len(said) + proof).to_bytes(3, "big") + said
    early = hmac.digest(bytes(DIGEST), bytes.fromhex(psk), "sha256")
    binder = expanded(early, b"ext binder", hashlib.sha256().digest())
    finished = expanded(binder, b"finished", b"")
    proved = hmac.digest(finished, hashlib.sha256(said).digest(), "sha256")
    return b"\x16\x03\x01" + sized(2, said + sized(2, sized(1, proved)))


def answer(box: Namespace, psk: str, mode: int) -> bytes:
    with box.connect(("127.0.0.1", wire_ext.PORT)) as sock:
        sock.sendall(client_hello(psk, mode))
        return sock.recv(4096)


def test_a_key_alone_is_not_enough(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """A client that has the key, and offers no exchange (psk_ke), is refused."""
    with remote_proxy(box, tmp_path, *keys.rp) as rp:
        heard = answer(box, keys.psk(), WITH_DHE)
        assert (heard[0], heard[5]) == (HANDSHAKE, SERVER_HELLO), heard
        assert struct.pack("!4H", SHARE, 4 + 32, X25519, 32) in heard, heard
        heard = answer(box, keys.psk(), PSK_ALONE)
        assert heard[0] == ALERT and len(heard) == 7, heard
        rp.expect("a pipe from .* was closed: TLS with a key did not come about")


def der(tag: int, data: bytes) -> bytes:
    assert len(data) < 128
    return bytes([tag, len(data)]) + data


def early_session(psk: str) -> str:
    """The key as a session of OpenSSL's client that lets it speak at once."""
    whole = der(2, b"\1") + der(2, b"\x03\x04")
    texts = [der(4, it) for it in (SUITE, b"", bytes.fromhex(psk))]
    may = der(0xAF, der(2, b"\x40\x00")) + der(0xB0, der(4, b"tm3/1"))
    text = base64.encodebytes(der(0x30, whole + b"".join(texts) + may)).decode()
    return "-----{0} {2}-----\n{3}-----{1} {2}-----\n".format(
        "BEGIN", "END", "SSL SESSION PARAMETERS", text
    )


def test_nothing_is_heard_before_the_handshake_is_done(
    box: Namespace, tmp_path: Path, keys: Keys
) -> None:
    session, early = tmp_path / "session.pem", tmp_path / "early"
    session.write_text(early_session(keys.psk()))
    early.write_bytes(b"said at once")
    known = ("-tls1_3", "-psk_session", str(session), "-psk_identity", "laptop")
    with remote_proxy(box, tmp_path, *keys.rp) as rp:
        said = openssl(box, tmp_path, *known, "-early_data", str(early))
        rp.expect("it began with something else than HELLO")
    assert "Early data was rejected" in said, said
