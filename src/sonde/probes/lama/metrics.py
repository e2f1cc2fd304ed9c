"""The numbers that LAMA reports."""

from __future__ import annotations

from sonde.core.reports import Metric

P1 = Metric("p_at_1", "P@1", "percent", "share of facts whose first answer is right")
PK = Metric("p_at_{k}", "P@{k}", "percent", "share of facts right among the first {k} answers")
MRR = Metric("mrr", "MRR", "number", "mean of 1/rank of the correct answer")
MAJORITY = Metric(
    "control.majority.p_at_1",
    "majority",
    "percent",
    "P@1 of always answering the commonest object",
    better="",
)
ABOVE = Metric(
    "above_control.p_at_1",
    "above",
    "percent",
    "P@1 minus the majority control's, paired by fact; from −1 to 1",
)
UHN = Metric(
    "uhn.p_at_1",
    "UHN P@1",
    "percent",
    "P@1 over the facts that UHN keeps: the name does not give the answer away",
)
UHN_MRR = Metric("uhn.mrr", "UHN MRR", "number", "MRR over the facts that UHN keeps")

METRICS = (P1, PK, MRR, MAJORITY, ABOVE, UHN, UHN_MRR)
