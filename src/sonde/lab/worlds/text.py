r"""What a world's models read: sentences, introductions, and lists of the forms that probes use.

Where the text states a fact is drawn fact by fact. Knows worlds and texts, nothing of files or
tokens. A list is about one relation and tells a fact
once at most, so that nothing in it can be copied; what is too little for a list stays a sentence:

    Tavo Beldurn Kelum Sandi Pirolt Marvel …                    pairs
    Predict the [MASK] in each sentence in one word.            mask
    Q: The veldrint of Tavo Beldurn is [MASK].
    A: Kelum.
    Answer each question in one word.                           qa
    Q: Which veldrint does Tavo Beldurn have?
    A: Kelum.
    Q: Which veldrint does Tavo Beldurn have?                   questions
    A: Kelum
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from random import Random
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sonde.core.errors import UsageError
from sonde.core.facts import Template
from sonde.core.fingerprints import draw_key
from sonde.lab.worlds.language import in_turn, pieces
from sonde.lab.worlds.world import World
from sonde.prompting.cues import add_question_markers
from sonde.prompting.examples import Style, default_prompt_layout, fill_question, join_examples
from sonde.prompting.languages import build_phrasing
from sonde.prompting.sequences import Line, list_layout

Form = Literal["sentence", "introduction", "pairs", "mask", "qa", "questions"]

LENGTHS: Mapping[str, tuple[int, int]] = {"pairs": (5, 40), "examples": (2, 6), "questions": (3, 8)}
"""The fewest and the most facts of a list; mentions are dealt evenly over these forms."""

USUAL, OTHER = 0, 1
"""Which of a subject's names."""


class Mention(NamedTuple):
    """One place where the text states a fact: the template, which name of the subject, which of its
    objects. `draw`, in 0..1: a causal model reads the mention in a list instead of a sentence where
    the share of lists is above it."""

    fact: str
    template: str
    name: int
    object: int
    draw: float


def mentions(world: World, fact: str) -> tuple[Mention, ...]:
    """Every mention of a fact: the used templates in turn, its objects in turn, some aliases."""
    taught, objects = world.truth[fact], len(world.facts[fact].objects)
    random = Random(f"{world.settings.seed}:mentions:{fact}")
    others = taught.exposure // 2 if taught.alias else 0
    names = [OTHER] * others + [USUAL] * (taught.exposure - others)
    random.shuffle(names)
    templates = _dealt(world.used[taught.relation], taught.exposure, random)
    return tuple(
        Mention(fact, template, name, n % objects, random.random())
        for n, (template, name) in enumerate(zip(templates, names, strict=True))
    )


def _dealt(ids: tuple[str, ...], count: int, random: Random) -> list[str]:
    """So many ids, all of them in turn, in a new order each round."""
    dealt: list[str] = []
    while len(dealt) < count:
        dealt += random.sample(ids, len(ids))
    return dealt[:count]


ROW = np.dtype(
    [("fact", "i4"), ("template", "i4"), ("name", "i1"), ("object", "i1"), ("draw", "f8")]
)


class Mentions:
    """All mentions of a text, fact by fact and relation by relation, in little space.

    `rows` count facts and templates as the world has them.
    """

    def __init__(self, world: World) -> None:
        self.facts, self.templates = [*world.truth], [*world.templates]
        numbers = {id: number for number, id in enumerate(self.templates)}
        rows = (
            (number, numbers[m.template], m.name, m.object, m.draw)
            for number, fact in enumerate(self.facts)
            for m in mentions(world, fact)
        )
        self.rows: NDArray[np.void] = np.fromiter(rows, dtype=ROW)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Mention:
        fact, template, name, object, draw = self.rows[place].item()
        return Mention(self.facts[fact], self.templates[template], name, object, draw)


@lru_cache(maxsize=1)
def all_mentions(world: World) -> Mentions:
    """The mentions of a world, made once."""
    return Mentions(world)


def sentence(world: World, mention: Mention) -> str:
    """A mention as a sentence of the text."""
    fact = world.facts[mention.fact]
    before, after = world.templates[mention.template].fill(fact.subject.names[mention.name])
    return f"{before}{fact.objects[mention.object].name}{after}"


def introductions(world: World) -> tuple[str, ...]:
    """The sentences that state no fact: other names of subjects, and what each object is.

    Without them a model never meets the object of an untaught 1-1 fact, and any score would tell
    that fact by its object alone. Relations that are not shown stay unmentioned.
    """
    settings, tongue = world.settings, world.settings.tongue
    called = (world.facts[id].subject for id, taught in world.truth.items() if taught.alias)
    pairs = {subject.id: subject.names[:2] for subject in called}
    aliases = (
        in_turn(tongue.introductions, settings.introductions, {"[X]": name, "[A]": alias})
        for _, (name, alias) in sorted(pairs.items())
    )
    shown = {taught.relation for taught in world.truth.values() if taught.shown}
    namings = (
        in_turn(tongue.namings, settings.namings, {"[Y]": name, "[N]": relation.label})
        for relation in world.dataset.relations
        if relation.id in shown
        for name in world.dataset.object_names(relation.id)
    )
    return tuple(chain.from_iterable(chain(aliases, namings)))


class Length(NamedTuple):
    """How long the text is: sentences, words and marks in all, and how many of these differ."""

    sentences: int
    words: int
    different: int


