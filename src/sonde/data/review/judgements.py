"""What reviewers are shown, what they say of it, and the dataset that is left of what they keep.

They are shown a template with a fact in it, never the dataset. They say whether to keep it, and
answer the four questions of the paper's quality scale with 0 or 1. The file of judgements only
grows, a line each; a line `undo` takes back the reviewer's last one about the template, and those
before it stand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sonde.core.errors import DataError, TemplateError
from sonde.core.facts import Dataset, Relation, Template, facts_of
from sonde.core.fingerprints import draw_key
from sonde.data.lines import Row, append_rows, whole_rows

SAMPLE = 200
"""Templates of a dataset whose quality is judged, in the paper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A template to be judged; `sources` are the datasets that have it, which nobody is shown.

    `shown` is what a model sees, a subject in its place; `answer` is right there; `parent` is the
    text of the template that a paraphrase was made from.
    """

    id: str
    relation: str
    label: str
    text: str
    shown: str
    answer: str
    parent: str
    sources: tuple[str, ...]


def items_of(datasets: Sequence[Dataset], n: int | None = None, seed: int = 0) -> list[Item]:
    """The templates of one dataset in its order; n of each, drawn and mixed, where n is given.

    Templates of several datasets are always mixed. A text that two of them have is judged once.
    """
    mixed = n is not None or len(datasets) > 1
    items: dict[tuple[str, str], Item] = {}
    for dataset in datasets:
        pairs = {(r.id, t.text): (r, t) for r in dataset.relations for t in r.templates}
        keyed = {pair: draw_key(seed, f"{dataset.name}:{'|'.join(pair)}") for pair in pairs}
        for pair in sorted(pairs, key=keyed.__getitem__)[:n] if mixed else pairs:
            first = items.get(pair) or _item(dataset, *pairs[pair], seed)
            sources = dict.fromkeys((*first.sources, dataset.name))
            items[pair] = replace(first, sources=tuple(sources))
    if not mixed:
        return list(items.values())
    return sorted(items.values(), key=lambda item: draw_key(seed, f"order:{item.id}"))


def item_id(relation: str, text: str) -> str:
    """What judgements call a template: its relation and its words."""
    return f"{relation}|{text}"


def _item(dataset: Dataset, relation: Relation, template: Template, seed: int) -> Item:
    """A template with some fact of the relation in it."""
    frame = dataset.frame(relation.id)
    row = draw_key(seed, template.text) % max(frame.height, 1)
    shown, answer = template.text, ""
    for fact in facts_of(frame[row : row + 1]):
        answer = " / ".join(entity.name for entity in fact.objects)
        with suppress(TemplateError):  # the fact lacks what the template takes from it
            shown = "___".join(template.fill(fact.subject.name, fact))
    others = {t.id: t.text for t in relation.templates if t.id != template.id}
    return Item(
        id=item_id(relation.id, template.text),
        relation=relation.id,
        label=relation.label,
        text=template.text,
        shown=shown,
        answer=answer,
        parent=others.get(template.group, ""),
        sources=(),
    )


QUESTIONS = ("fluent", "template_in_relation", "relation_in_template", "overlap")
KEEP = "keep"

Ask = Literal["keep", "quality", "both"]
Scale = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one reviewer says of one template: to keep it or not, the answers to `QUESTIONS`."""

    item: str
    reviewer: str
    sources: tuple[str, ...]
    keep: bool | None = None
    answers: Scale | None = None

    def covers(self, ask: Ask) -> bool:
        """Whether everything that is asked is answered."""
        return (self.keep is not None or ask == "quality") and (
            self.answers is not None or ask == "keep"
        )


def implied(answers: Sequence[int]) -> tuple[int, ...]:
    """Answers with what follows from them: where one contains the other, they overlap.

    >>> implied([1, 0, 1]), implied([1, 0, 0])
    ((1, 0, 1, 1), (1, 0, 0))
    """
    given = tuple(answers)
    return (*given, 1) if len(given) == 3 and any(given[1:]) else given


