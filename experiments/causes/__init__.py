# SPDX-License-Identifier: MIT
"""Causes by which a published figure may differ from ours, each a law that both are held to.

A claim names the laws that bear on it (`Claim.causes`). What a law says is worked out from the
parameters of the runs and from what they measured, when a report is written: what it expects of
ours, whether that is what was measured, and what the published value would take by the same law.
"""
