"""Runs brought to what all of them share: prompts, or facts in prompts of their own.

Knows runs that are compared, nothing of files or of tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from sonde.analysis.runs import Aligned, Compared
from sonde.core.errors import UsageError
from sonde.core.words import counted
from sonde.metrics.judged import Ints, Judged

if TYPE_CHECKING:
    from polars import DataFrame

TASKS = {"filled": "mask filling", "scored": "scored options", "written": "generated text"}

KEY = ("relation", "fact", "template", "name")
"""What two prompts have in common that are the same in two runs."""


def align(runs: Sequence[Compared]) -> Aligned:
    """The runs on the prompts they share: same pair, same template, same name of the subject.

    In relations in which they share none, on all prompts of the facts they share
    (`shared_facts`). In different datasets, which may use one id for different facts, a pair is
    the same where its subject and its answers are. Refuses runs that share nothing.
    """
    _check(runs)
    prompts, facts = _shared_prompts(runs), shared_facts(runs)
    first = runs[0].judged
    covered = set(prompts["relation"])
    ids = np.array([relation.id for relation in first.relations])
    shared = np.unique(first.grid.relations[facts[0] >= 0])
    if len(prompts) and covered.issuperset(ids[shared]):
        return _on_prompts(runs, prompts)
    if not len(shared):
        raise UsageError(_nothing_shared(runs))
    return _on_facts(runs, prompts, facts)


def _on_prompts(runs: Sequence[Compared], shared: DataFrame) -> Aligned:
    grid, at = runs[0].judged.grid, shared["row 0"].to_numpy()
    order = np.lexsort([grid.name[at], grid.template[at], grid.pair[at]])
    kept = [r.judged.rows(shared[f"row {i}"].to_numpy()[order]) for i, r in enumerate(runs)]
    first = _counted_anew(kept[0])
    return Aligned(
        asked=tuple(runs),
        runs=tuple(
            replace(run, judged=_numbered_as(first, judged))
            for run, judged in zip(runs, kept, strict=True)
        ),
        left_out={run.name: len(run.judged.grid) - len(shared) for run in runs},
    )


def _on_facts(runs: Sequence[Compared], prompts: DataFrame, facts: Sequence[Ints]) -> Aligned:
    """The runs on all prompts of the facts they share; in relations in which they share prompts,
    on these alone."""
    first = runs[0].judged
    covered = set(prompts["relation"])
    numbers = [of[run.judged.grid.pair] for of, run in zip(facts, runs, strict=True)]
    rows = []
    for i, (run, own) in enumerate(zip(runs, numbers, strict=True)):
        grid = run.judged.grid
        partly = np.array([relation.id in covered for relation in run.judged.relations])
        same = np.isin(np.arange(len(grid)), prompts[f"row {i}"].to_numpy())
        rows.append(np.flatnonzero((own >= 0) & (same | ~partly[grid.relations[grid.pair]])))
    kept = reduce(np.intersect1d, [own[at] for own, at in zip(numbers, rows, strict=True)])
    pairs = [_places(of, kept) for of in facts]
    of_first, owners = np.unique(first.grid.relations[pairs[0]], return_inverse=True)
    relations = tuple(first.relations[r] for r in of_first)
    ids = tuple(first.pairs[p] for p in pairs[0])
    made = []
    for run, own, at, places in zip(runs, numbers, rows, pairs, strict=True):
        at = at[np.isin(own[at], kept)]
        judged = _renumbered(run.judged, at, np.searchsorted(kept, own[at]), places, owners)
        made.append(replace(run, judged=replace(judged, relations=relations, pairs=ids)))
    return Aligned(
        asked=tuple(runs),
        runs=tuple(made),
        left_out={
            run.name: len(run.judged.grid) - len(of.judged.grid)
            for run, of in zip(runs, made, strict=True)
        },
        same_prompts=False,
    )


def _places(numbers: Ints, kept: Ints) -> Ints:
    """Where each of some numbers is first."""
    distinct, places = np.unique(numbers, return_index=True)
    return np.asarray(places[np.searchsorted(distinct, kept)])


def _renumbered(judged: Judged, rows: Ints, pair: Ints, pairs: Ints, owners: Ints) -> Judged:
    """Some rows, which are about the pairs of these numbers; `pairs` are those before, `owners`
    their relations now."""
    order = np.lexsort([judged.grid.name[rows], judged.grid.template[rows], pair])
    pair, kept = pair[order], judged.rows(rows[order])
    templates, first, template = np.unique(
        kept.grid.template, return_index=True, return_inverse=True
    )
    return replace(
        kept,
        grid=replace(
            kept.grid,
            pair=pair,
            template=template,
            relations=owners,
            template_relations=owners[pair[first]],
            subjects=None if kept.grid.subjects is None else kept.grid.subjects[pairs],
            ids=(),
        ),
        names=tuple(judged.names[p] for p in pairs) if judged.names else (),
        objects=tuple(judged.objects[p] for p in pairs) if judged.objects else (),
        templates=tuple(judged.templates[t] for t in templates),
    )


Fact = tuple[str, ...]


def shared_facts(runs: Sequence[Compared]) -> list[Ints]:
    """For each pair of each run the number of the fact that it is about, -1 unless all runs were
    prompted about it.

    Runs of one probe on one dataset share facts by id. All others share them by relation, subject,
    date and the set of correct objects; facts of one run that are equal in these count as one,
    unless their ids tell them apart in all runs.
    """
    if len({(run.dataset, run.made.probe) for run in runs}) == 1:
        return _numbered([_by_id(run) for run in runs])
    several = len({run.dataset for run in runs}) > 1
    keys = [
        _by_content(run, named, run.name if several else "")
        for run, named in zip(runs, _relations(runs), strict=True)
    ]
    ids = [
        [key and (*key, id) for key, id in zip(own, run.judged.pairs, strict=True)]
        for own, run in zip(keys, runs, strict=True)
    ]
    exact, loose = _numbered(ids), _numbered(keys)
    same = all(((a >= 0) == (b >= 0)).all() for a, b in zip(exact, loose, strict=True))
    return exact if same else loose


def _prompted(run: Compared) -> list[bool]:
    """Whether each pair has a prompt."""
    grid = run.judged.grid
    counts: list[bool] = (np.bincount(grid.pair, minlength=len(grid.relations)) > 0).tolist()
    return counts


def _relations_of(run: Compared) -> list[str]:
    """The id of each pair's relation."""
    ids = [relation.id for relation in run.judged.relations]
    return [ids[owner] for owner in run.judged.grid.relations.tolist()]


