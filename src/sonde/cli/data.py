"""`sonde data`: list, show, check, count, convert and build datasets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from sonde import api
from sonde.cli import build
from sonde.cli.card import card
from sonde.cli.console import output, print_table, say, waiting, writing
from sonde.cli.options import DEVICE, FOLDER, FactOptions, SourceOptions, argument, option, verb
from sonde.cli.paraphrase import paraphrase
from sonde.cli.review import review
from sonde.cli.verbs import group
from sonde.core.abilities import abilities
from sonde.core.columns import one_by_one
from sonde.core.errors import AbilityError, DataError, MissingExtra, UsageError
from sonde.core.facts import Dataset, Relation
from sonde.core.reports import Estimate
from sonde.data import catalog
from sonde.data.builders import write_whole
from sonde.data.check import Fault, faults, folder_faults
from sonde.data.format import is_dataset, open_dataset, seal
from sonde.data.statistics import (
    MODEL,
    TOTALS,
    Diversity,
    lexical,
    named_counts,
    parser,
    prompts_per_pair,
    relation_counts,
    semantic,
    syntactic,
    totals,
)
from sonde.data.vocabulary import common, read_words, restricted, single, trial, words_of
from sonde.models.load import encoder
from sonde.runs.shards import answer

if TYPE_CHECKING:
    from polars import DataFrame

MOST = 100
"""Faults of a kind that are printed; the rest is counted."""

MEANS = ("objects per fact", "names of a subject", "names of an object")

NAME = (
    "A table (.csv, .tsv, .jsonl, .parquet, .xlsx), a bundled name, a folder, hub:OWNER/NAME, or "
    "READER:FOLDER; +SOURCE:FOLDER adds to it."
)


OWN = (
    ("FILE.csv", "a table of facts; so .tsv, .jsonl, .parquet and .xlsx (docs/tables.md)"),
    ("hub:OWNER/NAME", "a table of the Hugging Face Hub; :CONFIG where it has several"),
)
"""Datasets that users bring."""


def ls() -> None:
    """List the bundled datasets and the readers of public ones.

    Example: sonde data ls
    """
    bundled = [(name, open_dataset(p).card.description) for name, p in catalog.bundled().items()]
    readers = [(f"{r.name}:{_place(r)}", r.summary) for r in catalog.readers().values()]
    more = [(f"…+{each.name}:FOLDER", each.summary) for each in catalog.additions().values()]
    print_table(("dataset", "what it is"), [*bundled, *OWN, *readers, *more])


def _place(reader: catalog.Reader) -> str:
    return "FILE" if getattr(reader, "takes_file", False) else "FOLDER"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """What is shown of which dataset."""

    name: str = argument(NAME)
    relation: str = option("Show this relation in full.", "")
    facts: int = option("How many facts to show.", 5)
    source: SourceOptions


@verb
def show(wanted: ShowOptions) -> None:
    """Show where a dataset comes from and what stands in it.

    Example: sonde data show atlas --relation P36
    """
    dataset = wanted.source.load(wanted.name)
    card = dataset.card
    say(f"{card.name} {card.version}  ({dataset.fingerprint})")
    if card.description:
        say(card.description)
    say(f"licence: {card.licence}\nsources: {'; '.join(card.sources) or 'not given'}")
    if wanted.relation:
        show_relation(dataset, dataset.relation(wanted.relation), wanted.facts)
        return
    rows = [
        (r.id, r.label, r.kind or "", *(t.text for t in r.templates[:1])) for r in dataset.relations
    ]
    print_table(("relation", "label", "type", "first template"), rows)


def show_relation(dataset: Dataset, relation: Relation, facts: int) -> None:
    """Print a relation's templates and some of its facts."""
    say(f"\n{relation.title}" + (f" ({relation.kind})" if relation.kind else ""))
    for template in relation.templates:
        say(f"  {template.id:10} {template.source:10} {template.style:9} {template.text}")
    for fact in islice(dataset.facts(relation.id), facts):
        objects = "; ".join(" / ".join(entity.names) for entity in fact.objects)
        say(f"  {fact.id} [{fact.split}] {' / '.join(fact.subject.names)} -> {objects}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """Which folder is checked, and what follows."""

    path: Path = argument("A dataset folder, or a table.")
    source: SourceOptions
    seal: bool = option(
        "Write the content's hash into dataset.json if it is sound.", False, "--seal"
    )


@verb
def check(wanted: CheckOptions) -> None:
    """Check every line of a dataset and say what is wrong with it.

    Example: sonde data check ./my-dataset
    """
    path, write = wanted.path, wanted.seal
    if is_dataset(path):
        found = folder_faults(path)
    else:
        dataset = wanted.source.load(str(path))
        if write:
            raise UsageError(
                f"--seal is for a folder in sonde's own form, which {path} is not; make one with: "
                f"sonde data convert {path} -o FOLDER"
            )
        found = faults(dataset)
    errors, warnings = ([f for f in found if f.error == error] for error in (True, False))
    show_faults(errors, warnings)
    if not is_dataset(path):
        show_notes(dataset)
    if errors:
        number = f"{len(errors):,} error{'s' * (len(errors) > 1)}"
        more = "; not sealed" if write else ""
        raise DataError(f"{path}: {number}, listed above{more}; the first: {errors[0]}")
    if is_dataset(path):
        if write:
            say(f"sealed with {seal(path)}")
        dataset = open_dataset(path)
    doubts = f", with {len(warnings):,} warning{'s' * (len(warnings) > 1)}" if warnings else ""
    say(f"{path} is sound{doubts}. Relations: {len(dataset.relations)}, facts: {dataset.size:,}")


def show_faults(errors: Sequence[Fault], warnings: Sequence[Fault]) -> None:
    """Print the first `MOST` of each kind, and count the rest."""
    for kind, several in (("error", errors), ("warning", warnings)):
        for fault in several[:MOST]:
            output().print(f"{kind}: {fault}", markup=False, highlight=False, soft_wrap=True)
    if left := max(len(errors) - MOST, 0) + max(len(warnings) - MOST, 0):
        say(f"… and {left:,} more")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsOptions:
    """Which datasets are counted."""

    names: list[str] = argument("Datasets; several are set side by side, totals only.")
    source: SourceOptions
    diversity: bool = option("Also how much templates differ (slow).", False, "--diversity")
    parser: str = option(
        "The pipeline of spaCy that parses templates: a package or a folder.", MODEL
    )
    encoder: str = option("The model that embeds them: hf:FOLDER (default: all-MiniLM-L6-v2).", "")


@verb
def stats(wanted: StatsOptions) -> None:
    """Count relations, templates, facts, objects, names and prompts.

    Example: sonde data stats atlas --diversity
    """
    datasets = [wanted.source.load(name) for name in wanted.names]
    counts = [relation_counts(dataset) for dataset in datasets]
    sums = [totals(c) | named_counts(d) for c, d in zip(counts, datasets, strict=True)]
    if len(datasets) == 1:
        show_by_relation(datasets[0], counts[0])
        relations, templates, facts = (sums[0][name] for name in ("relations", *TOTALS[:2]))
        say(f"{relations} relations, {templates:,} templates, {facts:,} facts\n")
    names = [dataset.name for dataset in datasets]
    rows = [(title, *(number(each[title]) for each in sums)) for title in sums[0]]
    print_table(("count", *names), rows, right=range(1, len(names) + 1))
    for dataset in datasets:
        show_notes(dataset)
    if wanted.diversity:
        measures = zip(*(measured(dataset, wanted) for dataset in datasets), strict=True)
        distances = [(row[0].measure, *map(_distance, row)) for row in measures]
        print_table(("diversity", *names), distances)


def show_by_relation(dataset: Dataset, counts: DataFrame) -> None:
    """Print a row for each relation."""
    sources = ["manual", "paraphrase", "mined"]
    if not any(t.source == "mined" for r in dataset.relations for t in r.templates):
        sources.remove("mined")
    sizes = [Counter(dataset.frame(relation.id)["split"]) for relation in dataset.relations]
    splits = sorted(set().union(*sizes))
    titles = ("relation", "label", "type", "manual", "paraphr.", "mined")[: 3 + len(sources)]
    counted = ("hard", "objects", "per fact", "names/subject", "names/object", "prompts/pair")
    rows = [
        (
            *(relation.id, relation.label, relation.kind or ""),
            *(sum(t.source == source for t in relation.templates) for source in sources),
            sum(t.style == "question" for t in relation.templates),
            sum(t.answer_last and t.style == "statement" for t in relation.templates),
            *(size[split] for split in splits),
            *(row["hard"], row["objects"]),
            *(f"{row[mean]:.1f}" for mean in MEANS),
            number(prompts_per_pair(row)),
        )
        for relation, size, row in zip(
            dataset.relations, sizes, counts.iter_rows(named=True), strict=True
        )
    ]
    titles = (*titles, "questions", "answer last", *splits, *counted)
    print_table(titles, rows, padding=(0, 1, 0, 0))


def show_notes(dataset: Dataset) -> None:
    """Print what was counted while the dataset was read, if anything was."""
    notes = [f"{key} {count:,}" for key, count in dataset.notes.items() if count]
    if notes:
        say(f"{dataset.name}: {', '.join(notes)}")


def measured(dataset: Dataset, wanted: StatsOptions) -> list[Diversity]:
    """All three measures; one whose library is missing says so."""
    tries: dict[str, Callable[[], Diversity]] = {
        "lexical": lambda: lexical(dataset.relations),
        "syntactic": lambda: syntactic(dataset.relations, parser(wanted.parser)),
        "semantic": lambda: semantic(dataset.relations, encoder(wanted.encoder)),
    }
    measures = []
    for name, measure in tries.items():
        try:
            measures.append(measure())
        except MissingExtra as missing:
            measures.append(Diversity(name, Estimate.not_measured(), str(missing)))
    return measures


def _distance(entry: Diversity) -> str:
    e = entry.estimate
    if e.value is None:
        return f"not measured: {entry.reason or 'no relation has two templates'}"
    ends = "" if e.low is None or e.high is None else f" [{e.low:.4f}, {e.high:.4f}]"
    return f"{e.value:.4f}{ends} n = {e.n}"


def number(value: float | None) -> str:
    """A count with its thousands, or a mean with two places."""
    if value is None:
        return "not measured"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions:
    """What is written of which dataset."""

    name: str = argument(NAME)
    out: Path = option(FOLDER, MISSING, "--out", "-o")
    facts: FactOptions
    device: str = option(DEVICE, "auto")
    vocabulary: Path | None = option(
        "Keep only facts whose object is in this list of words, one a line.", None
    )


@verb
def convert(wanted: ConvertOptions) -> None:
    """Write any dataset, joined or not, as a folder in sonde's own form.

    Example: sonde data convert facts.csv --template "The capital of [X] is [Y]." -o ./capitals

    Example: sonde data convert lama:./LAMA+pararel:./pararel -o ./joined
    """
    out = wanted.out
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is there and not empty; give a new folder")
    dataset = wanted.facts.open(wanted.name, wanted.device)
    if wanted.vocabulary is not None:
        dataset = restricted(dataset, read_words(wanted.vocabulary))
    if wanted.vocabulary is not None or wanted.facts.drop_guessable is not None:
        show_notes(dataset)
    with waiting(f"writing {out}"):
        write_whole(dataset, out)
    say(f"{out}: {len(dataset.relations)} relations, {dataset.size:,} facts")


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyOptions:
    """Whose words are tried in which models."""

    models: list[str] = option(
        "A model; give it once for each of several.", MISSING, "--model", "-m"
    )
    data: str = option("The dataset whose words are tried.", MISSING, "--data", "-d")
    source: SourceOptions
    out: Path = option("The file to write, a word a line.", MISSING, "--out", "-o")
    device: str = option(DEVICE, "auto")


@verb
def vocabulary(wanted: VocabularyOptions) -> None:
    """Write the dataset's words that are one token in every model, for fair comparison.

    Example: sonde data vocabulary -m hf:./bert -m hf:./roberta -d lama:./LAMA -o words.txt
    """
    out = wanted.out
    if out.exists():
        raise UsageError(f"{out} is there; name a new file")
    dataset = wanted.source.load(wanted.data)
    words = words_of(dataset)
    single_tokens: dict[str, frozenset[str]] = {}
    for model in dict.fromkeys(wanted.models):
        single_tokens[model] = _single_tokens(model, words, wanted.device, dataset)
        say(f"{model}: {len(single_tokens[model]):,} of {len(words):,} words are one token")
    kept = common(words, single_tokens)
    with writing(out):
        out.write_text("".join(f"{word}\n" for word in kept), encoding="utf-8")
    say(f"{out}: {len(kept):,} words")


def _single_tokens(
    name: str, words: tuple[str, ...], device: str, dataset: Dataset
) -> frozenset[str]:
    with waiting(f"loading {name}"):
        model = api.model(name, data=dataset, device=device)
    if not model.identity.tokenizer:
        raise AbilityError(f"{name} has no tokens, so no word of it is one token; leave it out")
    [(_, tried)] = one_by_one(answer(model, [trial(words, abilities(model))]))
    return single(tried)


VERBS = {
    "ls": ls,
    "show": show,
    "check": check,
    "stats": stats,
    "card": card,
    "convert": convert,
    "paraphrase": paraphrase,
    "review": review,
    "vocabulary": vocabulary,
    "build": build.app,
}
app = group(
    "List, show, check, count, convert, judge and build datasets.\n\n"
    "Example: sonde data show atlas --relation capital\n\n"
    "Example: sonde data check facts.csv --columns subject=Wine,object=Region",
    VERBS,
    VERBS.__getitem__,
    former={"annotate": "review"},
)
