"""Every view of the papers is filled by small runs, or states why no runs can fill it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import log
from pathlib import Path
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau, rankdata

import sonde
from sonde.compare.views import PAPERS, paper, read_paper
from sonde.core.abilities import Identity
from sonde.core.errors import SondeError, UsageError
from sonde.core.prompts import Prompt, Trace
from sonde.evaluation.layout import Exhibit
from sonde.models.scripted import Scripted
from sonde.reports.model import Report
from tests import worlds
from tests.worlds import dataset_of, entity, question, template

Rows = pl.DataFrame
COUNTRIES = ("France", "Spain", "Italy", "Poland")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Learner(Scripted):
    """Knows a share of the facts, under some templates."""

    name: str
    level: int

    KEYS: ClassVar[Any] = ("relation", "fact", "template", "subject")

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
            sure = (0.5, 0.7, 0.9)[crc32(f"sure{key}{prompt.key.subject}".encode()) % 3]
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
    kinds: tuple[Any, ...] = ("1-1", "N-1", "N-M", "N-M")
    ids = dict(zip(RELATIONS[name], kinds, strict=False))
    relations = [
        worlds.relation(
            id,
            template(f"{id}-1", f"[X] {id} lies in [Y].", origin="lama"),
            template(f"{id}-2", f"[X] {id} is in [Y].", source="paraphrase", group=f"{id}-1"),
            template(f"{id}-3", f"[X] {id} belongs to [Y]."),
            template(f"{id}-4", f"[X] {id} and [Y]", source="mined"),
            question(f"{id}-5", f"Where is {id} [X]?"),
            question(f"{id}-6", f"In which {id} is [X]?"),
            *(
                question(f"{id}-{n}", f"Where, {n}, is {id} [X]?")
                for n in (7, 8, 9)
                if name == "monitor"
            ),
            kind=kind,
            label=f"label {id}",
        )
        for id, kind in ids.items()
    ]
    facts = [
        worlds.fact(
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
    folder, made = tmp_path_factory.mktemp("runs"), dict[Any, sonde.Run]()

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


LISTS = ("none", "unknown, spread", "unknown, block", "incorrect, spread", "incorrect, block")
CONTEXTS = (("zero-shot", "all"), ("template", "all"), ("template", "manual"))
ICL: Mapping[str, Any] = {"samples": 3, "fluctuation_draws": 200, "min_prompts": 1}
MASKED: Mapping[str, Any] = {"fluctuation_draws": 200, "min_prompts": 1, "answer": "fill"}
SHOTS: Mapping[str, Any] = {"shots": 3}


def runs_of(name: str, make_run: Callable[..., sonde.Run]) -> dict[str, sonde.Run]:
    """Runs that fill all views of a paper."""
    runs, make = {}, partial(make_run, name)
    if name.startswith("belief"):
        for model in ("small", "large"):
            runs[f"{model} masked"] = make(model, "belief", **MASKED)
            for context, source in CONTEXTS:
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
        for kind in LISTS:
            replace, _, layout = kind.partition(", ")
            runs[kind] = make(
                "small", "lke-sequence", length=8, replaced=2, replace=replace,
                sequence_layout=layout or "spread",
            )  # fmt: skip
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
            pfd, ird = (
                part.filter(cue=c)["distance"].drop_nulls().to_numpy().mean()
                for c in ("none", "wrong")
            )
            tops.append(np.sqrt((pfd**2 + ird**2 + pfd * ird) / 3))
            anchors.append(part.filter(cue="right")["probability"][0])
        values.append(sum(tops) / sum(anchors))
    return float(np.mean(values))


def first_four(rows: Rows) -> Rows:
    """Without cue the first four questions of P178; all prompts with a cue."""
    return rows.filter(relation="P178").filter(
        (pl.col("cue") != "none") | (pl.col("template_no") <= 4)
    )


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


def common(relation: str) -> float:
    """Share of the test facts whose object is the most common one of the training facts."""
    facts = [*world("optiprompt").facts(relation)]
    names: dict[str, list[str]] = {"train": [], "test": []}
    for fact in facts:
        names[fact.split].append(fact.objects[0].names[0])
    top = max(sorted(set(names["train"])), key=names["train"].count)
    return float(np.mean([name == top for name in names["test"]]))


def reached(rows: Rows) -> float:
    """The first accuracy that is at least 95% of that with the most examples."""
    values = [over_relations(rows.filter(n_shots=n)) for n in sorted(rows["n_shots"].unique())]
    return next(value for value in values if value >= 0.95 * values[-1])


def shared_cells(first: Rows, second: Rows, *others: Rows) -> float:
    """Of the first run's known (fact, template) pairs, the share that the second knows too."""
    texts = set.intersection(*(set(rows["text"]) for rows in (first, second, *others)))
    a, b = (
        {k for k, p in rows.group_by("fact", "text") if p["correct"].any() and k[1] in texts}
        for rows in (first, second)
    )
    return len(a & b) / len(a)


