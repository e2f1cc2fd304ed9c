"""Models that say what they are told to, and a literal reading of the definitions of `framing`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from sonde.core.abilities import Identity
from sonde.core.answers import Answered, Generated, Scored
from sonde.core.facts import Dataset, commonest_objects
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Prompt, Score
from sonde.core.reports import Report
from sonde.former.framing.probe import Framing
from sonde.prompting.matching import cleaned, correct
from sonde.prompting.options import correct_for, correct_names
from tests.rows import answer_all
from tests.worlds import facts

Write = Callable[[Prompt], str]
Check = Callable[[Prompt], tuple[float, float]]


def nothing(_prompt: Prompt) -> str:
    return ""


def doubts(_prompt: Prompt) -> tuple[float, float]:
    return -1.0, -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """Writes and checks as two functions say, the latter as log-probabilities of True and False."""

    write: Write = nothing
    check: Check = doubts

    @property
    def identity(self) -> Identity:
        return Identity(name="says", architecture="function")

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        for i, prompt in enumerate(prompts):
            yield i, Generated(text=self.write(prompt), logps=(-0.5,))

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        for i, prompt in enumerate(prompts):
            assert isinstance(prompt.want, Score)
            true, false = self.check(prompt)
            yield i, Scored(options=prompt.want.options, logps=((true,), (false / 2, false / 2)))


def answered(probe: Framing, data: Dataset, model: Says) -> list[Answered]:
    return answer_all(model, list(probe.ask(data)))


def read(probe: Framing, data: Dataset, model: Says) -> Report:
    """The report about a model."""
    return probe.read(data, answered(probe, data, model))


def whimsical() -> Says:
    """Answers by the hash of the prompt: right names, wrong ones, a name told, nothing, noise."""

    def pick(prompt: Prompt, choices: Sequence[str]) -> str:
        return choices[draw_key(7, f"{prompt.key}{prompt.own}{prompt.prefix}") % len(choices)]

    def write(prompt: Prompt) -> str:
        if prompt.own["task"] == "fc":
            return pick(prompt, [" True", " false.", "", " It is True", "TRUE, of course"])
        name = prompt.own["object"]
        own = {f.id: f.objects[0].name for f in facts()}.get(prompt.key.fact, "Vienna")
        others = [" the guitars", " Cairo", "", f" It is {own}", f" {name}."]
        return pick(prompt, [f" {own}", f" {own}.", *others])

    def check(prompt: Prompt) -> tuple[float, float]:
        return {"t": (-1.0, -2.0), "f": (-2.0, -1.0), "n": (-1.0, -1.0)}[pick(prompt, "ttffn")]

    return Says(write=write, check=check)


def literal(data: Dataset, rows: Iterable[Answered], language: str = "en") -> dict[str, float]:
    """Every mean and every spread, by loops over answers. Takes nothing of the probe's own."""
    held = list(rows)
    by_relation: dict[str, dict[str, float]] = {}
    for relation in data.asked_relations():
        own = [row for row in held if row.key.relation == relation.id]
        by_relation[relation.id] = dict(_of_relation(data, relation.id, own, language))
    found = {f"{n}.relation.{r}": v for r, own in by_relation.items() for n, v in own.items()}
    for name in {name for own in by_relation.values() for name in own}:
        values = [own[name] for own in by_relation.values() if name in own]
        found[f"{name}.mean_over_relations"] = fmean(values)
    return found