def _by_id(run: Compared) -> list[Fact | None]:
    every = zip(_relations_of(run), run.judged.pairs, _prompted(run), strict=True)
    return [(relation, id) if prompted else None for relation, id, prompted in every]


def _by_content(run: Compared, relations: Mapping[str, str], unknown: str) -> list[Fact | None]:
    """What each pair is about, by the names of relations; without a prompt nothing. A pair of which
    nothing is known is that of its id in what is `unknown`."""
    about: dict[str, Fact] = {}
    if run.facts is not None:
        columns = run.facts.select("fact", "subject", "date", "gold")
        about = {id: (s, date, *sorted(set(gold))) for id, s, date, gold in columns.iter_rows()}
    every = zip(_relations_of(run), run.judged.pairs, _prompted(run), strict=True)
    return [
        (relations[relation], *about.get(id, (unknown, id))) if prompted else None
        for relation, id, prompted in every
    ]


def _relations(runs: Sequence[Compared]) -> list[dict[str, str]]:
    """A name for each relation of each run, by id: its id, or its label where runs share no id, or
    nothing where each run has one relation and these share neither."""
    grids = [(run.judged.relations, run.judged.grid) for run in runs]
    prompted = [[of[r] for r in np.unique(grid.relations[grid.pair])] for of, grid in grids]
    ids = [[relation.id for relation in own] for own in prompted]
    labels = [[relation.label.casefold() for relation in own] for own in prompted]
    for names in (ids, labels):
        distinct = [set(own) for own in names]
        unique = all(len(a) == len(b) for a, b in zip(names, distinct, strict=True))
        if unique and set.intersection(*distinct):
            break
    else:
        names = [[""] for _ in ids] if all(len(own) == 1 for own in ids) else ids
    return [dict(zip(own, named, strict=True)) for own, named in zip(ids, names, strict=True)]


def _numbered(keys: Sequence[Sequence[Fact | None]]) -> list[Ints]:
    """The keys that are in all lists by number, others -1. The order is that of a list, the same
    whichever list comes first."""
    shared = set.intersection(*({key for key in own if key is not None} for own in keys))
    order = min([key for key in dict.fromkeys(own) if key in shared] for own in keys)
    numbers: dict[Fact | None, int] = {key: number for number, key in enumerate(order)}
    return [np.array([numbers.get(key, -1) for key in own], dtype=np.int64) for own in keys]


def _check(runs: Sequence[Compared]) -> None:
    if len(runs) < 2:
        raise UsageError(f"an analysis compares at least two runs; {len(runs)} was given")
    for run in runs:
        if not len(run.judged.grid):
            raise UsageError(f"{run.name!r} has no prompt that could be judged; leave it out")
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        raise UsageError(f"two runs have the same name: {', '.join(names)}")


def _nothing_shared(runs: Sequence[Compared]) -> str:
    datasets = list(dict.fromkeys(run.dataset for run in runs))
    where = f": they were asked {' and '.join(datasets)}" if len(datasets) > 1 else ""
    if differ := _different_objects(runs):
        return f"the runs share no fact{where}; {differ}"
    return (
        f"the runs share no fact{where}; compare runs about the same relations, subjects and "
        "correct objects (on one dataset: the same relations, limit, split and seed)"
    )


def _different_objects(runs: Sequence[Compared]) -> str:
    """A subject of all runs that has other correct objects in each, in words."""
    golds = [
        {} if run.facts is None else dict(run.facts.select("subject", "gold").iter_rows())
        for run in runs
    ]
    subjects = set.intersection(*map(set, golds))
    if not subjects:
        return ""
    one = min(subjects)
    objects = dict.fromkeys(", ".join(own[one]) for own in golds)
    if len(objects) < 2:
        return ""
    return (
        f"{len(subjects):,} subjects are in all of them, but with different correct objects, such "
        f"as {one!r}: {' / '.join(objects)}"
    )


