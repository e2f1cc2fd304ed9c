"""What is frozen: a table of named cases. Small and quick: three relations, a few facts of each.

A further case is a further line, and `python -m tests.golden_values.refresh NAME`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from .kinds import Card, Case, Comparison, Lab, Learning, Reread, Resumed, Run, Told
from .plain import Document
from .workshop import Asked, Workshop


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
FEW: Settings = {"fluctuation_draws": 500}
ICL: Settings = {"samples": 3, "max_tokens": 3, "min_prompts": 2, **FEW}
SPACES: Settings = {"pair_separator": "space", "example_separator": "space"}
EIC: Settings = {"examples": 20, "start": 10, "stride": 2}
COMMAS: Settings = {"pair_separator": "space", "example_separator": "comma", **EIC}
SEQUENCE: Settings = {"length": 20, "replaced": 4, "seeds": 2}
ROUGH: Settings = {"max_tokens": 4, "frames": 2, "negatives": 3}

CELLS = (("mask", "template"), ("qa", "relation"), ("qa", "zero-shot"))

ASKED = tuple(
    "lama lama-unused belief-average belief-max belief-oracle belief-icl ic-lke eic-lke "
    "monitor-anchor monitor-distance".split()
)
TRAINED = ("optiprompt", "optiprompt-random")

CASES: dict[str, Case] = {
    # lama
    "lama-filled": Run(_world("lama", "masked", 12, controls="all")),
    "lama-scored": Run(_world("lama", "causal", 12, controls="all")),
    "lama-scored-by-token": Run(_atlas("lama", "llama", normalize="tokens")),
    "lama-second-template": Run(_world("lama", "masked", 12, template_no=2)),
    "lama-filled-bayes": Run(_atlas("lama", "naive-bayes", 12, answer="fill")),
    "lama-few": Run(_atlas("lama", "few", 12, answer="score", uhn="names", controls=COUNTED)),
    "lama-many": Run(_atlas("lama", "many", 12, answer="score", uhn="names")),
    "lama-names": Run(_atlas("lama", "gpt2", uhn="names")),
    "lama-reread": Reread("lama-many", {"k": 3}),
    "lama-languages": Run(_tongues("lama", "llama")),
    "lama-languages-filled": Run(_tongues("lama", "majority", answer="fill")),
    # belief
    "belief-filled": Run(_world("belief", "masked", controls="all", **FEW)),
    "belief-scored": Run(_world("belief", "causal", **FEW)),
    "belief-plain": Run(
        _world(
            "belief", "masked", 12, template_source="manual", aliases="original", bias=False, **FEW
        )
    ),
    "belief-filled-many": Run(_atlas("belief", "many", answer="fill", controls=COUNTED, **FEW)),
    "belief-scored-bayes": Run(_atlas("belief", "naive-bayes", answer="score", **FEW)),
    "belief-languages": Run(_tongues("belief", "llama", bias=False, **FEW)),
    "belief-reread": Reread("belief-scored", {"fluctuation_draws": 300}),
    # belief-icl
    **{
        f"belief-icl-{style}-{context}": Run(
            _world("belief-icl", "causal", 4, style=style, context=context, questions=True, **ICL)
        )
        for style, context in CELLS
    },
    "belief-icl-per-fact": Run(
        _world("belief-icl", "causal", shots=2, shots_per="fact", aliases="all", **ICL)
    ),
    "belief-icl-counted": Run(_atlas("belief-icl", "naive-bayes", **ICL)),
    "belief-icl-table": Run(_nobel("belief-icl", "many", **ICL)),
    "belief-icl-reread": Reread("belief-icl-counted", {"language": "none"}),
    # counterfact, and what is read of dates
    "counterfact": Run(Asked(probe="counterfact", model="gpt2", data="cases")),
    "counterfact-masked": Run(Asked(probe="counterfact", model="bert", data="cases")),
    "counterfact-reread": Reread("counterfact", {"edited": True, "normalize": "tokens"}),
    "dates": Run(Asked(probe="lama", model="majority", data="clubs", settings={"answer": "score"})),
    # what is read of tags
    "tags": Run(Asked(probe="lama", model="majority", data="tagged", settings={"answer": "score"})),
    # in-context estimation
    "ic-lke": Run(_world("ic-lke", "causal", 12, shots=5, controls="all", **SPACES)),
    "ic-lke-seeds": Run(_world("ic-lke", "causal", shots=5, seeds=3, max_options=8)),
    "ic-lke-names": Run(_atlas("ic-lke", "many", shots=5, names="all", seeds=2, **SPACES)),
    "ic-lke-reread": Reread("ic-lke-names", {"levels": (0.1, 0.6)}),
    "eic-lke-facts": Run(_world("eic-lke", "causal", **COMMAS)),
    "eic-lke-table": Run(_atlas("eic-lke", "many", **COMMAS)),
    "lke-shots": Run(_world("lke-shots", "causal", shots=(1, 5, 10), seeds=2)),
    **{
        f"lke-sequence-{replace}-{layout}": Run(
            _world("lke-sequence", "causal", replace=replace, sequence_layout=layout, **SEQUENCE)
        )
        for replace, layout in (("unknown", "block"), ("incorrect", "spread"))
    },
    "lke-baselines": Run(_world("lke-baselines", "causal", shots=5, max_tokens=4)),
    # bear
    "bear-causal": Run(_world("bear", "causal", 6)),
    "bear-masked-answer": Run(_world("bear", "masked", 3, score="answer", mask="answer")),
    "bear-few": Run(_atlas("bear", "few", 12)),
    # monitor and framing
    "monitor-shots": Run(_world("monitor", "causal", frame="qa", shots=2, full=True, **ROUGH)),
    "monitor-table": Run(_atlas("monitor", "many", controls=COUNTED, max_tokens=4)),
    "monitor-reread": Reread("monitor-shots", {"anchor": "any", "alphas": (0.5, 0.3, 0.2)}),
    "framing-shots": Run(_world("framing", "causal", 3, frame="qa", shots=2, paraphrases=2)),
    "framing-table": Run(_atlas("framing", "many", 3, paraphrases=3)),
    "qa-table": Run(_atlas("qa", "many", 12, controls=COUNTED)),
    "qa-people": Run(Asked(probe="qa", model="majority", data="people")),
    "qa-reread": Reread("qa-table", {"match": "within", "language": "none"}),
    # comparisons
    "compare-belief": Comparison(("belief-filled-many", "belief-scored-bayes")),
    "compare-lama": Comparison(("lama-many", "lama-few", "lama-filled-bayes"), {"seed": 3}),
    "compare-probes": Comparison(("lama-many", "qa-table")),
    "learning": Learning(("lama-few", "lama-many", "lama-filled-bayes")),
    # the lab
    "lab": Lab((*ASKED, "class-prior", "naive-bayes")),
    "lab-made-up": Lab(("lama", "belief-average", *TRAINED, "class-prior"), made_up=True),
    # what is said of a run before it is made
    **{
        f"doctor-{model}": Told(
            "doctor", replace(_atlas("lama", model, 1), relations=("P30", "P36"))
        )
        for model in ("llama", "majority")
    },
    **{
        f"plan-{probe}-{model}": Told("plan", _world(probe, model, **settings), ("--measure", "0"))
        for probe, model, settings in (
            ("belief", "masked", {}),
            ("ic-lke", "causal", SPACES),
        )
    },
    # cards
    "card-world": Card("world"),
    # bytes
    "resumed-lama": Resumed(_atlas("lama", "naive-bayes", 12, answer="score")),
    "resumed-monitor": Resumed(_atlas("monitor", "majority", max_tokens=4)),
}


def workshop(folder: Path) -> Workshop:
    """A workshop that makes the runs of the table."""
    runs = {name: case.asked for name, case in CASES.items() if isinstance(case, Run)}
    return Workshop(folder=folder, asked=runs)


def document(name: str, shop: Workshop) -> Document:
    """What the case of that name comes to now, less the names of this machine's folders."""
    found: Document = shop.without_places(CASES[name].document(name, shop))
    return found
