"""Reports to show: a realistic LAMA report, and one that tries to break the page."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from sonde.core.reports import (
    Bars,
    Boxes,
    Cell,
    Column,
    Curve,
    Curves,
    DotPlot,
    Estimate,
    Figure,
    Headline,
    HeatMap,
    Histogram,
    Report,
    Series,
    Strip,
    Table,
)

RELATIONS = (
    ("P17", "country"), ("P19", "place of birth"), ("P20", "place of death"),
    ("P27", "country of citizenship"), ("P30", "continent"), ("P31", "instance of"),
    ("P36", "capital"), ("P37", "official language"), ("P39", "position held"),
    ("P47", "shares border with"), ("P101", "field of work"), ("P103", "native language"),
    ("P106", "occupation"), ("P108", "employer"), ("P127", "owned by"), ("P131", "located in"),
    ("P136", "genre"), ("P138", "named after"), ("P140", "religion"),
    ("P159", "headquarters location"), ("P176", "manufacturer"), ("P178", "developer"),
    ("P190", "twinned administrative body"), ("P264", "record label"), ("P276", "location"),
    ("P279", "subclass of"), ("P361", "part of"), ("P364", "original language of film"),
    ("P407", "language of work or name"), ("P413", "position played on team"),
    ("P449", "original broadcaster"), ("P463", "member of"), ("P495", "country of origin"),
    ("P527", "has part"), ("P530", "diplomatic relation"), ("P740", "location of formation"),
    ("P937", "work location"), ("P1001", "applies to jurisdiction"), ("P1303", "instrument"),
    ("P1376", "capital of"), ("P1412", "languages spoken, written or signed"),
)  # fmt: skip
KINDS = ("1-1", "N-1", "N-M")
SUBJECTS = ("São Tomé", "Lee Kuan Yew", "Ōsaka", "Toyota Corolla", "Marie Curie", "Æthelred II")
ANSWERS = ("Paris", "London", "French", "guitar", "physics", "Tokyo", "BBC", "Antarctica")


def estimate(value: float, n: int) -> Estimate:
    """An estimate with a plausible interval."""
    half = 1.96 * (max(value * (1 - value), 0.002) / n) ** 0.5
    return Estimate(value=value, low=max(0.0, value - half), high=min(1.0, value + half), n=n)


def lama(facts: int = 5000, seed: int = 0) -> Report:
    """A LAMA report over 41 relations, with so many facts to browse."""
    random = Random(f"{seed}:report")
    model = [estimate(random.betavariate(1.4, 2.6), random.randint(200, 990)) for _ in RELATIONS]
    majority = [estimate(random.betavariate(1.4, 5.0), e.n) for e in model]
    model[8] = majority[8] = Estimate.not_measured()
    return Report(
        title="LAMA: bert-base-cased on T-REx",
        summary="The model completes 31.1% of the statements with the right word, 9 points more "
        "than always answering with the most frequent object of the relation.",
        estimates=estimates(),
        counts={"facts.asked": 34017, "facts.skipped_no_single_token": 1273, "relations": 41,
                "templates": 41, "prompts": 34017},
        headlines=headlines(),
        tables=(by_kind(), by_relation(model, majority), fact_table(facts, random)),
        figures=(relation_plot(model, majority),),
        findings=("The model beats the majority control on 31 of 40 relations after correction "
                  "for 40 comparisons.",
                  "N-M relations are the hardest: the right word comes first in 24.3% of cases.",
                  "P39 (position held) could not be measured: no object is a single token."),
        notes=("Answers are restricted to the 21,018 words that all compared models share.",
               "[MASK] stands where the answer is asked for; subjects are inserted literally."),
    )  # fmt: skip


def estimates() -> dict[str, Estimate]:
    """The estimates of the LAMA report under their stable names."""
    return {
        "p_at_1.mean_over_relations": Estimate(value=0.3114, low=0.2531, high=0.3702, n=40),
        "p_at_1.mean_over_facts": Estimate(value=0.3271, low=0.3221, high=0.3321, n=34017),
        "majority.mean_over_relations": Estimate(value=0.2203, low=0.1722, high=0.2698, n=40),
        "p_at_1.over_majority": Estimate(value=0.0911, low=0.0521, high=0.1304, n=40),
        "mrr.mean_over_relations": Estimate(value=0.4052, low=0.3412, high=0.4690, n=40),
        "p_at_1.unseen_subjects": Estimate.not_measured(),
    }


def headlines() -> tuple[Headline, ...]:
    """A number with its control, one without, and one that was not measured."""
    return (
        Headline(
            label="P@1, mean over relations", estimate="p_at_1.mean_over_relations",
            control="majority.mean_over_relations", difference="p_at_1.over_majority",
        ),
        Headline(label="P@1, mean over facts", estimate="p_at_1.mean_over_facts"),
        Headline(label="P@1 on unseen subjects", estimate="p_at_1.unseen_subjects"),
    )  # fmt: skip


def by_kind() -> Table:
    """P@1 and control by cardinality, as in table 2 of the LAMA paper."""
    columns = (
        Column(title="Type", help="how many objects a subject has, and subjects an object"),
        Column(title="Relations", kind="count"),
        Column(title="P@1", kind="percent", help="share of facts whose first answer is right"),
        Column(title="Majority", kind="percent", help="always the relation's commonest object"),
    )
    rows: tuple[tuple[Cell, ...], ...] = (
        ("1-1", 2, estimate(0.745, 937), estimate(0.018, 937)),
        ("N-1", 23, estimate(0.342, 20006), estimate(0.251, 20006)),
        ("N-M", 15, estimate(0.243, 13074), estimate(0.199, 13074)),
        ("unknown", 1, Estimate.not_measured(), Estimate.not_measured()),
    )
    note = "Facts of a relation weigh the same, whatever the relation."
    return Table(id="by-kind", title="By type of relation", columns=columns, rows=rows, note=note)


def by_relation(model: list[Estimate], majority: list[Estimate]) -> Table:
    """One row per relation."""
    columns = (
        Column(title="Relation"), Column(title="Label"), Column(title="Type"),
        Column(title="P@1", kind="percent"), Column(title="Majority", kind="percent"),
    )  # fmt: skip
    rows = tuple(
        (id, label, KINDS[i % 3], model[i], majority[i]) for i, (id, label) in enumerate(RELATIONS)
    )
    return Table(id="by-relation", title="By relation", columns=columns, rows=rows)


def relation_plot(model: list[Estimate], majority: list[Estimate]) -> DotPlot:
    """P@1 of model and control for every relation."""
    return DotPlot(
        id="p-at-1",
        title="P@1 by relation, against the majority control",
        axis="P@1 (share of facts)",
        labels=tuple(f"{id} {label}" for id, label in RELATIONS),
        series=(
            Series(name="bert-base-cased", values=tuple(model)),
            Series(name="majority", values=tuple(majority)),
        ),
        note="Whiskers are 95% intervals over facts.",
    )


def fact_table(facts: int, random: Random) -> Table:
    """Every fact with the model's answers."""
    columns = (
        Column(title="Relation"), Column(title="Subject"), Column(title="Prompt"),
        Column(title="Gold"), Column(title="Top answers", help="the five likeliest words"),
        Column(title="Probability", kind="percent", help="of the gold answer"),
        Column(title="Rank", kind="count", help="of the gold answer; 1 is best"),
        Column(title="Verdict", kind="verdict"),
    )  # fmt: skip
    rows = tuple(fact_row(i, random) for i in range(facts))
    return Table(id="facts", title="Facts", columns=columns, rows=rows, browsable=True,
                 note="Each row is one fact, asked with one prompt.")  # fmt: skip


