"""Reports to show: a realistic LAMA report, and one that tries to break the page."""

from __future__ import annotations

from random import Random

from sonde.core.reports import (
    Cell,
    Column,
    DotPlot,
    Estimate,
    Headline,
    Report,
    Series,
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
    return Report(
        title=HOSTILE[1], summary=HOSTILE[2], estimates={HOSTILE[0]: value},
        counts={HOSTILE[1]: 3}, headlines=(Headline(label=HOSTILE[3], estimate=HOSTILE[0]),),
        tables=(small, long), figures=(plot,), findings=HOSTILE, notes=HOSTILE,
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
