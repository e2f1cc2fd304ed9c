"""Every view of the papers is filled by small runs, or states why no runs can fill it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import log
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
import pytest

import sonde
from sonde.compare.conditions import open_runs
from sonde.compare.views import PAPERS, paper, read_paper
from sonde.core.abilities import Identity
from sonde.core.errors import SondeError, UsageError
from sonde.core.prompts import Prompt, Trace
from sonde.evaluation.layout import Exhibit
from sonde.models.scripted import Scripted
from sonde.reports.model import Report
from tests.worlds import dataset_of, entity, fact, question, relation, template

Rows = pl.DataFrame
COUNTRIES = ("France", "Spain", "Italy", "Poland")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Learner(Scripted):
    """Knows a share of the facts, under some templates."""

    name: str
    level: int

    KEYS = ("relation", "fact", "template", "subject")

    @property
    def identity(self) -> Identity:
        return Identity(name=self.name, architecture="table", weights=self.name)

    def tables(self, prompt: Prompt) -> tuple[list[dict[str, float]], float]:
        facts = prompt.facts if isinstance(prompt.want, Trace) else (prompt.key.fact,)
        names = sorted({*self.answers.values()})
        tables = []
        for each in facts:
            key = f"{each}:{prompt.key.template}"
            correct = self.answers.get(each, names[0])
            wrong = names[crc32(f"{self.name}{key}".encode()) % len(names)]
            known = crc32(key.encode()) % 100 < self.level
            sure = (0.5, 0.7, 0.9)[crc32(f"sure{key}".encode()) % 3]
            answer = correct if known else wrong
            rest = log((1 - sure) / (len(names) - 1))
            tables.append({name: log(sure) if name == answer else rest for name in names})
        return tables, -30.0


RELATIONS = {
    "belief": ("P31", "P30", "P36"),
    "belief-icl": ("P31", "P30", "P36"),
    "ic-lke": ("P449", "P30", "P36"),
    "monitor": ("P17", "P37", "P178", "P1412"),
    "optiprompt": ("P27", "P463", "P176"),
}


def world(name: str) -> Any:
    """Relations of all kinds with every sort of template, some of the facts for training."""
    ids = dict(zip(RELATIONS[name], ("1-1", "N-1", "N-M", "N-M"), strict=False))
    relations = [
        relation(
            id,
            template(f"{id}-1", f"[X] {id} lies in [Y].", origin="lama"),
            template(f"{id}-2", f"[X] {id} is in [Y].", source="paraphrase", group=f"{id}-1"),
            template(f"{id}-3", f"[X] {id} belongs to [Y]."),
            template(f"{id}-4", f"[X] {id} and [Y]", source="mined"),
            question(f"{id}-5", f"Where is {id} [X]?"),
            question(f"{id}-6", f"In which {id} is [X]?"),
            kind=kind,
            label=f"label {id}",
        )
        for id, kind in ids.items()
    ]
    facts = [
        fact(
            id, entity(f"Town {n}", f"City {n}"), COUNTRIES[(n * n) % 4], id=f"{id}:{n}",
            split="train" if n % 3 == 0 else "test",
        )
        for id in ids for n in range(12)
    ]  # fmt: skip
    return dataset_of(facts, *relations)


MODELS = """
[[model]]
name = "small"
family = "one"
size = 1000
[[model]]
name = "large"
family = "one"
size = 7000
corpus = "books"
[[model]]
name = "other"
family = "two"
size = 2000
[[model]]
name = "tuned"
family = "one"
size = 1000
stage = "fine-tuned"
base = "small"
"""
LEVELS = {"small": 40, "large": 80, "other": 60, "tuned": 50}


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., sonde.Run]:
    """A run, made once."""
    folder, made = tmp_path_factory.mktemp("runs"), {}

    def run(name: str, model: str, probe: str, **settings: Any) -> sonde.Run:
        key = RELATIONS[name], model, probe, *settings.items()
        if key not in made:
            data = world(name)
            facts = [fact for relation in data.relations for fact in data.facts(relation.id)]
            answers = {fact.id: fact.objects[0].names[0] for fact in facts}
            one = Learner(name=model, level=LEVELS.get(model, 0), answers=answers)
            loaded = sonde.model(model, data=data) if model.startswith("control:") else one
            made[key] = sonde.run(
                sonde.probe(probe, **settings), loaded, data, folder / str(len(made))
            )
        return made[key]

    return run


ICL: Mapping[str, Any] = {"samples": 3, "fluctuation_draws": 200, "min_prompts": 1}
MASKED: Mapping[str, Any] = {"fluctuation_draws": 200, "min_prompts": 1, "answer": "fill"}
SHOTS: Mapping[str, Any] = {"shots": 3}


def runs_of(name: str, make_run: Callable[..., sonde.Run]) -> dict[str, sonde.Run]:
    """Runs that fill all views of a paper."""
    runs, make = {}, partial(make_run, name)
    if name.startswith("belief"):
        for model in ("small", "large"):
            runs[f"{model} masked"] = make(model, "belief", **MASKED)
            for context in ("zero-shot", "template"):
                for source in ("all", "manual"):
                    settings = {"context": context, "template_source": source, **ICL}
                    runs[f"{model} {context} {source}"] = make(model, "belief-icl", **settings)
        runs["mp"] = make("small", "belief-icl", context="template", questions=True, **ICL)
        runs["qa"] = make("small", "belief-icl", context="template", style="qa", **ICL)
    if name == "ic-lke":
        for model in ("small", "large", "other", "tuned"):
            runs[model] = make(model, "ic-lke", **SHOTS)
            runs[f"{model} efficient"] = make(model, "eic-lke", examples=6, start=2, stride=1)
        runs["shots"] = make("small", "lke-shots", shots=(1, 3), seeds=2)
        runs["methods"] = make("small", "lke-baselines", shots=3)
        runs["list"] = make("small", "lke-sequence", length=8, replace="unknown", replaced=2)
    if name == "monitor":
        for model in ("small", "large", "other"):
            runs[model] = make(model, "monitor", negatives=2, first_frames=1, anchor="any")
            runs[f"{model} full"] = make(model, "monitor", negatives=2, anchor="any", full=True)
        runs["framing"] = make("small", "framing", negatives=2)
    if name == "optiprompt":
        runs["manual@small"] = make("small", "lama", answer="fill")
        runs["opti@small"] = make("large", "lama", answer="fill", template_no=3)
        for control in ("class-prior", "naive-bayes"):
            runs[control] = make(f"control:{control}", "lama")
    return runs


@pytest.fixture(scope="module")
def report(
    make: Callable[..., sonde.Run], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Report, dict[str, sonde.Run]]]:
    table = tmp_path_factory.mktemp("models") / "models.toml"
    table.write_text(MODELS)
    made = {}

    def of(name: str) -> tuple[Report, dict[str, sonde.Run]]:
        if name not in made:
            runs = runs_of(name, make)
            made[name] = paper(name, runs, models=table), runs
        return made[name]

    return of


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_every_view_is_filled_or_impossible(name: str, report: Any) -> None:
    views = read_paper(name)[1]
    shown = report(name)[0]
    assert "command" not in {e.id for e in shown.items()}, shown["command"].frame.rows()
    filled = {e.title.partition(". ")[0] for e in shown.sections[0].items}
    assert filled == {view.name for view in views if not view.impossible}
    impossible = [view for view in views if view.impossible]
    assert all(view.impossible != view.title and not view.columns for view in impossible)
    for view in views:
        assert view.impossible or view.command or not view.columns, view.name


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_every_view_is_printed_and_written(name: str, report: Any, tmp_path: Path) -> None:
    shown = report(name)[0]
    text, page = shown.to_terminal(200), shown.to_html()
    for item in shown.sections[0].items:
        assert item.title[:40] in text
        assert item.id in page
    named = len(shown.sections[0].items)
    for write, more in ((shown.to_csv, 1), (shown.to_latex, 0)):
        assert len(write(tmp_path)) >= named + more
    figures = [e for e in shown.sections[0].items if e.kind != "table"]
    assert len(shown.to_svg(tmp_path)) == len(figures) > 0


def columns(rows: Rows, *names: str) -> list[np.ndarray[Any, Any]]:
    return [rows[name].to_numpy() for name in names]


def over_facts(rows: Rows, value: str = "correct") -> float:
    """Mean over facts of the mean over a fact's prompts."""
    facts, values = columns(rows, "fact_no", value)
    return float(np.mean([values[facts == fact].mean() for fact in np.unique(facts)]))