def fact_row(i: int, random: Random) -> tuple[Cell, ...]:
    """One fact; every tenth is skipped."""
    id, label = RELATIONS[random.randrange(len(RELATIONS))]
    subject, gold = f"{random.choice(SUBJECTS)} {i}", random.choice(ANSWERS)
    top = ", ".join(random.sample(ANSWERS, 5))
    prompt = f"The {label} of {subject} is [MASK]."
    if i % 10 == 9:
        return (id, subject, prompt, gold, None, None, None, None)
    rank = 1 if random.random() < 0.311 else random.randint(2, 20000)
    return (id, subject, prompt, gold, top, random.random() ** 4 / rank, rank, rank == 1)


MODELS = ("bert-base-cased", "roberta-large", "encoder-24m", "SmolLM2-135M-Instruct (4-bit)")


def belief(seed: int = 0) -> Report:
    """A report with one figure of each kind."""
    random = Random(f"{seed}:figures")
    figures = (calibration(random), fluctuation(random), template_strip(random), sharing(random),
               ranks(random), coverage())  # fmt: skip
    return Report(
        title="BELIEF: four models on atlas",
        summary="How far the answers depend on the wording.",
        estimates={"consist": estimate(0.62, 900)},
        headlines=(Headline(label="Consist", estimate="consist"),),
        figures=figures,
    )


