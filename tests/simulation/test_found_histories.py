"""Histories that once broke a promise, as short as they got; each says what it showed."""

from __future__ import annotations

import pytest
from tests.simulation.faults import Fault, What
from tests.simulation.hunting import wrong_with
from tests.simulation.plans.families import PLANS
from tests.simulation.plans.plan import (
    Accept,
    Arm,
    BacklogCopied,
    BacklogRolledBack,
    BacklogWiped,
    Edit,
    Pass,
    Plan,
    Produce,
    Recipe,
    RuleSet,
    SetClock,
    Setup,
    SourceChanged,
    Stop,
)

SET_BACK_IN_A_TICK = Plan(
    Setup(shards=2, transactional=False, delay_ms=30_000),
    (
        Produce((Recipe(partition=0), Recipe(partition=1))),
        Pass(7_000),
        Pass(7_000),
        Pass(1_000),
        Pass(7_000),
        SetClock(0, wrong_ms=8_500, drift_permille=0),
        Arm(0, Fault("produce", 1, What.FREEZE, length_ms=700)),
        Pass(0),
    ),
)
"""The clock was ahead when the tick asked what is due, and right again when the second shard's records were sent: their
receipts said that they had left before their time. What is due and what the receipt says must be one reading."""

SAME_POSITION_ON_TWO_TIMELINES = Plan(
    Setup(),
    (
        Produce((Recipe(at_ms=1_000_012_000),)),
        Pass(0),
        Pass(0),
        Pass(1_000),
        BacklogCopied(),
        BacklogWiped(),
        Pass(1_000),
        Produce((Recipe(at_ms=1_000_020_000),)),
        Pass(0),
        BacklogRolledBack(),
    ),
)
"""A relay claimed the backlog twice under the same token: after a wipe it came to the position (token, counter, offset)
that an older copy had, too. That copy was restored, and nobody noticed that it lacked a record. Each claim needs a
token of its own."""

FENCED_AND_BACK = Plan(
    Setup(session_ms=1_000, deaf_ms=3_000, backends="B"),
    (
        Produce((Recipe(due_ms=0),)),
        Pass(0),
        Pass(0),
        Arm(0, Fault("offsets", 1, What.FREEZE, length_ms=1_050)),
        Pass(100),
        Produce((Recipe(due_ms=150_000, name=b"a"),)),
        Pass(0),
        Arm(0, Fault("flush", 1, What.CRASH)),
        Pass(1_000),
        Pass(100),
        Produce((Recipe(name=b"a", cancel=True),)),
        Produce((Recipe(due_ms=1),)),
        Pass(100),
        Pass(0),
        Pass(0),
        Pass(100),
        Produce((Recipe(at_ms=1_000_020_001, value=b"too large"),)),
    ),
)
"""A relay fenced the former owner, lost the shard to it, and got it back after that one had died with a transaction
open, under the same name. It fenced a name only once in its life: the transaction stayed open, what is known of ids
could not be read behind it, and a record was delivered that had been cancelled."""

RULES_BEGUN_BESIDE_REDIS = Plan(
    Setup(shards=2, relays=2, session_ms=1_000, deaf_ms=3_000, backends="RRB", rules=RuleSet(8_640_000_000, 150_000)),
    (
        Pass(0),
        Edit(RuleSet(1_000, None, ids=False)),
        Arm(0, Fault("poll", 1, What.FREEZE, length_ms=2_500)),
        Pass(0),
        Pass(1_000),
        Produce((Recipe(partition=1, due_ms=20_000),)),
    ),
)
"""A relay with bucket topics began edited rules, by which a record became a dead letter. A frozen relay of before put
the same record into Redis, which nobody had claimed; and the next relay with Redis delivered it from there."""

BEHIND_ABORTED_RECORDS = Plan(
    Setup(chunk=16, backends="B"),
    (
        Produce(tuple(Recipe() for _ in range(10))),
        Pass(0),
        Pass(100),
        Pass(100),
        SourceChanged("cut", 0.5),
        Accept(),
        Produce((Recipe(),), commits=False),
        Pass(0),
        Pass(100),
        Stop(0),
        Pass(100),
    ),
)
"""A log was cut, which was accepted, and an aborted transaction was the first thing of the epoch that followed. The
next relay found its position behind these records, and the epoch of the last one that was read in front of them: it
took the log for cut once more, and delivered all of it again."""

READ_AGAIN_BY_TWO = Plan(
    Setup(backends="B"),
    (
        Pass(0),
        Produce((Recipe(), *(Recipe(due_ms=20_000) for _ in range(8)))),
        Pass(7_000),
        Pass(0),
        SourceChanged("cut", 0.9),
        Produce((Recipe(due_ms=45_000),)),
        SourceChanged("set"),
        Accept(),
        Pass(0),
        Pass(0),
    ),
)
"""A tool set the offset, repeats were accepted, and the relay that read all again ended on the way. It had committed
the offset of the tool as its position, and beside it the leader epoch of what it had read so far: to the next one the
log looked cut in between."""