def _of_relation(
    data: Dataset, relation: str, rows: list[Answered], language: str
) -> Iterator[tuple[str, float]]:
    names = correct_names(data, relation)
    gold = {f.id: correct_for(f, names) for f in data.facts(relation)}
    guess = commonest_objects(data.split_frame(relation))[0][0]

    def holds(text: str, fact: str) -> bool:
        return correct(cleaned(text), gold[fact], language)

    def equals(text: str, fact: str) -> bool:
        return cleaned(text) != "" and cleaned(text) in {cleaned(n) for n in gold[fact]}

    asked = {r.key.fact for r in rows}
    tables: dict[str, dict[tuple[str, str], list[float]]] = {}

    def put(name: str, row: Answered, value: bool) -> None:
        cell = tables.setdefault(name, {}).setdefault((row.key.fact, row.key.template), [])
        cell.append(float(value))

    base = next(
        (r.key.template for r in rows if (r.own["task"], r.own["told"]) == ("qa", "none")), ""
    )
    verdicts: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in rows:
        task, kind, name = (row.own[column] for column in ("task", "told", "object"))
        way = type(row.answer).__name__
        if task == "fc":
            after = "" if way == "Scored" else "_written"
            said = _said(row)
            put(f"fc_{kind}{after}", row, said == {"right": "true", "wrong": "false"}[kind])
            put(f"true_{kind}{after}", row, said == "true")
            put(f"false_{kind}{after}", row, said == "false")
            put(f"neither_{kind}{after}", row, said == "neither")
            key = (row.key.fact, row.key.template, f"{kind}{name}")
            verdicts.setdefault(key, {})[way] = said
            if len(verdicts[key]) == 2:
                both = set(verdicts[key].values())
                put(f"agree_{kind}", row, both in ({"true"}, {"false"}))
            continue
        assert isinstance(row.answer, Generated)
        text, id = row.answer.text, row.key.fact
        if task == "wp":
            put("wp", row, holds(text, id))
        elif kind == "none":
            put("qa", row, equals(text, id))
            put("qa_lemma", row, holds(text, id))
            if row.key.template == base:
                put("none", row, equals(text, id))
        else:
            put(f"told_{kind}", row, equals(text, id))
            put(f"copied_{kind}", row, cleaned(text) == cleaned(name))
    yield from _averaged(tables, sorted(asked))
    for id, rule in (("wp", holds), ("qa_lemma", holds), ("qa", equals)):
        if id in tables:
            yield f"control.majority.{id}", fmean(rule(guess, fact) for fact in asked)


def _said(row: Answered) -> str:
    if isinstance(row.answer, Scored):
        true, false = (sum(logps) for logps in row.answer.logps)
        return "neither" if true == false else "true" if true > false else "false"
    assert isinstance(row.answer, Generated)
    first = (row.answer.text.split() or [""])[0].strip(".,").lower()
    return first if first in ("true", "false") else "neither"


def _averaged(
    tables: dict[str, dict[tuple[str, str], list[float]]], ids: list[str]
) -> Iterator[tuple[str, float]]:
    means: dict[str, dict[str, float]] = {}
    for name, cells in tables.items():
        for id in ids:
            own = [fmean(values) for (f, _), values in cells.items() if f == id]
            if own:
                means.setdefault(name, {})[id] = fmean(own)
    plain = {"fc_right": "fc_pos", "fc_wrong": "fc_neg"}
    plain |= {f"{k}_written": f"{v}_written" for k, v in plain.items()}
    for name in ("wp", "qa", "qa_lemma", *plain):
        if name in means:
            id = plain.get(name, name)
            yield f"accuracy.{id}", fmean(means[name].values())
            yield from _spread(id, tables[name])
    for name in ("right", "wrong"):
        if f"told_{name}" in means:
            told = means[f"told_{name}"]
            yield f"told.{name}", fmean(told.values())
            yield f"told_minus_none.{name}", fmean(told[f] - means["none"][f] for f in told)
            yield f"copied.{name}", fmean(means[f"copied_{name}"].values())
    if "none" in means:
        yield "told.none", fmean(means["none"].values())
    if "wp" in means and "qa_lemma" in means:
        differences = (means["qa_lemma"][f] - means["wp"][f] for f in ids)
        yield "question_minus_sentence", fmean(differences)
    balances = [("readings_agree.fc", "agree", "")]
    for after in ("", "_written"):
        balances.append((f"accuracy.fc{after}", "fc", after))
        balances += [(f"said_{v}.fc{after}", v, after) for v in ("true", "false", "neither")]
    for name, of, after in balances:
        one, other = (means.get(f"{of}_{kind}{after}", {}) for kind in ("right", "wrong"))
        both = [(one[f] + other[f]) / 2 for f in one if f in other]
        if both:
            yield name, fmean(both)


def _spread(id: str, cells: dict[tuple[str, str], list[float]]) -> Iterator[tuple[str, float]]:
    templates = dict.fromkeys(template for _, template in cells)
    accuracies = [fmean(fmean(v) for (_, t), v in cells.items() if t == own) for own in templates]
    yield f"best.{id}", max(accuracies)
    yield f"worst.{id}", min(accuracies)
    if len(accuracies) > 1:
        yield f"stdev.{id}", stdev(accuracies)
