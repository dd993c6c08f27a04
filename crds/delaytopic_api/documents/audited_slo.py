"""The figures of an audit, as audits tell them to the operator: the status shows the first of them alone."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from delaytopic_api.documents.status import RecordCount, SloStatus, StatusPart


class AuditedBurnRate(StatusPart):
    """The speed at which the error budget was spent over some time."""

    window: Annotated[str, Field(max_length=28)]
    """The length of the window, such as 1h."""
    rate: Annotated[str, Field(max_length=32)]
    """The rate as a multiple of the allowed one: 1 spends exactly the budget."""
    bad: RecordCount = 0
    """The number of records that were late or lost."""


class AuditedObjective(StatusPart):
    """One objective over the window that was audited."""

    name: Annotated[str, Field(max_length=32)]
    """The objective's name: Timely, Complete, Unique, NotEarly, Told, or that of a threshold, such as Timely-100ms."""
    objective: Annotated[str | None, Field(max_length=16)] = None
    """The share of records that has to be good, such as 99.9%."""
    attainment: Annotated[str | None, Field(max_length=16)] = None
    """The share of records that was good, such as 99.95%; absent when nothing was due."""
    bad: RecordCount = 0
    """The number of records that were not good."""
    newly_bad: RecordCount | None = None
    """Records that were not good, and that the audit before knew nothing of. The operator counts them; of an objective
    below 100% it does not."""
    budget_left_percent: Annotated[str | None, Field(max_length=32)] = None
    """The share of the error budget of a threshold that is left; of slo.lateness it is the field of this name below."""
    budget_exhausted_at: AwareDatetime | None = None
    """The time at which the error budget of a threshold is spent."""
    burn_rates: Annotated[list[AuditedBurnRate], Field(max_length=8)] | None = None
    """The burn rates of a threshold's error budget that alerts look at, shortest window first."""
    counts_from: AwareDatetime | None = None
    """The time from which on a threshold counts that was added later: what was due before was graded without it, and
    does not count."""


class AuditedFaults(StatusPart):
    """Records that broke an objective of 100% and were due within one hour."""

    hour: AwareDatetime
    """The start of the hour."""
    objective: Annotated[str, Field(max_length=32)]
    """The name of the objective that was broken."""
    records: RecordCount
    """The number of records that broke it."""


MOST_FAULTY_HOURS = 12
"""The number of `AuditedFaults` that an audit lists: the verdict has to fit into the termination message of a pod."""


class AuditedSlo(SloStatus):
    """The last audit, with what metrics and the audit after it need."""

    window_end: AwareDatetime | None = None
    """The end of the time that is graded."""
    records: RecordCount | None = None
    """The number of records that asked for something to happen within the window."""
    lateness_p50: Annotated[str | None, Field(alias="latenessP50")] = None
    """The lateness that half of the records did not exceed, such as 12ms."""
    lateness_p999: Annotated[str | None, Field(alias="latenessP999")] = None
    """The lateness that 999 of 1000 records did not exceed, such as 200ms."""
    budget_exhausted_at: AwareDatetime | None = None
    """The time at which the error budget is spent, if records go on being late or lost at the present pace; absent when
    it lasts for the objective's own window."""
    objectives: Annotated[list[AuditedObjective], Field(max_length=8)] | None = None
    """The objectives that are promised, each graded apart."""
    burn_rates: Annotated[list[AuditedBurnRate], Field(max_length=8)] | None = None
    """The burn rates of the error budget, the shortest window first."""
    faults: Annotated[list[AuditedFaults], Field(max_length=MOST_FAULTY_HOURS)] | None = None
    """Hours in which an objective of 100% was broken, latest first; of older ones, if there are more, nothing is
    said."""

    def shown(self) -> SloStatus:
        """Return the part that `status.slo` has."""
        return SloStatus.model_validate(self.to_document())
