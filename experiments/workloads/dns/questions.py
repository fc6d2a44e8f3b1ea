# SPDX-License-Identifier: MIT
"""Queries by their number, and what an answer must be."""

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype

from experiments.workloads.dns import zone
from experiments.workloads.dns.failure import WrongAnswer

HEAD_BYTES = 12  # of a message; less is none


def query(number: int) -> bytes:
    return _asked(number).to_wire()


def _asked(number: int) -> dns.message.QueryMessage:
    return dns.message.make_query(zone.name(number), dns.rdatatype.A, id=number)


def answered(wire: bytes) -> int:
    """The number of the query that this answers, right in all. Raises WrongAnswer."""
    if len(wire) < HEAD_BYTES:
        raise WrongAnswer(f"an answer of {len(wire)} bytes is no DNS message")
    number = int.from_bytes(wire[:2])
    try:
        answer = dns.message.from_wire(wire)
    except dns.exception.DNSException as error:
        raise WrongAnswer(f"the answer with id {number} cannot be read: {error}") from None
    if answer.flags & dns.flags.TC:
        raise WrongAnswer(f"the answer with id {number} is cut short (TC)")
    if not _asked(number).is_response(answer):
        raise WrongAnswer(f"the answer with id {number} is to another question")
    if answer.rcode() != dns.rcode.NOERROR:
        raise WrongAnswer(
            f"the answer with id {number} is {dns.rcode.to_text(answer.rcode())}, not an address"
        )
    told = [rdata.to_text() for rrset in answer.answer for rdata in rrset]
    if told != [zone.address(number)]:
        raise WrongAnswer(f"the answer with id {number} is {told}, not {zone.address(number)}")
    return number
