"""Judge LAMA's answers in columns: some bytes per fact, so that millions fit in memory.

Every fact is a pair of its own: a row of LAMA counts its own object alone, so that facts of one
subject share a prompt and differ in what is right. Where facts have options, a filled position is
read as a choice between those that are one allowed token. Knows nothing of estimates or tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import Answers, FilledColumns, Given, in_blocks
from sonde.core.errors import DataError
from sonde.core.fact_frames import names_options
from sonde.core.facts import Dataset, commonest_objects
from sonde.core.fingerprints import draw_key
from sonde.core.rated import RatedColumns
from sonde.core.scores import Normalise
from sonde.metrics.judged import KINDS, AnswerKind, Judged, Rows, judge_facts
from sonde.metrics.verdicts import Bools, Ints, Verdicts, judge_block, top_answers
from sonde.prompting.options import own_options
from sonde.prompting.sentences import is_name_template, stand_in, suggests

if TYPE_CHECKING:
    from polars import DataFrame


SHOWN = 50_000
TOP = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One fact with its judged answer, as the table of facts shows it.

    `probability` of all correct names together and `rank` of the best of them: None where none
    could be answered. `top` answers with their probabilities.
    """

    relation: str
    subject: str
    objects: tuple[str, ...]
    prompt: str
    rank: int | None
    probability: float | None
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """What was judged: the facts that could be answered, in the dataset's order.

    A pair of `judged` is the number of a fact among all `facts` that were asked about. `tied`: of
    each, whether two answers are likeliest. `asked` also counts facts that have no answer. `shown`:
    the facts that can be shown.
    """

    facts: Facts
    judged: Judged
    tied: Bools
    asked: int
    shown: tuple[Shown, ...]


class Facts:
    """Everything that is asked about, in the dataset's order.

    `options` of each that names some, where `own` ones are chosen from; the majority control then
    answers with the one of them that is commonest in the relation. `majority`: what it always
    answers in each of the other relations. `majority_rank`: the rank of the first correct object if
    the most common ones are answered first, 0 if none is correct.
    """

    def __init__(self, dataset: Dataset, own: bool = False) -> None:
        import polars

        self.ids = [relation.id for relation in dataset.asked_relations()]
        frames = [dataset.asked_frame(id) for id in self.ids]
        self.options = [options for frame in frames for options in _options(frame, own)]
        alike = [
            id for id, f in zip(self.ids, frames, strict=True) if not (own and names_options(f))
        ]
        columns = ("fact", "relation", "subject", "subject_id", "object_names")
        self.frame: DataFrame = polars.concat([frame.select(columns) for frame in frames])
        self.relations = np.repeat(np.arange(len(frames)), [frame.height for frame in frames])
        self.subjects = self.frame["subject_id"].rank("dense").to_numpy().astype(np.int64)
        ranked = {id: commonest_objects(dataset.split_frame(id)) for id in self.ids}
        self.majority = {id: ranked[id][0][0] for id in alike if ranked[id]}
        keys = zip(self.frame["relation"], self.frame["fact"], strict=True)
        self.places = {key: place for place, key in enumerate(keys)}
        if len(self.places) < self.frame.height:
            repeated = self.frame.filter(self.frame.select("relation", "fact").is_duplicated())
            raise DataError(
                f"two facts have the id {repeated['fact'][0]!r}; give each fact an id of its own"
            )
        self.objects: list[list[list[str]]] = self.frame["object_names"].to_list()
        self.usual = [[names[0] for names in objects] for objects in self.objects]
        orders = ([name for name, _ in ranked[id]] for id in self.ids)
        self._orders = [{name: place for place, name in enumerate(order)} for order in orders]
        self.majority_rank = np.zeros(len(self.usual), dtype=np.int64)
        self.choose(range(len(self.usual)), self.options)
        subjects = self.frame["subject"].to_list()
        self.in_subject = np.array([*map(stand_in, self.usual, subjects)], dtype=np.bool_)

    def choose(self, places: Iterable[int], options: Iterable[Sequence[str]]) -> None:
        """Let the majority control choose between some options of facts, or all objects if none."""
        for place, own in zip(places, options, strict=True):
            order = self._orders[self.relations[place]]
            self.majority_rank[place] = _rank(order, own, self.usual[place])

    def shown(self, seed: int, most: int) -> Bools:
        """Which facts can be shown: all, or those that a draw picks."""
        kept = np.ones(len(self.objects), dtype=np.bool_)
        if len(kept) > most:
            draws = np.array([draw_key(seed, id) for id in self.frame["fact"]], dtype=np.uint64)
            kept[np.argsort(draws, kind="stable")[most:]] = False
        return kept


def _options(facts: DataFrame, own: bool) -> Iterable[Sequence[str]]:
    """The options of each fact; none where all of the relation's objects are."""
    return own_options(facts).to_list() if own and names_options(facts) else [()] * facts.height