def bias_level(run: sonde.Run) -> float:
    levels = []
    for _, part in run.results().side["bias"].group_by("relation", "template"):
        shares = np.exp(np.array(part["logprobs"].to_list(), dtype=float))
        shares = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
        entropy = -(shares * np.log(shares)).sum()
        levels.append(1 - entropy / np.log(len(shares)))
    return float(np.mean(levels))


def aliases_help(rows: Rows) -> float:
    """Share of prompts with an added name that give the correct answer more probability."""
    key = ("fact_no", "template_no")
    usual = {k: p["gold_logprob"][0] for k, p in rows.filter(alias_no=0).group_by(key)}
    added = rows.filter(pl.col("alias_no") > 0).select(*key, "gold_logprob").rows()
    return float(np.mean([value > usual[fact, no] for fact, no, value in added]))


def best_template(rows: Rows) -> float:
    """Pairs that are correct with some name under the best template of their relation."""
    best = 0
    for relation in rows["relation"].unique():
        part = rows.filter(relation=relation)
        best += max(
            sum(p["correct"].any() for _, p in part.filter(template_no=t).group_by("fact_no"))
            for t in part["template_no"].unique()
        )
    return best / rows["fact_no"].n_unique()


def manual_rank(rows: Rows) -> float:
    found: list[float] = []
    for relation in rows["relation"].unique():
        part = rows.filter(relation=relation)
        numbers = sorted(part["template_no"].unique())
        values = [over_facts(part.filter(template_no=t)) for t in numbers]
        order = rankdata([-round(value, 9) for value in values])
        manual = set(part.filter(source="manual")["template_no"])
        found += [float(o) for o, t in zip(order, numbers, strict=True) if t in manual]
    return float(np.mean(found))


def rank_agreement(first: Rows, second: Rows) -> float:
    taus = []
    for relation in first["relation"].unique():
        texts = sorted(set(first.filter(relation=relation)["text"]) & set(second["text"]))
        a, b = (
            [over_facts(r.filter(relation=relation, text=text)) for text in texts]
            for r in (first, second)
        )
        taus.append(kendalltau(a, b).statistic)
    return float(np.nanmean(taus))


def average(rows: Rows) -> float:
    """MONITOR's accuracy over questions and the base question after each wrong cue."""
    base = (pl.col("cue") == "wrong") & (pl.col("template_no") == 1)
    part = rows.filter(pl.col("answer_mode") == "generate")
    return over_relations(part.filter((pl.col("cue") == "none") | base))


def at_least(rows: Rows, level: float) -> float:
    parts = [rows.filter(pl.col("relation") == r, pl.col("confidence") >= level)
             for r in RELATIONS["ic-lke"]]  # fmt: skip
    return float(np.mean([p["correct"].mean() for p in parts if len(p)]))


def by_model(r: Mapping[str, Rows], value: Callable[[Rows], float]) -> list[float]:
    return [value(r[f"{model} full"]) for model in ("small", "large", "other")]


def easy(r: Mapping[str, Rows], name: str, is_easy: bool) -> float:
    facts = r["naive-bayes"].filter("correct")["fact"].implode()
    return over_relations(r[name].filter(pl.col("fact").is_in(facts) == is_easy))


def of(r: Rows, **values: Any) -> Rows:
    return r.filter(**values)


