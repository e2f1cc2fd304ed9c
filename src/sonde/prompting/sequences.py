r"""Facts one after the other, without any instruction: the prompts of in-context estimation.

With spaces as separators, three examples before a subject read

    Chile Santiago Peru Lima Japan Tokyo France

and its object is to follow. Examples are drawn by name, so another fact moves no draw. Separators
have short names: `colon/newline` is a colon in a pair and a new line between two, as the language
of the facts writes them.

Some facts can be replaced by unknown or incorrect ones. An unknown one has an invented subject, and
another year if its object is one; other objects stay. An incorrect one has the object of another
fact that is never correct for its subject. Invented names are built of syllables and depend on the
seed alone; none is a name in the dataset, but one may by chance be real elsewhere.

Knows facts and separators, nothing of models.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Literal, NamedTuple

from polars import DataFrame

from sonde.core.errors import DataError, TemplateError
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Dataset, Source, Template
from sonde.core.fingerprints import draw_key
from sonde.prompting.examples import Draw, Pool, random_keys
from sonde.prompting.languages import ENGLISH, build_phrasing

NAMES = dict(zip(("space", "colon", "comma", "newline"), ENGLISH.separators, strict=True))
"""Separators by short name, as English has them; other texts are used literally."""

Layout = Literal["spread", "block"]
BEGINNINGS = "b br d dr f fl g gr h k kl l m n p pr qu r s sk st t tr v vr w y z zh".split()
MIDDLES = "a e i o u ae ei io oa ou".split()
ENDS = "b d g k l lm m n nd nk p r rn rt s sk t th v x z".split()
MORAE = "カキクケコサシスセソタチテトナニヌネノハヒフヘホマミムメモラリルレロガグゴザズダデドバビブ"
ENDS_JA = ("ン", "ス", "ル", "ア", "ック", "ード")
DOT = "・"
TRIES = 8
MOST_WORDS = 3
SUBJECT = ("relation", "subject", "subject_names")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A fact as it is shown: its id, the name of its subject and the name of its object."""

    fact: str
    subject: str
    object: str


