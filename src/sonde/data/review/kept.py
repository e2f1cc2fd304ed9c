"""The dataset that is left when reviewers have said what to keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Relation, Template
from sonde.data.review.judgements import Judgement, item_id

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