def over_relations(rows: Rows, value: str = "correct") -> float:
    parts = [rows.filter(relation=r) for r in rows["relation"].unique()]
    return float(np.mean([over_facts(part, value) for part in parts]))


def by_template(rows: Rows, stat: Callable[..., Any]) -> float:
    """Per relation the accuracy of its templates, one number of them, weighted by facts."""
    values = []
    for relation in rows["relation"].unique():
        part = rows.filter(relation=relation)
        numbers = [over_facts(part.filter(template_no=t)) for t in part["template_no"].unique()]
        values += [stat(numbers)] * part["fact_no"].n_unique()
    return float(np.mean(values))


def agreement(rows: Rows, *same: str) -> float:
    """Mean over facts of the share of pairs of prompts with one answer."""
    shares = []
    for fact in rows["fact_no"].unique():
        lines = rows.filter(fact_no=fact).select("answer", *same).rows()
        pairs = [(a, b) for a, b in combinations(lines, 2) if a[1:] == b[1:]]
        shares.append(np.mean([a[0] == b[0] for a, b in pairs]))
    return float(np.mean(shares))


def known(rows: Rows, *keys: str) -> dict[Any, set[Any]]:
    """The facts with mostly correct prompts, by relation."""
    facts: dict[Any, set[Any]] = {}
    for (relation, *key), part in rows.group_by("relation", "fact", *keys):
        if part["correct"].mean() > 0.5:  # type: ignore[operator]
            facts.setdefault(relation, set()).add(tuple(key))
    return facts


