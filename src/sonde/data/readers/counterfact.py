"""Read CounterFact: facts with prompts of their own, each with a false object, and neighbours.

    counterfact-edit.json   {"case_id", "prompt", "subject", "ground_truth", "target_new",
                             "rephrase_prompt", "locality_prompt", "locality_ground_truth"}
    counterfact.json        the original release: {"case_id", "requested_rewrite": {"prompt" (with
                             {} for the subject), "relation_id", "subject", "target_true": {"str",
                             "id"}, "target_new"}, "paraphrase_prompts", "neighborhood_prompts"}

Each file is one list. A case is a fact of the split `test`: what is true is its object, what an
edit would write its wrong one, and its prompts are details. A neighbour, of which the file has
nothing but a prompt, is a fact of the split `neighbourhood`, whose detail `case` names the case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sonde.core.errors import DataError
from sonde.core.facts import Card, Dataset, Entity, Fact, Relation, Template
from sonde.data.format import hash_files
from sonde.data.lines import INCOMPLETE, Row, complete_rows, read_list
from sonde.data.readers import Published
from sonde.data.wordings import known_relation

EDIT, ORIGINAL = "counterfact-edit", "counterfact"
FILES = tuple(f"{name}.json" for name in (EDIT, ORIGINAL, "multi_counterfact"))
NEIGHBOURHOOD = "neighbourhood"
DESCRIPTIONS = {
    EDIT: "Of the 1,500 rephrased prompts of this file many ask for something else than the "
    'case does ("People in Lyon\'s twin city speak the language of"): what is read from them is '
    "this file's score, not one of paraphrases alone.",
    ORIGINAL: "",
}
NEEDED = (
    *("subject", "prompt", "rephrase_prompt", "ground_truth", "target_new"),
    *("locality_prompt", "locality_ground_truth"),
)
PASSED_OVER = ("attribute_prompts", "generation_prompts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A fact with its prompts, and the prompts of its neighbours with what is true of these."""

    id: str
    relation: str
    subject: str
    prompts: tuple[str, ...]
    true: Entity
    new: Entity
    neighbours: tuple[tuple[str, Entity], ...]

    def facts(self) -> Iterator[Fact]:
        """The fact itself, then its neighbours."""
        names = ("prompt", *(f"paraphrase-{n}" for n in range(1, len(self.prompts))))
        yield self._fact(
            self.id, self.subject, self.true, dict(zip(names, self.prompts, strict=True))
        )
        for number, (prompt, true) in enumerate(self.neighbours, 1):
            details = {"prompt": prompt, "case": self.id}
            fact = self._fact(f"{self.id}-neighbour-{number}", prompt, true, details)
            yield replace(fact, split=NEIGHBOURHOOD)

    def _fact(self, id: str, subject: str, true: Entity, details: dict[str, str]) -> Fact:
        return Fact(
            id=id,
            relation=self.relation,
            subject=Entity.named(subject),
            objects=(true,),
            wrong=(self.new,),
            details=details,
        )


def _read(folder: Path) -> Dataset:
    """Open a file, or the one that a folder has."""
    path = folder if folder.is_file() else _path(folder)
    notes: Counter[str] = Counter()
    cases = [_case(row, notes) for row in complete_rows(read_list(path), NEEDED, notes)]
    if not cases:
        raise DataError(f"{path} holds no case of CounterFact")
    by_relation: dict[str, list[Case]] = {}
    for case in cases:
        by_relation.setdefault(case.relation, []).append(case)
    name = EDIT if ORIGINAL in by_relation else ORIGINAL
    return Dataset(
        card=Card(
            name=name,
            licence="MIT",
            sources=("CounterFact (Meng et al., 2022)",),
            description=DESCRIPTIONS[name],
        ),
        relations=tuple(_relation(id, own) for id, own in by_relation.items()),
        read=lambda id: [fact for case in by_relation[id] for fact in case.facts()],
        fingerprint=hash_files(path.parent, [path]),
        notes={"cases_read": len(cases) + notes.get(INCOMPLETE, 0), **notes},
    )


def _path(folder: Path) -> Path:
    held = [folder / name for name in FILES if (folder / name).is_file()]
    if len(held) == 1:
        return held[0]
    there = ", ".join(path.name for path in held) or "none of them"
    raise DataError(f"{folder}: give one file of {', '.join(FILES)}; it holds {there}")


def _relation(id: str, cases: Sequence[Case]) -> Relation:
    """The sentences close with a full stop, which models that read both sides look for."""
    most = max(len(case.prompts) for case in cases)
    own = Template(id=f"{id}-prompt", text="[details.prompt] [Y].", group=f"{id}-prompt")
    others = (
        Template(
            id=f"{id}-paraphrase-{number}",
            text=f"[details.paraphrase-{number}] [Y].",
            source="paraphrase",
            group=own.id,
        )
        for number in range(1, most)
    )
    known = known_relation(id, "CounterFact" if id == ORIGINAL else id)
    return Relation(id=id, label=known.label, templates=(own, *others))


def _case(row: Row, notes: Counter[str]) -> Case:
    for name in PASSED_OVER:
        if prompts := row.texts(name, empty=True):
            notes[f"{name}_left_out"] += len(prompts)
    case = _released(row) if "requested_rewrite" in row.values else _edited(row)
    if case.new.name in {case.true.name, *(true.name for _, true in case.neighbours)}:
        raise row.fault("the new object must differ from what is true", case.new.name)
    return case


def _edited(row: Row) -> Case:
    neighbour = row.text("locality_prompt"), Entity.named(row.text("locality_ground_truth"))
    return Case(
        id=_id(row),
        relation=ORIGINAL,
        subject=row.text("subject"),
        prompts=(row.text("prompt"), row.text("rephrase_prompt")),
        true=Entity.named(row.text("ground_truth")),
        new=Entity.named(row.text("target_new")),
        neighbours=(neighbour,),
    )


def _released(row: Row) -> Case:
    """A case of the original release; its neighbours have the object that it has."""
    rewrite = row.row("requested_rewrite")
    subject, prompt, true = (
        rewrite.text("subject"),
        rewrite.text("prompt"),
        _target(rewrite, "true"),
    )
    if prompt.count("{}") != 1:
        raise rewrite.fault("'prompt' must hold {} once, for the subject", prompt)
    return Case(
        id=_id(row),
        relation=rewrite.text("relation_id"),
        subject=subject,
        prompts=(prompt.replace("{}", subject), *row.texts("paraphrase_prompts", empty=True)),
        true=true,
        new=_target(rewrite, "new"),
        neighbours=tuple((p, true) for p in row.texts("neighborhood_prompts", empty=True)),
    )


def _target(rewrite: Row, which: str) -> Entity:
    target = rewrite.row(f"target_{which}")
    name = target.text("str")
    return Entity(id=target.text("id", name), names=(name,))


def _id(row: Row) -> str:
    value = row.values.get("case_id")
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise row.fault("'case_id' must be a number or a text", value)
    return str(value)


COMPONENT = Published(
    name="counterfact",
    summary="CounterFact: counterfact-edit.json, or counterfact.json as released",
    recognises=lambda folder: any((folder / name).is_file() for name in FILES),
    read=_read,
    takes_file=True,
)