def calibration(random: Random) -> Curves:
    """Confidence against accuracy of four models, in ten bins of very different size."""
    middles = [0.05 + k / 10 for k in range(10)]
    made = []
    for k, name in enumerate(MODELS):
        right = tuple(max(0.0, x * (0.9 - 0.15 * k) + random.uniform(-0.03, 0.03)) for x in middles)
        sizes = (*(int(4000 / (1 + b + k)) for b in range(9)), 0)
        made.append(Curve(name=name, x=tuple(middles), y=right, sizes=sizes))
    return Curves(
        id="calibration", title="How far confidence can be trusted",
        x_axis="confidence (mean of the bin)", y_axis="accuracy (share of answers that are right)",
        curves=tuple(made), diagonal=True,
        note="Below the diagonal a model is surer than it should be.",
    )  # fmt: skip


def fluctuation(random: Random) -> Histogram:
    """The accuracy of 50,000 draws of one template per relation."""
    draws = [random.gauss(0.3072, 0.0064) for _ in range(5000)]
    edges = tuple(0.28 + 0.001 * k for k in range(56))
    counts = tuple(10 * sum(a <= draw < b for draw in draws) for a, b in pairwise(edges))
    return Histogram(
        id="fluctuation", title="Accuracy under other choices of template",
        axis="accuracy of a draw", edges=edges, counts=counts,
        marks=(("lowest", min(draws)), ("mean", 0.3072), ("highest", max(draws))),
        note="Each of 50,000 draws takes one template per relation.",
    )  # fmt: skip


def template_strip(random: Random) -> Strip:
    """The accuracy of every template of twelve relations, hand-written ones told apart."""
    labels, values, names, groups = [], [], [], []
    for id, label in RELATIONS[:12]:
        count, middle = random.randint(8, 26), random.betavariate(2, 4)
        labels.append(f"{id} {label}")
        values.append(tuple(min(1, max(0, random.gauss(middle, 0.08))) for _ in range(count)))
        names.append(
            tuple(f"The {label} of [X], as wording {k} has it, is [Y]." for k in range(count))
        )
        groups.append(("manual",) * 5 + ("paraphrase",) * (count - 5))
    values[8] = (float("nan"),) * len(values[8])
    values[3] = (float("nan"), *values[3][1:])
    return Strip(
        id="templates", title="Accuracy of every template", axis="accuracy (share of pairs)",
        labels=tuple(labels), values=tuple(values), names=tuple(names), groups=tuple(groups),
        note="A dot is a template; point at it to read it.",
    )  # fmt: skip


def sharing(random: Random) -> HeatMap:
    """How much of what the row's model knows the column's model knows too."""
    values = tuple(tuple(1.0 if i == j else random.random() for j in range(4)) for i in range(4))
    unknown = (*values[2][:1], None, *values[2][2:])
    return HeatMap(
        id="sharing", title="Shared knowledge", rows=MODELS, columns=MODELS,
        values=(*values[:2], unknown, values[3]),
        note="Of what the row's model knows, the share that the column's model knows too.",
    )  # fmt: skip


def ranks(random: Random, size: int = 24) -> HeatMap:
    """Agreement about the order of templates, relation by relation: too many cells for numbers."""
    names = tuple(f"{id} {label}" for id, label in RELATIONS[:size])
    cells = [[random.uniform(-1, 1) if j > i else 1.0 for j in range(size)] for i in range(size)]
    values = [[cells[min(i, j)][max(i, j)] for j in range(size)] for i in range(size)]
    rows: list[list[float | None]] = [[*row] for row in values]
    rows[5] = [None] * size
    return HeatMap(id="ranks", title="Agreement on templates (Kendall’s τ)", rows=names, low=-1.0,
                   columns=names, values=tuple(map(tuple, rows)), kind="number")  # fmt: skip


