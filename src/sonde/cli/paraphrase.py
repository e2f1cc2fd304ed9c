"""`sonde data paraphrase`: have a chat model say the templates of a dataset in other words."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, dataclass, replace
from pathlib import Path

from sonde.cli.console import print_table, progress, resumable, say, waiting
from sonde.cli.endpoint import EndpointOptions, asking, show_asked
from sonde.cli.options import FOLDER, FORCE, SourceOptions, argument, matching, option, verb
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Relation
from sonde.data.builders import check_place, write_whole
from sonde.data.builders.endpoint import Asker, read_by_relation
from sonde.data.builders.myriadlama.paraphrases import (
    BY_HAND,
    INSTRUCTION,
    Fault,
    Paraphrased,
    Recipe,
    by_hand_doubt,
    expected,
    paraphrase_all,
)
from sonde.data.builders.work import work_of
from sonde.data.lines import read_lines
from sonde.data.review.judgements import dropped, read_judgements

NAMED = 8
"""Relations that are named in a message; the rest is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParaphraseOptions:
    """How many paraphrases are asked for, and with which words."""

    ask: EndpointOptions
    paraphrases: int = option("Paraphrases of each template.", 19, least=1)
    patience: int = option("Answers in a row without anything new, before it stops.", 5, least=1)
    fewer: bool = option("Where nothing new comes any more, go on with fewer.", False, "--fewer")
    hints: Path | None = option(
        "What [X] and [Y] are: JSON lines with relation and text, told to the model.", None
    )
    instruction: Path | None = option(
        "Ask with the words of this file: {sentence}, {count} and {hint} are filled in.", None
    )

    dropped: Path | None = option(
        "Judgements of 'sonde data review': what most reviewers dropped is not taken again.", None
    )

    @property
    def recipe(self) -> Recipe:
        """What is wanted of a template; the instruction and the judgements are read."""
        text = INSTRUCTION
        if self.dropped is not None and not self.dropped.is_file():
            raise DataError(f"{self.dropped} is missing; 'sonde data review' writes such a file")
        judged = read_judgements(self.dropped) if self.dropped else []
        if self.instruction is not None:
            text = "\n".join(line for _, line in read_lines(self.instruction))
        return matching(Recipe, self, instruction=text, dropped=dropped(judged, "majority"))

    def hints_for(self, relations: Sequence[Relation]) -> dict[str, str]:
        """The hints by relation; refuses one for a relation that is not there."""
        given = read_by_relation(self.hints) if self.hints else {}
        known = {relation.id for relation in relations}
        if strange := sorted(set(given) - known):
            raise DataError(f"{self.hints}: {strange[0]!r} is no relation of this dataset")
        return {relation: " ".join(texts) for relation, texts in given.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which templates are paraphrased, and where they go."""

    name: str = argument("The dataset whose templates are paraphrased.")
    out: Path = option(FOLDER, MISSING, "--out", "-o")
    source: SourceOptions
    say: ParaphraseOptions
    relations: str = option("Only these relations, separated by commas; the others stay.", "")
    force: bool = option(FORCE, False, "--force")


@verb
@resumable()
def paraphrase(wanted: Wanted) -> None:
    """Have a chat model paraphrase a dataset's templates, in the manner of MyriadLAMA.

    The key of an endpoint is taken from the environment variable SONDE_API_KEY.

    Example: sonde data paraphrase atlas --endpoint http://localhost:8000/v1 --model NAME -o ./more
    """
    out, options = wanted.out, wanted.say
    recipe, endpoint = options.recipe, options.ask.place()
    if endpoint is None:
        raise UsageError("name who writes: --endpoint URL with --model NAME")
    check_place(out, force=wanted.force)
    with waiting("reading the dataset"):
        dataset = wanted.source.load(wanted.name)
    names = [name.strip() for name in wanted.relations.split(",") if name.strip()]
    chosen = [dataset.relation(name) for name in names] or list(dataset.relations)
    hints = options.hints_for(dataset.relations)
    with asking(endpoint, out) as (asker, chat):
        assert asker and chat
        found = have_paraphrased(dataset, chosen, asker, recipe, hints)
        with waiting(f"writing {out}"):
            write_whole(_with(dataset, found, endpoint.model), out, force=wanted.force)
        shutil.rmtree(work_of(out), ignore_errors=True)
    show_paraphrased(found, recipe)
    templates = sum(len(each.relation.templates) for each in found)
    say(f"{out}: {templates:,} templates of {len(found)} relations, paraphrases among them")
    show_asked(asker.journal, chat)


def have_paraphrased(
    dataset: Dataset,
    relations: Sequence[Relation],
    asker: Asker,
    recipe: Recipe,
    hints: dict[str, str],
) -> list[Paraphrased]:
    """Say what asking will cost, then ask; `dataset` names the objects that nothing may tell."""
    show_expected(relations, recipe, hints, len(asker.journal))

    def objects(relation: str) -> tuple[str, ...]:
        return dataset.object_names(relation, aliases=True)

    with progress("paraphrasing, templates") as tick:
        asked = paraphrase_all(
            relations, asker, recipe, hints=hints, objects=objects, progress=tick
        )
        return list(asked)


def show_expected(
    relations: Sequence[Relation], recipe: Recipe, hints: dict[str, str], kept: int
) -> None:
    """Print what asking will cost, and which relations have other templates than the paper's."""
    if doubts := [(r.id, doubt) for r in relations if (doubt := by_hand_doubt(r))]:
        named = "; ".join(f"{id} ({doubt})" for id, doubt in doubts[:NAMED])
        more = f" and {len(doubts) - NAMED} more" if len(doubts) > NAMED else ""
        say(
            f"MyriadLAMA has {BY_HAND} templates by hand for each relation, one of them a question "
            f"at least; fewer here: {named}{more}"
        )
    cost = expected(relations, recipe, hints)
    before = f" ({kept:,} answers are kept from before)" if kept else ""
    say(
        f"{cost.paraphrases:,} paraphrases of {cost.templates:,} templates are wanted: at least "
        f"{cost.templates:,} requests{before}, roughly {cost.sent:,} tokens to send and "
        f"{cost.received:,} to receive"
    )


def show_paraphrased(found: Iterable[Paraphrased], recipe: Recipe) -> None:
    """Print what became of every relation and of the sentences that could not be used."""
    faults: tuple[Fault, ...] = ("slots", "repeated", "telling", "unfit")
    rows, short = [], []
    for each in found:
        refused = sum((made.refused for made in each.made), Counter[Fault]())
        texts = [len(made.texts) for made in each.made]
        counts = (len(texts), sum(texts), *(refused[fault] for fault in faults))
        rows.append((each.relation.id, each.relation.label, *counts))
        short += [
            f"{made.parent.id} ({len(made.texts)})"
            for made in each.made
            if len(made.texts) < recipe.paraphrases
        ]
    titles = ("relation", "label", "templates", "paraphrases", *faults)
    print_table(titles, rows, right=range(2, 8))
    if short:
        more = f" and {len(short) - NAMED} more" if len(short) > NAMED else ""
        say(f"fewer than {recipe.paraphrases} paraphrases: {', '.join(short[:NAMED])}{more}")


def _with(dataset: Dataset, found: Iterable[Paraphrased], model: str) -> Dataset:
    """The dataset with its paraphrases, and who wrote them."""
    new = {each.relation.id: each.relation for each in found}
    relations = tuple(new.get(relation.id, relation) for relation in dataset.relations)
    sources = dict.fromkeys((*dataset.card.sources, f"paraphrases written by {model}"))
    card = replace(dataset.card, sources=tuple(sources))
    return replace(dataset, card=card, relations=relations, fingerprint="")