def eta(first: Rows, second: Rows) -> float:
    a, b = known(first), known(second)
    return float(np.mean([len(a[r] & b.get(r, set())) / len(a[r]) for r in a]))


def overconfidence(rows: Rows, value: str = "confidence") -> float:
    sure, correct = columns(rows.drop_nulls(value), value, "correct")
    return float((sure.astype(float) - correct).mean())


def coverage(rows: Rows) -> float:
    return float(np.mean([p["correct"].any() for _, p in rows.group_by("fact_no")]))


def monitor(rows: Rows) -> float:
    """√(PFD² + IRD² + PFD·IRD over 3) over the anchors' probabilities, mean over relations."""
    values = []
    for relation in rows["relation"].unique():
        tops, anchors = [], []
        for _, part in rows.filter("counted", relation=relation).group_by("fact_no"):
            pfd, ird = (np.mean(part.filter(cue=c)["distance"]) for c in ("none", "wrong"))
            tops.append(np.sqrt((pfd**2 + ird**2 + pfd * ird) / 3))
            anchors.append(part.filter(cue="right")["probability"][0])
        values.append(sum(tops) / sum(anchors))
    return float(np.mean(values))


def relation_accuracies(rows: Rows) -> np.ndarray[Any, Any]:
    return np.array([over_facts(rows.filter(relation=r)) for r in RELATIONS["ic-lke"]])


def bins(rows: Rows) -> float:
    """Accuracy of the most confident prompts."""
    sure, correct = columns(rows.drop_nulls("confidence"), "confidence", "correct")
    return float(correct[sure == sure.max()].mean())


def answered(rows: Rows, correct: bool | None = None) -> float:
    """Share of answers with the most common training object, of correct ones or of all."""
    facts = [f for r in world("optiprompt").relations for f in world("optiprompt").facts(r.id)]
    shares = []
    for relation in RELATIONS["optiprompt"]:
        trained = [
            f.objects[0].names[0] for f in facts if f.split == "train" and f.relation == relation
        ]
        top = max(sorted(set(trained)), key=trained.count)
        part = rows.filter(relation=relation)
        hit = part["answer"].to_numpy() == top
        shares.append((hit & part["correct"].to_numpy()).mean() if correct else hit.mean())
    return float(np.mean(shares))