def _shared_prompts(runs: Sequence[Compared]) -> DataFrame:
    by_content = len({run.dataset for run in runs}) > 1
    frames = (_prompts(run, f"row {i}", by_content) for i, run in enumerate(runs))
    return reduce(lambda one, other: one.join(other, on=KEY), frames)


def _prompts(run: Compared, row: str, by_content: bool) -> DataFrame:
    """The key of every prompt and, called `row`, where it stands; with what pairs and templates
    say in the key where their ids may not mean the same in all runs."""
    from polars import DataFrame, Series

    judged, grid = run.judged, run.judged.grid
    relations, templates = ([x.id for x in named] for named in (judged.relations, judged.templates))
    pairs = list(judged.pairs)
    if by_content:
        templates = [f"{template.id}: {template.text}" for template in judged.templates]
        pairs = _with_content(run)
    return DataFrame(
        {
            "relation": Series(relations).gather(grid.relations[grid.pair]),
            "fact": Series(pairs).gather(grid.pair),
            "template": Series(templates).gather(grid.template),
            "name": grid.name,
            row: np.arange(len(grid)),
        }
    ).unique(KEY, keep="first", maintain_order=True)


def _with_content(run: Compared) -> list[str]:
    """Pairs by their ids, subjects and answers; one of which nothing is known is like no other."""
    if run.facts is None:
        return [f"{run.name}: {id}" for id in run.judged.pairs]
    said = {
        id: f"{id}: {subject}: {sorted(gold)}"
        for id, subject, gold in run.facts.select("fact", "subject", "gold").iter_rows()
    }
    return [said.get(id, f"{run.name}: {id}") for id in run.judged.pairs]


def _counted_anew(judged: Judged) -> Judged:
    """The same with the pairs, templates and relations alone that its prompts are of."""
    grid = judged.grid
    pairs, pair = np.unique(grid.pair, return_inverse=True)
    templates, template = np.unique(grid.template, return_inverse=True)
    relations, owners = np.unique(grid.relations[pairs], return_inverse=True)
    of_templates = np.searchsorted(relations, grid.template_relations[templates])
    return replace(
        judged,
        grid=replace(
            grid,
            pair=pair,
            template=template,
            relations=owners,
            template_relations=of_templates,
            subjects=None if grid.subjects is None else grid.subjects[pairs],
            ids=tuple(grid.ids[r] for r in relations) if grid.ids else (),
        ),
        relations=tuple(judged.relations[r] for r in relations),
        pairs=tuple(judged.pairs[p] for p in pairs),
        names=tuple(judged.names[p] for p in pairs) if judged.names else (),
        objects=tuple(judged.objects[p] for p in pairs) if judged.objects else (),
        templates=tuple(judged.templates[t] for t in templates),
    )


def _numbered_as(first: Judged, judged: Judged) -> Judged:
    """The same prompts of another run under the numbers of the first."""
    grid = judged.grid
    return replace(
        judged,
        grid=replace(first.grid, right=grid.right, answer=grid.answer, confidence=grid.confidence),
        relations=first.relations,
        pairs=first.pairs,
        names=first.names,
        objects=first.objects,
        templates=first.templates,
    )


def what_differs(aligned: Aligned) -> str:
    """How else than by their models runs differ, in a few words; nothing where they do not."""
    runs = [run for run in aligned.runs if not run.made.control] or aligned.runs
    parts = list(_parts(runs, aligned)) if len(runs) > 1 else []
    apart = len({run.source or run.dataset for run in aligned.runs}) > 1
    if apart:
        shared = counted(len(aligned.first.pairs), "shared fact", "shared facts")
        parts.append(f"different dataset files, {shared}")
    if not parts:
        return ""
    models = {run.lineage.model for run in aligned.runs}
    same = ["model"] * (len(models) == 1 and "" not in models)
    same += ["facts"] * (not apart and len({run.made.probe for run in runs}) > 1)
    return ", ".join([f"same {' and '.join(same)}"] * bool(same) + parts)


def _parts(runs: Sequence[Compared], aligned: Aligned) -> Iterator[str]:
    probes = list(dict.fromkeys(run.made.probe for run in runs))
    if len(probes) > 1:
        yield f"different {_plural('probe', probes)}: {_and(probes)}"
    tasks = list(dict.fromkeys(TASKS[run.judged.way] for run in runs))
    if len(tasks) > 1:
        yield f"different {_plural('task', tasks)}: {_and(tasks)}"
    texts = {frozenset(template.text for template in run.judged.templates) for run in runs}
    if len(probes) == 1 and not aligned.same_prompts and len(texts) > 1:
        several = any(len(run.judged.templates) > len(run.judged.relations) for run in runs)
        yield "different templates" if several or len(runs) > 2 else "different template"


def _and(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _plural(word: str, names: Sequence[str]) -> str:
    return word if len(names) == 2 else f"{word}s"