def read_judgements(path: Path) -> list[Judgement]:
    """The judgements that stand, in order, those taken back left out.

    What a reviewer says of a template twice is joined: a later word counts, silence does not.
    """
    standing: dict[tuple[str, str], Judgement] = {}
    for new in _said(path):
        before = standing.pop((new.reviewer, new.item), None)
        standing[new.reviewer, new.item] = _joined(before, new) if before else new
    return list(standing.values())


def _said(path: Path) -> list[Judgement]:
    """The lines of a file that were not taken back."""
    said: list[Judgement] = []
    for row in whole_rows(path):
        who = row.text("reviewer" if "reviewer" in row.values else "annotator")
        if not row.values.get("undo"):
            said.append(_judgement(row, who))
            continue
        about = (who, row.text("item"))
        lines = reversed(range(len(said)))
        last = next((n for n in lines if (said[n].reviewer, said[n].item) == about), None)
        if last is not None:
            del said[last]
    return said


def _joined(before: Judgement, new: Judgement) -> Judgement:
    keep = before.keep if new.keep is None else new.keep
    return replace(new, keep=keep, answers=new.answers or before.answers)


def _judgement(row: Row, reviewer: str) -> Judgement:
    keep = row.values.get(KEEP)
    if keep is not None and type(keep) is not bool:
        raise row.fault(f"'{KEEP}' must be true or false", keep)
    answers = answers_of([row.values.get(question) for question in QUESTIONS])
    if isinstance(answers, str):
        raise row.fault(answers, [row.values.get(question) for question in QUESTIONS])
    if keep is None and answers is None:
        raise row.fault(f"'{KEEP}' or {', '.join(QUESTIONS)} must be there", None)
    return Judgement(
        item=row.text("item"),
        reviewer=reviewer,
        sources=row.texts("sources"),
        keep=keep,
        answers=answers,
    )


def answers_of(given: Sequence[Any]) -> Scale | str | None:
    """Four answers, None where there are none, or a text that says what is wrong with them.

    >>> answers_of([1, 0, 1, 1]), answers_of([None] * 4), answers_of([1, 1, 0, 0])
    ((1, 0, 1, 1), None, "'overlap' must be 1 where one contains the other")
    """
    if all(answer is None for answer in given):
        return None
    if any(type(answer) is not int or answer not in (0, 1) for answer in given):
        return f"{', '.join(QUESTIONS)} must each be 0 or 1"
    fluent, inside, around, overlap = given
    if (inside or around) and not overlap:
        return "'overlap' must be 1 where one contains the other"
    return fluent, inside, around, overlap


def append(path: Path, judgement: Judgement, *, undo: bool = False) -> None:
    """Write one more line: a judgement, or that it is taken back."""
    line: dict[str, Any] = {"item": judgement.item, "reviewer": judgement.reviewer}
    if undo:
        append_rows(path, line | {"undo": True})
        return
    line["sources"] = list(judgement.sources)
    if judgement.keep is not None:
        line[KEEP] = judgement.keep
    if judgement.answers is not None:
        line |= dict(zip(QUESTIONS, judgement.answers, strict=True))
    append_rows(path, line)


class Session:
    """One reviewer at work: what is to be judged, and what stands, on disk as in memory."""

    def __init__(self, path: Path, reviewer: str, items: Sequence[Item], ask: Ask) -> None:
        self.path, self.reviewer, self.items, self.ask = path, reviewer, items, ask
        self._by_id = {item.id: item for item in items}
        self.done = self._standing()

    def _standing(self) -> dict[str, Judgement]:
        """What the file says of these templates, the last word last."""
        return {
            j.item: j
            for j in read_judgements(self.path)
            if j.reviewer == self.reviewer and j.item in self._by_id and j.covers(self.ask)
        }

    @property
    def left(self) -> list[Item]:
        """What is not judged yet."""
        return [item for item in self.items if item.id not in self.done]

    def judge(self, item: str, keep: bool | None, answers: Scale | None) -> None:
        """Keep a judgement; it counts before one about the same template."""
        sources = self._by_id[item].sources
        judgement = Judgement(
            item=item, reviewer=self.reviewer, sources=sources, keep=keep, answers=answers
        )
        append(self.path, judgement)
        self.done.pop(item, None)  # the last one is the first to be taken back
        self.done[item] = judgement

    def undo(self, item: str = "") -> None:
        """Take a judgement back, the last one unless another is named; nothing where none is.

        What was said of the template before stands again.
        """
        item = item or next(reversed(self.done), "")
        if item in self.done:
            append(self.path, self.done[item], undo=True)
            self.done = self._standing()