NOTHING_BUT_ABORTED_RECORDS = Plan(
    Setup(backends="B"),
    (Pass(0), SourceChanged("cut", 0.9), Produce((Recipe(),), commits=False, open_ms=100), Pass(100)),
)
"""A relay passed aborted records of an otherwise empty log, after a cut that had taken nothing. The check believed that
it had passed them before, and looked for what followed in the log as it had been."""

SET_BY_A_TOOL_AND_CUT = Plan(
    Setup(),
    (
        Pass(0),
        Produce((Recipe(due_ms=12_000, name=b"b"), Recipe(due_ms=45_000, name=b"b"))),
        Pass(0),
        SourceChanged("set"),
        SourceChanged("cut", 0.6),
    ),
)
"""A tool set the offset, and then the log was cut below it. The next relay went on where the log ended, and left out
what a record had replaced that was no longer there."""

CUT_AND_GROWN_BY_ABORTED_RECORDS = Plan(
    Setup(precision_ms=10),
    (
        Pass(0),
        Produce((Recipe(due_ms=-1),)),
        Pass(0),
        Pass(10),
        SourceChanged("cut", 0.9),
        Produce((Recipe(due_ms=20_000),), commits=False),
    ),
)
"""The only record of a log was cut away, and aborted records grew beyond where it had been. The next relay read none of
them, and went on in a log that no longer had what it had delivered."""

FOUND = {
    "set-back": SET_BACK_IN_A_TICK,
    "two-timelines": SAME_POSITION_ON_TWO_TIMELINES,
    "fenced-and-back": FENCED_AND_BACK,
    "rules-beside-redis": RULES_BEGUN_BESIDE_REDIS,
    "behind-aborted": BEHIND_ABORTED_RECORDS,
    "behind-aborted-with-redis": BEHIND_ABORTED_RECORDS._replace(setup=Setup(chunk=16)),
    "read-again-by-two": READ_AGAIN_BY_TWO,
    "nothing-but-aborted": NOTHING_BUT_ABORTED_RECORDS,
    "set-and-cut": SET_BY_A_TOOL_AND_CUT,
    "grown-by-aborted": CUT_AND_GROWN_BY_ABORTED_RECORDS,
}


@pytest.mark.parametrize("plan", FOUND.values(), ids=FOUND)
def test_a_history_that_once_broke_a_promise_breaks_none(plan: Plan) -> None:
    assert wrong_with(plan) == []


SEEDS = {
    3244: "KafkaBuckets",
    143314: "RedisZset",
    8311: "Redelivery",
    910123: "RedisZset",
    910570: "Identity",
    1002501: "Identity",
    1002570: "IdentityBuckets",
    1002856: "Clocks",
    1002922: "Targets",
    1003148: "Trouble",
    1001896: "Identity",
    1300154: "Recurrence",
    268: "RecurrenceBuckets",
    729: "Recurrence",
    3000331: "Recurrence",
    3003325: "Recurrence",
}
"""3244: Kafka refused a batch without telling which record it was. Records went one by one for five seconds, and
reading up to the refused one again took longer: each time it was refused without a name once more, and its shard stood
still. 143314: so many due times that coming to rest took more turns than were waited for. 8311: a message was put
off, came back and was redelivered; the next one of its id, read in the same chunk, no longer knew of a third that
waited in the backlog, which was delivered in the end though both had replaced it. 910123: the coordinator of these
histories did not know a name that was to be taken late, and ended by a commit under it. 910570: a relay remembered that
Kafka had refused a record, lost the partition, and made a dead letter of what was at that offset when the log had been
cut, which was accepted. 1002501: the offsets were lost, which was accepted, and the log was cut before its next record
came: no relay knew in which leader epoch it had been, and took what followed for what it had delivered. 1002570: a
record was delivered of a log that was cut meanwhile, and what followed at its offset was aborted: the check took it for
nobody's. 1002856: the producer of these histories carried a late commit out under the id that it had taken meanwhile,
and ended a transaction before its offsets were in it. 1002922: a look at topics told of none that had always answered,
so that one which was blamed by mistake was waited for without end. 1003148: an entry that was never committed came
with what was loaded, and was to be written as it had been; with memory full nothing was read or delivered, no tick
began in which it could have been, and until it was nothing more was loaded. 1001896: the offsets were lost, which was
accepted, and the backlog went on: what it knew of a cancel was taken for what a tick had left behind, as nothing was
committed, and the record was delivered. 1300154: a withdrawal had the same rank as an occurrence that was on its way
behind it; when it was read that was taken to be read, too, so that the cancel which had ended it was told by nobody,
and those to come would not have read it. 268: an occurrence was on its way when a cancel came, and rules that refuse it
began in front of it; a relay that took over did not look ahead for what is refused, made a dead letter of it, and
nobody told of the cancel. 729: a relay that took over forgot former rules before it had looked ahead; the floor passed
a cancel that had ended an occurrence on its way, and the next relay delivered that. 3000331, 3003325: an occurrence
that left twice was followed by different slots, as its policy for missed ones said at either time, and the check took
for lost what the chain that went on had passed over."""


@pytest.mark.parametrize(("seed", "backend"), SEEDS.items())
def test_a_seed_that_once_broke_a_promise_breaks_none(seed: int, backend: str) -> None:
    assert wrong_with(PLANS[backend](seed)) == []