class ListText(NamedTuple):
    """Facts one after the other, and where each object starts and stops."""

    text: str
    object_spans: list[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLayout:
    """How facts are listed one after the other.

    Args:
        pair: the text between subject and object, or a sentence with [X] and [Y] that has both.
        example: the text between two facts.
    """

    pair: str = " "
    example: str = " "

    def __post_init__(self) -> None:
        sentence = Template(id="pair", text=self.template)  # rejects a slot missing or twice
        subject, object = (sentence.text.find(slot) for slot in (SUBJECT_SLOT, ANSWER_SLOT))
        if not -1 < subject < object or not sentence.answer_last:
            raise TemplateError(
                f"the sentence {self.pair!r} cannot separate subject and object: it needs "
                f"{SUBJECT_SLOT} first and {ANSWER_SLOT} last, as in 'The capital of [X] is [Y].'"
            )

    @property
    def template(self) -> str:
        """One fact, with [X] and [Y].

        >>> ListLayout(pair=" : ").template
        '[X] : [Y]'
        """
        sentence = SUBJECT_SLOT in self.pair or ANSWER_SLOT in self.pair
        return self.pair if sentence else f"{SUBJECT_SLOT}{self.pair}{ANSWER_SLOT}"

    def text_before_object(self, subject: str) -> str:
        """A fact up to where its object begins."""
        return self.template.partition(ANSWER_SLOT)[0].replace(SUBJECT_SLOT, subject)

    def write(self, lines: Iterable[Line]) -> ListText:
        """The facts as one text.

        >>> ListLayout().write([Line(fact="1", subject="Peru", object="Lima")])
        ListText(text='Peru Lima ', object_spans=[(5, 9)])
        """
        after = self.template.partition(ANSWER_SLOT)[2] + self.example
        texts, spans, at = list[str](), list[tuple[int, int]](), 0
        for line in lines:
            before = self.text_before_object(line.subject)
            start = at + len(before)
            spans.append((start, start + len(line.object)))
            texts.append(f"{before}{line.object}{after}")
            at += len(texts[-1])
        return ListText("".join(texts), spans)


def list_layout(pair: str, example: str, language: str = "") -> ListLayout:
    r"""A layout by the names of its separators in a language; other texts are used literally.

    A new line may be written \n.

    >>> list_layout("colon", ";").pair, list_layout("colon", "comma", "ja").template
    (' : ', '[X]：[Y]')
    """
    named = dict(zip(NAMES, build_phrasing(language).separators, strict=True))
    texts = [named.get(word, word.replace("\\n", "\n")) for word in (pair, example)]
    return ListLayout(pair=texts[0], example=texts[1])


def build_draws_and_lines(facts: DataFrame, seeds: Iterable[int]) -> tuple[list[Draw], list[Line]]:
    """Facts to list, under their usual names, and a draw of them for each seed."""
    usual = facts["object_names"].list.first().list.first()
    columns = (facts["fact"], facts["subject"], usual)
    lines = [Line(fact=f, subject=s, object=o) for f, s, o in zip(*columns, strict=True)]
    pool = Pool(facts)
    draws = [
        Draw(random_keys(seed, (f"lke:{line.fact}" for line in lines)), pool) for seed in seeds
    ]
    return draws, lines


def write_list_before_each(
    facts: DataFrame, layout: ListLayout, draw: Draw, lines: Sequence[Line], n: int
) -> list[str]:
    """For each fact n examples and its subject, up to where its object is to follow."""
    shown: dict[tuple[int, ...], str] = {}
    texts = []
    for relation, subject, names in facts.select(SUBJECT).iter_rows():
        rows = tuple(draw.take_rows(n, {(relation, name) for name in names}))
        if rows not in shown:
            shown[rows] = layout.write(lines[row] for row in rows)[0]
        texts.append(shown[rows] + layout.text_before_object(subject))
    return texts


def choose_answer_last_templates(data: Dataset, limit: int) -> dict[str, list[Template]]:
    """By relation its templates with the answer last: hand-written, then mined, `limit` of each.

    Paraphrases replace the source that the dataset lacks. Templates are drawn by the seed,
    statements before questions; of those that are equal up to the answer, the first counts.
    """
    seed, relations = data.selection.seed, data.asked_relations()
    present = {t.source for r in relations for t in r.templates if t.answer_last}
    mined: Source = "mined" if "mined" in present else "paraphrase"
    manual: Source = "manual" if "manual" in present or mined == "paraphrase" else "paraphrase"
    chosen: dict[str, list[Template]] = {relation.id: [] for relation in relations}
    for relation, source in product(relations, (manual, mined)):
        distinct: dict[tuple[str, ...], Template] = {}
        for t in relation.templates:
            if t.source == source and t.answer_last:
                distinct.setdefault(tuple(t.text.partition(ANSWER_SLOT)[0].split()), t)
        fit = list(distinct.values())
        keys = {t.id: draw_key(seed, f"templates:{relation.id}:{t.id}") for t in fit}
        drawn = sorted(fit, key=lambda t: (t.style == "question", keys[t.id]))[:limit]
        chosen[relation.id] += sorted(drawn, key=lambda t: (t.style == "question", fit.index(t)))
    if not any(chosen.values()):
        raise DataError(
            f"dataset {data.name!r} has no template with the answer last, such as 'The capital of "
            "[X] is [Y].'; add some, or use ic-lke with --context examples"
        )
    return chosen


def extend_spans_over_spaces(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that start with the spaces before them, as options are scored.

    Some words include the space in their first token, and for others it is a separate token. They
    are comparable only if each accounts for it.

    >>> extend_spans_over_spaces("Peru : Lima ", [(7, 11)])
    [(6, 11)]
    """
    return [(len(text[:start].rstrip(" ")), stop) for start, stop in spans]


def choose_replaced_places(count: int, length: int, layout: Layout, seed: int) -> tuple[int, ...]:
    """The places of a sequence that are replaced, from 0: drawn one by one, or one block.

    The block is in the middle, so that as many facts follow it as precede it.

    >>> choose_replaced_places(2, 7, "block", 0)
    (2, 3)
    """
    if layout == "block":
        start = (length - count) // 2
        return tuple(range(start, start + count))
    drawn = sorted(range(length), key=lambda place: draw_key(seed, f"place:{place}"))
    return tuple(sorted(drawn[:count]))


def replace_subjects_with_invented(
    lines: Sequence[Line],
    places: Sequence[int],
    seed: int,
    real: Collection[str],
    language: str = "",
) -> tuple[Line, ...]:
    """The lines with invented subjects at some places; `real` names, case-folded, are never used.

    A year there becomes another one, drawn between the first and the last of all lines.
    """
    names = invent_names([lines[place].subject for place in places], seed, real, language)
    years = [int(line.object) for line in lines if is_year(line.object)]
    changed = list(lines)
    for place, name in zip(places, names, strict=True):
        line, object = lines[place], lines[place].object
        if is_year(object):
            key = f"{seed}:year:{line.fact}"
            object = str(draw_other_year(int(object), min(years), max(years), key))
        changed[place] = replace(line, subject=name, object=object)
    return tuple(changed)


def replace_objects_with_wrong(
    lines: Sequence[Line],
    places: Sequence[int],
    correct: Callable[[Line], frozenset[str]],
    pool: Sequence[str],
    seed: int,
) -> tuple[Line, ...]:
    """The lines with wrong objects at some places: the objects of these lines, exchanged.

    `correct` has every name of every object that is correct for a line's subject. If the objects do
    not suffice, because most of them are equal, for example, objects of `pool` replace them.
    """
    order = sorted(places, key=lambda place: draw_key(seed, f"object:{lines[place].fact}"))
    objects = [lines[place].object for place in (*order[1:], *order[:1])]
    barred = [correct(lines[place]) for place in order]
    for i, names in enumerate(barred):
        if objects[i] in names:
            # two objects are swapped if neither is correct at the place of the other
            swaps = (
                j
                for j, other in enumerate(objects)
                if other not in names and objects[i] not in barred[j]
            )
            j = next(swaps, i)
            objects[i], objects[j] = objects[j], objects[i]
        if objects[i] in names:
            objects[i] = _wrong_object(lines[order[i]], names, pool, seed)
    changed = list(lines)
    for place, object in zip(order, objects, strict=True):
        changed[place] = replace(lines[place], object=object)
    return tuple(changed)


def _wrong_object(line: Line, barred: frozenset[str], pool: Sequence[str], seed: int) -> str:
    keys = {
        name: draw_key(seed, f"wrong:{line.fact}:{name}") for name in pool if name not in barred
    }
    if not keys:
        raise DataError(
            f"fact {line.fact!r} cannot be made wrong: every object of its relation is right for "
            f"{line.subject!r}; ask about another relation"
        )
    return min(keys, key=lambda name: (keys[name], name))


def invent_names(
    originals: Sequence[str], seed: int, real: Collection[str], language: str = ""
) -> tuple[str, ...]:
    """A name for each of some names, of as many words, at most three; none twice, none real.

    The real names are case-folded: no invented one differs from them only in its capitals.
    Japanese ones are in katakana, as foreign names are.

    >>> names = invent_names(["Marie Curie", "France"], 0, ["france"])
    >>> names == invent_names(["Ada Byron", "Peru"], 0, [])
    True
    """
    name = _invent_katakana_name if language == "ja" else _invent_name
    tries = [
        [name(like, f"{seed}:{i}:{k}") for k in range(TRIES)] for i, like in enumerate(originals)
    ]
    used = {folded for row in tries for name in row if (folded := name.casefold()) in real}
    chosen = []
    for row in tries:
        chosen.append(next(name for name in row if name.casefold() not in used))
        used.add(chosen[-1].casefold())
    return tuple(chosen)


def is_year(name: str) -> bool:
    """Whether a name is a year: three or four digits.

    >>> is_year("1867"), is_year("Curie"), is_year("42")
    (True, False, False)
    """
    return name.isascii() and name.isdecimal() and 3 <= len(name) <= 4


def draw_other_year(year: int, first: int, last: int, key: str) -> int:
    """Another year than this one, drawn from first to last.

    >>> draw_other_year(1867, 1867, 1868, "seed")
    1868
    """
    drawn = Random(key).randrange(first, max(last, first + 1))
    return drawn + (drawn >= year)


def _invent_name(like: str, key: str) -> str:
    random = Random(key)
    words = min(max(1, len(like.split())), MOST_WORDS)
    return " ".join(_invent_word(random) for _ in range(words))


def _invent_katakana_name(like: str, key: str) -> str:
    random = Random(key)
    words = min(1 + like.count(DOT), MOST_WORDS)
    parts = ("".join(random.choices(MORAE, k=3)) + random.choice(ENDS_JA) for _ in range(words))
    return DOT.join(parts)


def _invent_word(random: Random) -> str:
    """Two or three syllables, the last of them closed."""
    count = random.choice((2, 2, 3))
    open_ones = [random.choice(BEGINNINGS) + random.choice(MIDDLES) for _ in range(count)]
    return ("".join(open_ones) + random.choice(ENDS)).capitalize()