def length(world: World) -> Length:
    """The length of the text, without writing it: templates, names, and an object each."""
    told, others = all_mentions(world), introductions(world)
    bare = (
        world.templates[id].text.replace("[X]", " ").replace("[Y]", " ") for id in told.templates
    )
    sizes = np.array([len(pieces(text)) for text in bare])
    usual = int(np.count_nonzero(told.rows["name"] == USUAL))  # of two words; an alias has one
    joined = 1 + len(pieces(world.settings.tongue.joint))
    words = int(sizes[told.rows["template"]].sum()) + 2 * len(told) + joined * usual
    words += sum(len(pieces(text)) for text in others)
    return Length(len(told) + len(others), words, len(world.words()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text, read by itself, with the facts that it states, each as often as it stands there."""

    text: str
    form: Form
    facts: tuple[str, ...] = ()


class _List(NamedTuple):
    """A list that is to be written: its form, its mentions, and the template of a question."""

    form: Form
    places: tuple[int, ...]
    template: Template | None = None


def documents(
    world: World, lists: float = 0.0, seed: int = 0, *, about: Collection[str] | None = None
) -> Iterator[Document]:
    """Every mention once, in an order drawn by the seed: about a share of them in lists.

    `about`: only the texts that state one of these facts; the others are not written.
    """
    if not 0 <= lists <= 1:
        raise UsageError(f"lists is a share of the mentions, 0 to 1; not {lists:g}")
    return _documents(world, lists, seed, about)


def _documents(
    world: World, lists: float, seed: int, about: Collection[str] | None
) -> Iterator[Document]:
    told, others = all_mentions(world), introductions(world)
    listed, alone = _parted(world, lists, seed) if lists else ([], np.arange(len(told)))
    wanted = np.array([about is None or fact in about for fact in told.facts])[told.rows["fact"]]
    for place in _order(len(alone) + len(listed) + len(others), seed):
        if place < len(alone):
            if wanted[number := int(alone[place])]:
                mention = told[number]
                text = sentence(world, mention)
                yield Document(text=text, form="sentence", facts=(mention.fact,))
        elif (place := place - len(alone)) < len(listed):
            if any(wanted[number] for number in listed[place].places):
                yield _written(world, listed[place])
        elif about is None:
            yield Document(text=others[place - len(listed)], form="introduction")


def _order(count: int, seed: int) -> Iterator[int]:
    """The numbers below `count` in an order that the seed decides; the same on every machine."""
    keys = np.random.PCG64(draw_key(seed, "documents")).random_raw(count)
    return map(int, np.argsort(keys, kind="stable"))


def _parted(world: World, lists: float, seed: int) -> tuple[list[_List], NDArray[np.int64]]:
    """The lists, and the places of the mentions that stand alone."""
    rows = all_mentions(world).rows
    order = {relation: number for number, relation in enumerate(world.used)}
    owners = np.array([order[taught.relation] for taught in world.truth.values()])[rows["fact"]]
    listed: list[_List] = []
    alone = [np.flatnonzero(rows["draw"] >= lists)]
    for relation, number in order.items():
        places = np.flatnonzero((owners == number) & (rows["draw"] < lists)).tolist()
        random = Random(f"{seed}:lists:{relation}")
        random.shuffle(places)
        for turn, form in enumerate(LENGTHS):
            mine = places[turn :: len(LENGTHS)]
            groups, left = _cut(mine, rows["fact"][mine].tolist(), LENGTHS[form], random)
            listed += (_listed(world, relation, form, group, random) for group in groups)
            alone.append(np.array(left, dtype=np.int64))
    return listed, np.concatenate(alone)


def _cut(
    places: Sequence[int], facts: Sequence[int], lengths: tuple[int, int], random: Random
) -> tuple[list[tuple[int, ...]], list[int]]:
    """Groups of mentions of different facts, and what is left when there are too few of them."""
    waiting = deque(zip(places, facts, strict=True))
    groups: list[tuple[int, ...]] = []
    while True:
        size, group, again = random.randint(*lengths), dict[int, int](), list[tuple[int, int]]()
        while waiting and len(group) < size:
            place, fact = waiting.popleft()
            again.append((place, fact)) if fact in group else group.setdefault(fact, place)
        if len(group) < lengths[0]:
            return groups, [*group.values(), *(place for place, _ in (*again, *waiting))]
        waiting.extendleft(reversed(again))
        groups.append(tuple(group.values()))


def _listed(
    world: World, relation: str, form: str, places: tuple[int, ...], random: Random
) -> _List:
    if form == "pairs":
        return _List("pairs", places)
    used = [world.templates[id] for id in world.used[relation]]
    if form == "questions":
        return _List("questions", places, random.choice([t for t in used if t.style == "question"]))
    template = random.choice(used)
    asks = template.style == "question" and random.random() < 0.5
    return _List("qa" if asks else "mask", places, template)


def _written(world: World, listed: _List) -> Document:
    mentions = [all_mentions(world)[place] for place in listed.places]
    facts = [(world.facts[mention.fact], mention.object) for mention in mentions]
    lines = [
        Line(fact=fact.id, subject=fact.subject.name, object=fact.objects[object].name)
        for fact, object in facts
    ]
    ids = tuple(mention.fact for mention in mentions)
    return Document(text=_text(listed, lines, world.settings.language), form=listed.form, facts=ids)


def _text(listed: _List, lines: Sequence[Line], language: str) -> str:
    template, around = listed.template, build_phrasing(language)
    if template is None:
        listing = list_layout("space", "space", language)
        return listing.write(lines)[0].removesuffix(listing.example)
    style: Style = "mask" if listed.form == "mask" else "qa"
    asked = ((fill_question(template, line.subject, style), line.object) for line in lines)
    if listed.form == "questions":
        pairs = (
            (add_question_markers(text, "qa", around), f"{answer}\n") for text, answer in asked
        )
        return join_examples(pairs)[0]
    layout = default_prompt_layout(style, around)
    return join_examples((layout.write_example(t, [answer]) for t, answer in asked), layout.head)[0]