SMALL, LARGE, ZERO = "small masked", "large masked", "zero-shot"
TEMPLATE, MANUAL = "small template all", "small template manual"
P36, P37, P449 = "P36 label P36", "P37 label P37", "P449 label P449"
Expected = Callable[[Any], Any]
BELIEFS: dict[str, tuple[tuple[str, ...], str, Expected]] = {
    "Table 2": (("small",), "Family", lambda r: "one"),
    "Table 3": (("small", "template"), "Acc@1 MyL", lambda r: over_facts(r[TEMPLATE])),
    "Figure 1": ((), SMALL, lambda r: bins(r[SMALL])),
    "Table 4": (("template",), "Fact prediction (average Acc@1), small",
                lambda r: over_facts(r[TEMPLATE])),
    "Table 5": (("small",), "Consist", lambda r: agreement(r[MANUAL])),
    "Table 6": (("small",), "One-word generation",
                lambda r: (r[f"small {ZERO} all"]["n_words"] == 1).mean()),
    "Figure 2": ((SMALL,), LARGE, lambda r: shared_cells(r[SMALL], r[LARGE], r[MANUAL])),
    "Table 7": (("small", ZERO), "Oracle", lambda r: coverage(r[f"small {ZERO} all"])),
    "Bias": (("small",), "single-prompt", lambda r: bias_level(r["runs"][SMALL])),
    "Table 10": (("large",), "Subject", lambda r: aliases_help(r[LARGE])),
    "Table 11": (("small",), "MyriadLAMA Min", lambda r: by_template(r[SMALL], min)),
    "Table 12": (("small", ZERO), "Relation Consist",
                 lambda r: agreement(r[f"small {ZERO} all"], "alias_no")),
    "Table 13": (("small",), "Average rank of manual prompts", lambda r: manual_rank(r[SMALL])),
    "Table 14": (("template",), "Fact prediction (Acc@1), qa, small",
                 lambda r: over_facts(r["qa"])),
    "Table 15": (("large",), "Pre-training corpus", lambda r: "books"),
    "Table 16": (("small", "template"), "Overconf", lambda r: overconfidence(r[TEMPLATE])),
    "Figure 5": ((), TEMPLATE, lambda r: bins(r[TEMPLATE])),
    "Table 17": (("small", "template"), "Average Acc@1", lambda r: over_facts(r[MANUAL])),
    "Figure 6": ((), MANUAL, lambda r: bins(r[MANUAL])),
    "Table 18": (("small", "template"), "Maximum", lambda r: best_template(r[TEMPLATE])),
}  # fmt: skip
CELLS: dict[str, dict[str, tuple[tuple[Any, ...], str, Expected]]] = {
    "belief": BELIEFS,
    "belief-icl": {
        "Table 1": BELIEFS["Table 15"],
        "Table 2": BELIEFS["Table 14"],
        "Table 3": (("small", "template"), "Acc@1", BELIEFS["Table 3"][2]),
        "Figure 1": BELIEFS["Figure 1"],
        "Figure 2": BELIEFS["Figure 5"],
        "Table 4": (("small", ZERO), "Upper Limit", BELIEFS["Table 7"][2]),
        "Table 5": BELIEFS["Table 12"],
        "Table 6": (("1",), "small", lambda r: overconfidence(r[TEMPLATE], "sequence_prob")),
        "P30": ((MANUAL,), "mean", lambda r: np.mean([
            overconfidence(of(r[MANUAL], relation="P30", template_no=t), "sequence_prob")
            for t in r[MANUAL].filter(relation="P30")["template_no"].unique()])),
        "Table 7": BELIEFS["Table 5"],
        "Table 8": BELIEFS["Table 6"],
        "Figure 3 (filled masks)": (
            (SMALL,), LARGE, lambda r: rank_agreement(r[SMALL], r[LARGE])),
        "Figure 3 (generated answers)": (
            (f"small {ZERO} all",), f"large {ZERO} all",
            lambda r: rank_agreement(r[f"small {ZERO} all"], r[f"large {ZERO} all"])),
        "Figure 4": BELIEFS["Figure 2"],
        "Table A.1": BELIEFS["Table 16"],
        "Table A.2": BELIEFS["Table 17"],
    },
    "ic-lke": {
        "Figure 1": ((), "shots, 95%", lambda r: reached(r["shots"])),
        "Figure 1 (SD)": (("shots", "1"), "accuracy",
                          lambda r: over_relations(of(r["shots"], n_shots=1))),
        "Figure 1 (95%)": (("shots",), "accuracy with the most examples",
                           lambda r: over_relations(of(r["shots"], n_shots=3))),
        **{
            f"Figure 2 ({kind})": ((1,), "before", lambda r, kind=kind: r[kind].filter(
                sequence=0, place=1)["clean" if kind == "none" else "changed"].mean())
            for kind in LISTS
        },
        "Figure 3": (("small",), "EIC-LKE", lambda r: over_relations(r["small efficient"])),
        "Figure 3 (SD)": (("small",), "EIC-LKE",
                          lambda r: relation_accuracies(r["small efficient"]).std(ddof=1)),
        "Figure 4": (("[X] P449 and [Y]",), "mined, methods", lambda r: over_facts(of(
            r["methods"], context="template-examples", text="[X] P449 and [Y]"))),
        "Figure 5": ((P36,), "large", lambda r: relation_accuracies(r["large"])[2]),
        "Figure 6": (("one",), "two", lambda r: np.mean([
            np.corrcoef(relation_accuracies(r[m]), relation_accuracies(r["other"]))[0, 1]
            for m in ("small", "large", "tuned")])),
        "Table 1": (("one",), "η", lambda r: eta(r["small"], r["large"])),
        "Figure 7": ((P449,), "fine-tuned, tuned",
                     lambda r: relation_accuracies(r["tuned efficient"])[0]),
        "Figure 8": ((0.75,), "small", lambda r: at_least(r["small"], 0.75)),
        "Figure 12": ((P36,), "MMP, small", lambda r: over_facts(of(
            r["methods"], context="template", source="mined", relation="P36"))),
        "Figure 13": ((P36,), "other efficient",
                      lambda r: relation_accuracies(r["other efficient"])[2]),
        "Table 7": (("large",), "SD over relations",
                    lambda r: relation_accuracies(r["large"]).std(ddof=1)),
        "Figure 14": (("small",), "tuned", lambda r: np.corrcoef(
            relation_accuracies(r["small"]), relation_accuracies(r["tuned"]))[0, 1]),
        "Figure 15": ((P36,), "base of, tuned", lambda r: relation_accuracies(r["small"])[2]),
        "Table 10": (("small", "tuned"), "η", lambda r: eta(r["tuned"], r["small"])),
        "Figure 16": (("methods",), "MMP", lambda r: over_relations(of(
            r["methods"], context="generate", source="mined"))),
    },
    "monitor": {
        "Table 2": (("framing",), "QA", lambda r: over_facts(of(
            r["framing"], task="qa", cue="none", relation="P17"))),
        "Table 3": (("framing",), "×", lambda r: over_facts(of(
            r["framing"], task="qa", cue="none", relation="P17", template_no=1))),
        "Table 4": (("small full",), "MONITOR ↓", lambda r: monitor(r["small full"])),
        "Table 4 (R + 1 + M)": (("small",), "avg (R + 1 + M)", lambda r: average(r["small"])),
        "Table 4 (r)": ((), "Pearson correlation",
                        lambda r: np.corrcoef(by_model(r, monitor), by_model(r, average))[0, 1]),
        "Table 5": ((P37, "small"), "MONITOR ↓", lambda r: monitor(of(r["small"], relation="P37"))),
        "Table 6": (("large",), "base acc", lambda r: over_facts(of(
            r["large"], relation="P1412", cue="none", template_no=1))),
        "Figure 4": ((2,), "large", lambda r: over_facts(of(
            r["large"], relation="P1412", prompt_no=2))),
        "Figure 5": (("small",), "above 0.8", lambda r: (of(
            r["small"], relation="P37", cue="right")["probability"] > 0.8).mean()),
        "Table 7": ((P37, "Town 1"), "small, none", lambda r: of(
            r["small"], relation="P37", cue="none", subject="Town 1")["probability"].mean()),
        "Table 8": (("small full",), "full grid", lambda r: "yes"),
        "Figure 7": ((1000,), "one", lambda r: monitor(r["small full"])),
        "Figure 8": ((1000,), f"{P37}, one",
                     lambda r: monitor(of(r["small full"], relation="P37"))),
        "Figure 9": (("other",), "first 4", lambda r: monitor(first_four(r["other full"]))),
        "Figure 10": ((), "Pearson correlation", lambda r: np.corrcoef(
            by_model(r, lambda x: monitor(of(x, relation="P178"))),
            by_model(r, lambda x: monitor(first_four(x))))[0, 1]),
        "Table 10": ((P37,), "other", lambda r: monitor(of(r["other"], relation="P37"))),
        "Table 11": ((P37,), "Pearson correlation", lambda r: np.corrcoef(
            by_model(r, lambda x: monitor(of(x, relation="P37"))),
            by_model(r, lambda x: average(of(x, relation="P37"))))[0, 1]),
        "Figure 11": ((1,), "QA, framing", lambda r: over_facts(of(
            r["framing"], relation="P17", task="qa", cue="none", template_no=1))),
    },
    "optiprompt": {
        "Table 1": (("opti@small",), "Prompt", lambda r: "[X] P27 belongs to [Y]."),
        "Table 2": (("manual@small",), "N-1",
                    lambda r: over_facts(of(r["manual@small"], kind="N-1"))),
        "Table 3": (("All",), "naive-bayes", lambda r: over_relations(r["naive-bayes"])),
        "Figure 2": (("manual@small",), "majority",
                     lambda r: answered(r["manual@small"], correct=True)),
        "Figure 3": (("P27 label P27",), "class-prior", lambda r: 1.0),
        "Figure 3 (facts)": (("P27 label P27",), "Test", lambda r: common("P27")),
        "Gains": (("opti@small", "manual@small"), "Hard", lambda r: (
            easy(r, "opti@small", False) - easy(r, "manual@small", False))),
        "Table 4": (("manual@small",), "Hard", lambda r: easy(r, "manual@small", False)),
        "Table 6": (("opti",), "small", lambda r: over_relations(r["opti@small"])),
        "Table 7": (("P27 label P27",), "manual@small",
                    lambda r: over_facts(of(r["manual@small"], relation="P27"))),
        "Table 8": (("P27 label P27",), "naive-bayes, Acc.",
                    lambda r: over_facts(of(r["naive-bayes"], relation="P27"))),
        "Table 9": (("P27 label P27",), "hard, opti@small", lambda r: easy(
            {n: of(x, relation="P27") for n, x in r.items() if n != "runs"}, "opti@small", False)),
    },
}  # fmt: skip
"""A cell of each view: what its row has, its column, and what it is."""