def coverage() -> Bars:
    """What is known to the average template, the best one and any one."""
    names = ("average template", "best template", "any template (oracle)")
    levels = ((0.31, 0.42, 0.55), (0.36, 0.47, 0.61), (0.12, 0.19, 0.33), (0.22, 0.30, 0.0))
    values = [[estimate(value, 400) for value in row] for row in levels]
    values[3][2] = Estimate.not_measured()
    series = tuple(
        Series(name=name, values=tuple(row[k] for row in values)) for k, name in enumerate(names)
    )
    return Bars(id="coverage", title="How much is known at all", axis="share of facts",
                labels=MODELS, series=series, note="Whiskers are 95% intervals.")  # fmt: skip


HOSTILE = (
    "<script>window.broken = 1</script>",
    "</script><img src=x onerror='window.broken = 2'>",
    "\"quoted\" & 'single' &lt;b&gt; `${window.broken = 3}`",
    "[bold red][MASK][/bold red] [link=http://example.org]x[/link]",
    "line\u2028separator\u2029and <!-- comment <script>",
    "<b>bold</b> \x1b[31mred\x1b[0m \ud800",
)


def hostile() -> Report:
    """A report in which every text tries to be something else."""
    columns = (Column(title="<i>Text</i>", help=HOSTILE[1]), Column(title="V", kind="verdict"))
    rows: tuple[tuple[Cell, ...], ...] = tuple((words, words) for words in HOSTILE)
    small = Table(id="small", title=HOSTILE[0], columns=columns, rows=rows, note=HOSTILE[1])
    long = Table(id="long", title=HOSTILE[1], columns=columns, rows=rows, browsable=True)
    value = estimate(0.5, 10)
    values = tuple(value for _ in HOSTILE)
    plot = DotPlot(id="plot", title=HOSTILE[1], axis=HOSTILE[5], labels=HOSTILE,
                   series=(Series(name=HOSTILE[5], values=values),), note=HOSTILE[0])  # fmt: skip
    figures = (plot, *hostile_figures())
    return Report(
        title=HOSTILE[1], summary=HOSTILE[2], estimates={HOSTILE[0]: value},
        counts={HOSTILE[1]: 3}, headlines=(Headline(label=HOSTILE[3], estimate=HOSTILE[0]),),
        tables=(small, long), figures=figures, findings=HOSTILE, notes=HOSTILE,
    )  # fmt: skip


def hostile_figures() -> tuple[Figure, ...]:
    """Figures of every other kind in which every text tries to be something else."""
    bad, width = HOSTILE[1], len(HOSTILE)
    curve = Curve(name=bad, x=(0.1, 0.9), y=(0.2, 0.8), sizes=(1, 2))
    series = Series(name=bad, values=(estimate(0.5, 10),) * width)
    row = (0.5,) * width
    return (
        Curves(id="curves", title=bad, x_axis=bad, y_axis=bad, curves=(curve,), diagonal=True),
        Histogram(id="histogram", title=bad, axis=bad, edges=(0, 1, 2), counts=(3, 4),
                  marks=((bad, 0.1), (bad, 1.0), (bad, 1.9)), kind="number"),
        Strip(id="strip", title=bad, axis=bad, labels=(bad,), values=(row,), names=(HOSTILE,),
              groups=(HOSTILE,)),
        Boxes(id="boxes", title=bad, axis=bad, labels=HOSTILE, values=(row,) * width,
              names=(HOSTILE,) * width),
        HeatMap(id="heat", title=bad, rows=HOSTILE, columns=HOSTILE, values=(row,) * width),
        Bars(id="bars", title=bad, axis=bad, labels=HOSTILE, series=(series,)),
    )  # fmt: skip


PROVENANCE = {
    "dataset": {"name": "lama-trex", "version": "1", "fingerprint": "sha256:8f1c0e5b7d2a9946",
                "licence": "CC BY-NC 4.0"},
    "model": {"name": "bert-base-cased", "weights": "sha256:c3a85f238711653950f6a79ece63eb0ea9",
              "dtype": "float32", "tokenizer": "bert-base-cased", "revision": None},
    "probe": {"name": "lama", "settings": {"top": 5, "vocabulary": "shared", "shots": [0, 1]}},
    "seed": 0,
    "versions": {"python": "3.11.7", "sonde": "0.1.0", "torch": "2.9.0"},
}  # fmt: skip
