"""What every probe with written answers says of those that hold no answer. Knows no probe.

Answers that abstain are counted apart from wrong ones, and shown where there are any. Where most
answers are empty, the first finding says so and what to try, and nothing is concluded from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sonde.core.reports import Estimate, Headline, Table
from sonde.core.words import counted, listed
from sonde.metrics.abstention import ABSTAINED, ABSTENTION, RIGHT_WHEN_ANSWERED, abstention
from sonde.metrics.estimates import RELATIONS
from sonde.metrics.judged import Bools, Judged
from sonde.reporting.build.parts import headline
from sonde.reporting.build.tables import by_place, titled

SILENT = "Mostly empty, so that nothing is concluded from them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstentions:
    """What a probe adds to its report: estimates and a count always, the rest where any abstain."""

    estimates: dict[str, Estimate]
    counts: dict[str, int]
    headlines: tuple[Headline, ...] = ()
    tables: tuple[Table, ...] = ()
    findings: tuple[str, ...] = ()


def abstentions(
    judged: Judged, seed: int, *, over: str = RELATIONS, written: Bools | None = None
) -> Abstentions:
    """Of all prompts, or of those that were `written`; `over`: which means stand at the top."""
    estimates = abstention(judged, seed, over, written)
    silent = 0 if judged.abstained is None else int(judged.abstained.sum())
    total = len(judged.grid) if written is None else int(written.sum())
    counts = {"abstained_answers": silent}
    if not silent:
        return Abstentions(estimates=estimates, counts=counts)
    label = "Right among answers that do not abstain"
    places = {"all": over} | {titled(r): f"relation.{r.id}" for r in judged.relations}
    return Abstentions(
        estimates=estimates,
        counts=counts,
        headlines=(
            headline(ABSTAINED.named("Answers that say the model does not know"), over),
            headline(RIGHT_WHEN_ANSWERED.named(label), over),
        ),
        tables=(
            by_place(
                estimates, places, ABSTENTION, head="relation", id="abstained",
                title="Answers that abstain", note="An answer that is right does not abstain.",
            ),
        ),
        findings=(_told(silent, total, estimates[RIGHT_WHEN_ANSWERED.at(over)]),),
    )  # fmt: skip


def _told(silent: int, total: int, right: Estimate) -> str:
    say = counted(silent, "answer says", "answers say")
    rest = "" if right.value is None else f"; of the others {right.value:.1%} are right on average"
    return f"{say} that the model does not know, of {total:,}{rest}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Some written answers: what they are called, how many there are and how many are empty."""

    what: str
    empty: int
    total: int

    @property
    def mostly_empty(self) -> bool:
        """Whether nothing can be concluded from them."""
        return 2 * self.empty > self.total


def nothing_said(answers: Iterable[Written], attempts: Sequence[str]) -> str:
    """The finding about answers that are mostly empty; nothing where none are.

    `attempts`: settings that may help.

    >>> nothing_said([Written(what="answers", empty=9, total=9)], ["--set frame=qa"])
    'Mostly empty, so that nothing is concluded from them: answers (9 of 9). Try --set frame=qa.'
    """
    silent = [each for each in answers if each.mostly_empty]
    if not silent:
        return ""
    sizes = listed([f"{each.what} ({each.empty:,} of {each.total:,})" for each in silent])
    hint = f" Try {' and '.join(attempts)}." if attempts else ""
    return f"{SILENT}: {sizes}.{hint}"


def unconcluded(line: Headline) -> Headline:
    """A headline without its control, for answers that say nothing."""
    return replace(line, control="", control_label="", difference="")