Rule = Literal["majority", "all", "any"]
Votes = Mapping[str, Sequence[bool]]
"""What every reviewer said of a template, by item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The dataset with what was kept, and what became of its templates.

    `counts` has kept, dropped, split (reviewers differ) and unjudged templates; `lost` are
    relations that kept none and are left out.
    """

    dataset: Dataset
    counts: Counter[str]
    lost: tuple[str, ...]
    reviewers: int


def apply(
    dataset: Dataset, judgements: Sequence[Judgement], rule: Rule, *, unjudged: bool | None = None
) -> Applied:
    """What reviewers keep of a dataset; where they differ, a rule decides.

    A template that nobody judged is kept or not as `unjudged` says; where it says nothing, it is
    told. By majority, as many for as against is against.
    """
    votes = _votes(judgements)
    if unjudged is None:
        _refuse_unjudged(dataset, votes)
    counts: Counter[str] = Counter()
    relations = [_thinned(r, votes, rule, bool(unjudged), counts) for r in dataset.relations]
    lost = tuple(r.id for r in relations if not r.templates)
    if len(lost) == len(relations):
        raise DataError(f"nothing of {dataset.name!r} was kept; look at what was judged")
    reviewed = replace(
        dataset,
        relations=tuple(r for r in relations if r.templates),
        notes={**dataset.notes, "templates_dropped_in_review": counts["dropped"]},
        fingerprint="",
    )
    reviewers = len({j.reviewer for j in judgements if j.keep is not None})
    return Applied(dataset=reviewed, counts=counts, lost=lost, reviewers=reviewers)


def dropped(judgements: Iterable[Judgement], rule: Rule) -> frozenset[str]:
    """The items that reviewers do not keep."""
    return frozenset(item for item, said in _votes(judgements).items() if not _stays(said, rule))


def _votes(judgements: Iterable[Judgement]) -> Votes:
    votes: dict[str, list[bool]] = {}
    for judgement in judgements:
        if judgement.keep is not None:
            votes.setdefault(judgement.item, []).append(judgement.keep)
    return votes


def _thinned(
    relation: Relation, votes: Votes, rule: Rule, unjudged: bool, counts: Counter[str]
) -> Relation:
    """A relation with the templates that stay."""
    kept = []
    for template in relation.templates:
        said = votes.get(item_id(relation.id, template.text), ())
        stays = _stays(said, rule) if said else unjudged
        counts.update(kept=stays, dropped=not stays, split=len(set(said)) > 1, unjudged=not said)
        kept += [template] if stays else []
    return replace(relation, templates=headed(kept))


def _stays(votes: Sequence[bool], rule: Rule) -> bool:
    if rule == "majority":
        return 2 * sum(votes) > len(votes)
    return all(votes) if rule == "all" else any(votes)


def _refuse_unjudged(dataset: Dataset, votes: Votes) -> None:
    texts = [
        template.text
        for relation in dataset.relations
        for template in relation.templates
        if item_id(relation.id, template.text) not in votes
    ]
    if texts:
        raise DataError(
            f"{len(texts):,} templates of {dataset.name!r} are not judged yet, such as "
            f"{texts[0]!r}; go on judging, or say what becomes of them with --unjudged keep or "
            "--unjudged drop"
        )


def headed(templates: Iterable[Template]) -> tuple[Template, ...]:
    """The same templates; where the head of a group is gone, the first that is left takes over."""
    kept = tuple(templates)
    ids = {template.id for template in kept}
    heads: dict[str, str] = {}
    for template in kept:
        group = template.group or template.id
        heads.setdefault(group, group if group in ids else template.id)
    return tuple(replace(t, group=heads[t.group or t.id]) for t in kept)