def _rank(order: Mapping[str, int], options: Sequence[str], correct: Sequence[str]) -> int:
    """The rank of the first correct name among some options in an order, or among all; else 0.

    Options that are not in the order come last.

    >>> order = {"Peru": 0, "Chile": 1, "Oman": 2}
    >>> _rank(order, (), ["Chile"]), _rank(order, ("Fiji", "Oman"), ["Oman"]), _rank(order, (), [])
    (2, 1, 0)
    """
    if not options:
        return min((order[name] + 1 for name in correct if name in order), default=0)
    ranked = sorted(options, key=lambda name: order.get(name, len(order)))
    return next((rank for rank, name in enumerate(ranked, 1) if name in correct), 0)


def judge(
    dataset: Dataset,
    answers: Given,
    normalise: Normalise = "none",
    *,
    template: int = 1,
    way: AnswerKind = "filled",
    own: bool = False,
    most: int = SHOWN,
) -> Outcomes:
    """Judge every answer, in whatever order they come; of two for a fact the later one counts.

    `template` is the number of the one asked with, and `way` how. `own`: facts that name options
    choose from these. At most `most` facts are kept to be shown.
    """
    facts = Facts(dataset, own)
    correct = dict(enumerate(facts.objects))
    show = facts.shown(dataset.selection.seed, most)
    judged = Rows("pair")
    said: dict[str, int] = {}
    guessed: list[NDArray[Any]] = [np.zeros(0, int)]
    details: dict[int, Shown] = {}
    for block in in_blocks(answers):
        place = block.numbers(("relation", "fact"), facts.places)
        block = _chosen(block, place, facts)
        verdicts = judge_block(block, place, correct, normalise)
        codes, templates = block.codes("template")
        of_name = np.array([is_name_template(id) for id in templates], dtype=np.bool_)[codes]
        guessed.append(place[of_name & suggests(verdicts.rank)])
        found = {"pair": place, "template": facts.relations[place], **verdicts.columns(said)}
        judged.add({name: found[name][~of_name] for name in KINDS})
        rows = np.flatnonzero(~of_name & show[place])
        shown = _shown(facts, block, place, verdicts, rows, normalise)
        details |= zip(place[rows].tolist(), shown, strict=True)
    whole = judged.whole()
    kept = {name: column[whole["rank"] > 0] for name, column in whole.items()}
    place, relations = kept["pair"], dataset.asked_relations()
    return Outcomes(
        facts=facts,
        judged=judge_facts(
            kept,
            facts.frame,
            relations=relations,
            owners=facts.relations,
            templates=[(relation.templates[template - 1],) for relation in relations],
            answers=tuple(said),
            way=way,
            guessable=facts.in_subject[place] | np.isin(place, np.concatenate(guessed)),
        ),
        tied=kept["tied"],
        asked=len(whole["pair"]),
        shown=tuple(details[place] for place in sorted(details)),
    )


def _chosen(block: Answers, place: Ints, facts: Facts) -> Answers:
    """A block whose answers were filled, as a choice where its facts have options.

    The control then chooses between those that can be filled in, too.
    """
    options = [facts.options[number] for number in place]
    about_names = any(map(is_name_template, block.codes("template")[1]))
    if block.kind != "filled" or about_names or not all(map(len, options)):
        return block
    may = fillable(block.filled, options)
    facts.choose(place.tolist(), may)
    return as_choice(block, may)


def _shown(
    facts: Facts, block: Answers, place: Ints, verdicts: Verdicts, rows: Ints, by: Normalise
) -> list[Shown]:
    """What is shown of some prompts of a block."""
    prompts, tops = block.texts(), top_answers(block, rows, TOP, by)
    relations, subjects = facts.frame["relation"], facts.frame["subject"]
    return [
        Shown(
            relation=relations[number],
            subject=subjects[number],
            objects=tuple(names[0] for names in facts.objects[number]),
            prompt=prompts[row],
            rank=rank or None,
            probability=exp(gold) if rank else None,
            top=top,
        )
        for number, row, rank, gold, top in zip(
            place[rows].tolist(),
            rows.tolist(),
            verdicts.rank[rows].tolist(),
            verdicts.gold_logprob[rows].tolist(),
            tops,
            strict=True,
        )
    ]


NOTHING = ""
"""What is chosen where no option is an allowed token."""


def fillable(filled: FilledColumns, options: Sequence[Sequence[str]]) -> list[list[str]]:
    """Those options of each prompt that are one allowed token, as far as they were watched."""
    places = {name: place for place, name in enumerate(filled.watched)}
    may = filled.watched_ranks > 0
    return [
        [name for name in own if name in places and may[row, places[name]]]
        for row, own in enumerate(options)
    ]


def as_choice(answers: Answers, options: Sequence[Sequence[str]]) -> Answers:
    """Filled answers as scored ones, each between options that can be filled in."""
    logps = answers.filled.watched_logps
    places = {name: place for place, name in enumerate(answers.filled.watched)}
    values: list[float] = []
    for row, own in enumerate(options):
        values += [float(logps[row, places[name]]) for name in own] or [0.0]
    scores = np.array(values, dtype=np.float32)
    chosen = [tuple(own) or (NOTHING,) for own in options]
    columns = RatedColumns.scored(chosen, scores, np.ones(len(scores), dtype=np.int64))
    return replace(answers, kind="scored", columns=columns)
