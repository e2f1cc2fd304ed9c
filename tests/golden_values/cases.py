"""What is frozen: a table of named cases. Small and quick: three relations, a few facts of each.

A further case is a further line, and `python -m tests.golden_values.refresh NAME`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from .kinds import Analysis, Card, Case, Lab, Learning, Reread, Resumed, Run, Told
from .plain import Document
from .workshop import ANSWERS, Asked, Workshop


def _atlas(probe: str, model: str, limit: int = 4, controls: str = "", **settings: Any) -> Asked:
    return Asked(
        probe=probe,
        model=model,
        relations=("P30", "P36", "P37"),
        limit=limit,
        settings=settings,
        controls=controls,
    )


def _nobel(probe: str, model: str, limit: int = 12, **settings: Any) -> Asked:
    return Asked(probe=probe, model=model, data="nobel", limit=limit, settings=settings)


def _tongues(probe: str, model: str, **settings: Any) -> Asked:
    return Asked(probe=probe, model=model, data="tongues", settings=settings)


def _world(probe: str, model: str, limit: int = 6, controls: str = "", **settings: Any) -> Asked:
    return Asked(
        probe=probe,
        model=model,
        data="world",
        relations=("R01", "R03", "R07"),
        limit=limit,
        settings=settings,
        controls=controls,
    )


Settings = dict[str, Any]

COUNTED = "majority,class-prior,naive-bayes"
FEW: Settings = {"draws": 500}
ICL: Settings = {"samples": 3, "most": 3, "floor": 2, **FEW}
SPACES: Settings = {"inside": "space", "between": "space"}
EIC: Settings = {"training": 20, "start": 10, "stride": 2}
COMMAS: Settings = {"inside": "space", "between": "comma", **EIC}
SEQUENCE: Settings = {"length": 20, "replaced": 4, "seeds": 2}
ROUGH: Settings = {"most": 4, "frames": 2, "negatives": 3}
TABLE = ANSWERS / "models.toml"

CONTEXTS = ("zero-shot", "random", "relation", "template")
STYLES = ("mask", "qa")

ASKED = tuple(
    "lama lama-unused belief-average belief-max belief-oracle belief-icl ic-lke eic-lke "
    "monitor-anchor monitor-distance".split()
)
TRAINED = ("optiprompt", "optiprompt-random")

CASES: dict[str, Case] = {
    # lama
    "lama-filled": Run(_world("lama", "masked", 12, controls="all")),
    "lama-scored": Run(_world("lama", "causal", 12, controls="all")),
    "lama-scored-by-token": Run(_atlas("lama", "llama", normalise="tokens")),
    "lama-scored-seq2seq": Run(_atlas("lama", "t5")),
    "lama-filled-any-token": Run(_atlas("lama", "bert", 12, vocabulary="full")),
    "lama-second-template": Run(_world("lama", "masked", 12, template=2)),
    "lama-random": Run(_world("lama", "random", 12)),
    "lama-bayes-world": Run(_world("lama", "naive-bayes", 12)),
    "lama-filled-bayes": Run(_atlas("lama", "naive-bayes", 12, answer="fill")),
    "lama-scored-bayes": Run(_atlas("lama", "naive-bayes", 12, answer="score")),
    "lama-scored-prior": Run(_atlas("lama", "class-prior", 12, answer="score")),
    "lama-few": Run(_atlas("lama", "few", 12, answer="score", uhn="names", controls=COUNTED)),
    "lama-many": Run(_atlas("lama", "many", 12, answer="score", uhn="names")),
    "lama-names": Run(_atlas("lama", "gpt2", uhn="names")),
    "lama-nobel": Run(_nobel("lama", "many", answer="score")),
    "lama-reread": Reread("lama-many", {"k": 3}),
    "lama-languages": Run(_tongues("lama", "llama")),
    "lama-languages-majority": Run(_tongues("lama", "majority", answer="score")),
    "lama-languages-filled": Run(_tongues("lama", "majority", answer="fill")),
    "lama-languages-relation": Run(_tongues("lama", "llama", options="relation")),
    # belief
    "belief-filled": Run(_world("belief", "masked", controls="all", **FEW)),
    "belief-scored": Run(_world("belief", "causal", **FEW)),
    "belief-scored-seq2seq": Run(_world("belief", "t5", 3, bias=False, **FEW)),
    "belief-filled-names": Run(_atlas("belief", "bert", 2, **FEW)),
    "belief-plain": Run(
        _world("belief", "masked", 12, templates="manual", names="original", bias=False, **FEW)
    ),
    "belief-filled-few": Run(_atlas("belief", "few", answer="fill", **FEW)),
    "belief-filled-many": Run(_atlas("belief", "many", answer="fill", controls=COUNTED, **FEW)),
    "belief-scored-bayes": Run(_atlas("belief", "naive-bayes", answer="score", **FEW)),
    "belief-scored-prior": Run(_world("belief", "class-prior", answer="score", **FEW)),
    "belief-languages": Run(_tongues("belief", "llama", bias=False, **FEW)),
    "belief-reread": Reread("belief-scored", {"draw": "pair", "draws": 300}),
    # belief-icl
    **{
        f"belief-icl-{style}-{context}": Run(
            _world("belief-icl", "causal", 4, style=style, context=context, questions=True, **ICL)
        )
        for style in STYLES
        for context in CONTEXTS
    },
    "belief-icl-per-fact": Run(
        _world("belief-icl", "causal", shots=2, shots_per="fact", names="all", **ICL)
    ),
    "belief-icl-counted": Run(_atlas("belief-icl", "naive-bayes", **ICL)),
    "belief-icl-table": Run(_nobel("belief-icl", "many", **ICL)),
    "belief-icl-reread": Reread("belief-icl-counted", {"draw": "pair", "language": "none"}),
    # counterfact, and what is read of dates
    "counterfact": Run(Asked(probe="counterfact", model="gpt2", data="cases")),
    "counterfact-masked": Run(Asked(probe="counterfact", model="bert", data="cases")),
    "counterfact-drawn": Run(_atlas("counterfact", "naive-bayes", 6)),
    "counterfact-reread": Reread("counterfact", {"edited": True, "normalise": "tokens"}),
    "dates": Run(Asked(probe="lama", model="majority", data="clubs", settings={"answer": "score"})),
    "dates-written": Run(
        Asked(
            probe="belief-icl", model="gpt2", data="clubs", settings={"context": "zero-shot", **ICL}
        )
    ),
    # what is read of tags
    "tags": Run(Asked(probe="lama", model="majority", data="tagged", settings={"answer": "score"})),
    "tags-belief": Run(Asked(probe="belief", model="gpt2", data="tagged", settings=FEW)),
    # in-context estimation
    "ic-lke": Run(_world("ic-lke", "causal", 12, n=5, controls="all", **SPACES)),
    "ic-lke-gpt2": Run(_world("ic-lke", "gpt2", 12, n=5, **SPACES)),
    "ic-lke-llama": Run(_world("ic-lke", "llama", 12, n=5, **SPACES)),
    "ic-lke-seeds": Run(_world("ic-lke", "causal", n=5, seeds=3, options=8)),
    "ic-lke-names": Run(_atlas("ic-lke", "many", n=5, names="all", seeds=2, **SPACES)),
    "ic-lke-nobel": Run(_nobel("ic-lke", "majority", n=10, options=20, **SPACES)),
    "ic-lke-reread": Reread("ic-lke-names", {"levels": (0.1, 0.6)}),
    "eic-lke-facts": Run(_world("eic-lke", "causal", **COMMAS)),
    "eic-lke-options": Run(_world("eic-lke", "causal", layout="options", **EIC)),
    "eic-lke-table": Run(_atlas("eic-lke", "many", **COMMAS)),
    "lke-shots": Run(_world("lke-shots", "causal", n=(1, 5, 10), seeds=2)),
    "lke-shots-table": Run(_atlas("lke-shots", "many", n=(1, 5), seeds=2)),
    "lke-sequence": Run(_world("lke-sequence", "causal", **SEQUENCE)),
    **{
        f"lke-sequence-{replace}-{layout}": Run(
            _world("lke-sequence", "causal", replace=replace, layout=layout, **SEQUENCE)
        )
        for replace in ("unknown", "incorrect")
        for layout in ("spread", "block")
    },
    "lke-sequence-table": Run(_atlas("lke-sequence", "many", replace="incorrect", **SEQUENCE)),
    "lke-separators": Run(_world("lke-separators", "causal", n=5, seeds=2)),
    "lke-separators-table": Run(_atlas("lke-separators", "many", n=5, seeds=1)),
    "lke-baselines": Run(_world("lke-baselines", "causal", n=5, most=4)),
    "lke-baselines-table": Run(_atlas("lke-baselines", "many", n=5, most=4)),
    # bear
    "bear-causal": Run(_world("bear", "causal", 6)),
    "bear-masked": Run(_world("bear", "masked", 3)),
    "bear-masked-answer": Run(_world("bear", "masked", 3, score="answer", hidden="answer")),
    "bear-seq2seq": Run(_atlas("bear", "t5", score="answer", normalise="tokens")),
    "bear-few": Run(_atlas("bear", "few", 12)),
    # monitor and framing
    "monitor": Run(_world("monitor", "causal", most=4)),
    "monitor-shots": Run(_world("monitor", "causal", frame="qa", shots=2, full=True, **ROUGH)),
    "monitor-gpt2": Run(_world("monitor", "gpt2", frame="qa", shots=2, full=True, **ROUGH)),
    "monitor-table": Run(_atlas("monitor", "many", controls=COUNTED, most=4)),
    "monitor-few": Run(_atlas("monitor", "few", most=4)),
    "monitor-majority": Run(_atlas("monitor", "majority", most=4)),
    "monitor-reread": Reread("monitor-shots", {"anchor": "any", "alphas": (0.5, 0.3, 0.2)}),
    "monitor-prefix": Reread("monitor-table", {"anchor": "prefix"}),
    "framing": Run(_world("framing", "causal", 4)),
    "framing-shots": Run(_world("framing", "causal", 3, frame="qa", shots=2, paraphrases=2)),
    "framing-table": Run(_atlas("framing", "many", 3, paraphrases=3)),
    "qa": Run(_world("qa", "causal", most=6, separator=", ", layout="lines")),
    "qa-table": Run(_atlas("qa", "many", 12, controls=COUNTED)),
    "qa-people": Run(Asked(probe="qa", model="majority", data="people")),
    "qa-reread": Reread("qa-table", {"match": "within", "language": "none"}),
    # analyses
    "analyse-belief": Analysis(
        ("belief-filled-many", "belief-filled-few", "belief-scored-bayes"),
        {"groups": "a,a,b", "draw": "pair"},
    ),
    "analyse-belief-kinds": Analysis(
        ("belief-filled", "belief-scored", "belief-scored-prior"), {"models": TABLE, "floor": 2}
    ),
    "analyse-belief-icl": Analysis(
        tuple(f"belief-icl-{style}-{context}" for style in STYLES for context in CONTEXTS),
        {"groups": "context", "floor": 2},
    ),
    "analyse-lke": Analysis(("ic-lke", "ic-lke-gpt2", "ic-lke-llama"), {"models": TABLE}),
    "analyse-monitor": Analysis(("monitor-shots", "monitor-gpt2"), {"frames": 1}),
    "analyse-monitor-tables": Analysis(("monitor-majority", "monitor-few", "monitor-table")),
    "analyse-lama": Analysis(("lama-many", "lama-few", "lama-scored-bayes"), {"seed": 3}),
    "learning": Learning(
        ("lama-filled", "lama-second-template", "lama-bayes-world", "lama-random")
    ),
    "learning-tables": Learning(
        ("lama-few", "lama-many", "lama-scored-bayes", "lama-scored-prior"),
        easy=("lama-scored-prior",),
    ),
    # the lab
    "lab": Lab((*ASKED, "class-prior", "naive-bayes")),
    "lab-made-up": Lab(("lama", "belief-average", *TRAINED, "class-prior"), made_up=True),
    # what is said of a run before it is made
    **{
        f"doctor-{model}": Told(
            "doctor", replace(_atlas("lama", model, 1), relations=("P30", "P36"))
        )
        for model in ("llama", "bert", "t5", "majority")
    },
    **{
        f"plan-{probe}-{model}": Told("plan", _world(probe, model, **settings), ("--measure", "0"))
        for probe, model, settings in (
            ("belief", "masked", {}),
            ("ic-lke", "causal", SPACES),
            ("monitor", "causal", {}),
            ("lama", "t5", {}),
            ("lama", "majority", {}),
        )
    },
    # cards
    **{f"card-{data}": Card(data) for data in ("nobel", "world")},
    # bytes
    "resumed-lama": Resumed(_atlas("lama", "naive-bayes", 12, answer="score")),
    "resumed-belief": Resumed(_atlas("belief", "many", 2, answer="fill")),
    "resumed-belief-icl": Resumed(_atlas("belief-icl", "few", 12, **ICL)),
    "resumed-eic-lke": Resumed(_atlas("eic-lke", "many", **COMMAS)),
    "resumed-monitor": Resumed(_atlas("monitor", "majority", most=4)),
}


def workshop(folder: Path) -> Workshop:
    """A workshop that makes the runs of the table."""
    runs = {name: case.asked for name, case in CASES.items() if isinstance(case, Run)}
    return Workshop(folder=folder, asked=runs)


def document(name: str, shop: Workshop) -> Document:
    """What the case of that name comes to now, less the names of this machine's folders."""
    found: Document = shop.without_places(CASES[name].document(name, shop))
    return found