def cell(exhibit: Exhibit, row: tuple[Any, ...], head: str) -> Any:
    axes = {"heat": "yx", "intervals": ("label", "color"), "lines": ("x", "color"),
            "histogram": ("x", "color")}  # fmt: skip
    lines = exhibit.frame.to_dicts()
    if exhibit.kind in axes:
        x, color = axes[exhibit.kind]
        value = {"heat": "color", "intervals": "x"}.get(exhibit.kind, "y")
        lines = [line for line in lines if line[color] == head]
        found = [line[value] for line in lines if not row or str(line[x]) == str(row[0])
                 or (isinstance(row[0], int | float) and abs(line[x] - row[0]) < 1e-9)]  # fmt: skip
        return found[-1 if not row else 0]
    texts = [{str(v) for v in line.values() if not isinstance(v, dict)} for line in lines]
    line = next(x for x, text in zip(lines, texts, strict=True) if {*map(str, row)} <= text)
    return line[head]["value"] if isinstance(line[head], dict) else line[head]


@pytest.mark.parametrize(("name", "view"), [(n, v) for n in sorted(CELLS) for v in CELLS[n]])
def test_a_cell_of_every_view(name: str, view: str, report: Any) -> None:
    shown, runs = report(name)
    row, head, expected = CELLS[name][view]
    exhibits = [e for e in shown.sections[0].items if e.title.startswith(f"{view}. ")]
    if name not in ROWS:
        ROWS[name] = {
            n: run.rows().with_columns(pl.col(pl.Enum).cast(pl.String)) for n, run in runs.items()
        }
    some = [e for e in exhibits if head in e.frame.columns or head in str(e.frame.rows())]
    value, expect = cell(some[-1], row, head), expected(ROWS[name] | {"runs": runs})
    if isinstance(expect, str):
        assert expect in value
    else:
        assert value == pytest.approx(float(expect), abs=1e-6)


ROWS: dict[str, dict[str, Rows]] = {}


def test_no_view_is_untested() -> None:
    for name in PAPERS:
        views = {view.name for view in read_paper(name)[1] if not view.impossible}
        assert views == set(CELLS[name])


MINE = """
title = "Towns"
[[view]]
name = "Table 1"
title = "What runs know"
columns = {"P@1" = "p_at_1"}
rows = {"Model" = "model"}
"""


def test_a_paper_of_your_own(make: Callable[..., sonde.Run], tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(MINE)
    run = make("optiprompt", "small", "lama", answer="fill")
    shown = paper(str(file), {"one": run})
    assert shown.title == "Tables and figures of Towns"
    expect = over_relations(run.rows().with_columns(pl.col(pl.Enum).cast(pl.String)))
    table: Any = shown["table-1"]
    assert cell(table, ("small",), "P@1") == pytest.approx(expect)


def test_relations_of_the_user_replace_those_of_the_paper(make: Callable[..., sonde.Run]) -> None:
    run = make("monitor", "small", "monitor", negatives=2, first_frames=1, anchor="any")
    frame = paper("monitor", {"a": run}, relations=("P1412",))["table-5"].frame
    assert frame["relation"].to_list() == ["P1412 label P1412"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("view = 3", "cannot be read: .*int"),
        ("title = 'x'", "has no views; begin each with a line"),
        ("[[view", "cannot be read"),
        ('[[view]]\nname = "A"', "title"),
        ('[[view]]\nname = "A"\ntitle = "B"\ncolums = 3', "did you mean 'columns'"),
        ('[[view]]\nname = "A"\ntitle = "B"\ncolumns = 3', "columns must be"),
        ('[[view]]\nname = "A"\ntitle = "B"\nfigure = "pie"', "must be one of table, heat"),
        ('[[view]]\nname = "A"\ntitle = "B"\nbuild = "x"', "unknown build"),
        ('[[view]]\nname = "A"\ntitle = "B"\nsort = "x"', "sort names no column"),
        ('[view]\nname = "A"', "cannot be read"),
        ('[[view]]\nname = "A"\ntitle = "B"\n[view.runs]\nrun = "("', "pattern"),
    ],
)
def test_a_paper_that_cannot_be_read(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(text)
    with pytest.raises(SondeError, match=message):
        read_paper(str(file))


@pytest.mark.parametrize("line", ['columns = {"P@1" = "p_at_l"}', 'rows = {"Model" = "modle"}'])
def test_a_view_of_unknown_names_is_not_filled(
    line: str, make: Callable[..., sonde.Run], tmp_path: Path
) -> None:
    file = tmp_path / "my.toml"
    file.write_text(f'[[view]]\nname = "A"\ntitle = "B"\n{line}\n')
    run = make("optiprompt", "small", "lama", answer="fill")
    with pytest.raises(UsageError, match="no run fits a table"):
        paper(str(file), {"one": run})


def test_bad_requests(make: Callable[..., sonde.Run]) -> None:
    runs = {"one": make("optiprompt", "small", "lama", answer="fill")}
    with pytest.raises(UsageError, match="did you mean 'ic-lke'"):
        paper("iclke", runs)
    with pytest.raises(UsageError, match="no run fits a table of 'monitor'; make one: sonde run"):
        paper("monitor", runs)
    with pytest.raises(UsageError, match="has no easy facts"):
        paper("belief", runs, easy=("one",))
    with pytest.raises(UsageError, match="has no relation 'P1'"):
        paper("belief", runs, relations=("P1",))
