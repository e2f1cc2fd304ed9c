r"""Facts one after the other, without a word of instruction: what in-context estimation shows.

Knows facts and separators, nothing of models or options. With the usual separators three examples
in front of a subject read

    Chile Santiago Peru Lima Japan Tokyo France

and the answer is to follow. Examples are drawn by name, so that another fact moves no draw.
Separators have short names, so that a list of them can be written on one line: `colon/newline` is a
colon inside a pair and a new line between two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sonde.core.errors import TemplateError, UsageError
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Dataset, Entity, Fact, Template
from sonde.core.fingerprints import draw_key

TRAIN = "train"
NAMES: Mapping[str, str] = {"space": " ", "colon": " : ", "comma": ", ", "newline": "\n"}
"""Separators by short names; what is no name is taken as it is written."""

USUAL = "space/space"


@dataclass(frozen=True, slots=True, kw_only=True)
class Separators:
    """What stands between subject and object, and between one example and the next.

    `inside` may also be a sentence with [X] and [Y]; each example is then that sentence.
    """

    inside: str = " "
    between: str = " "

    def __post_init__(self) -> None:
        if SUBJECT_SLOT not in self.inside and ANSWER_SLOT not in self.inside:
            return
        sentence = Template(id="inside", text=self.inside)  # refuses a slot missing or twice
        answered = sentence.text.index(ANSWER_SLOT)
        if answered < sentence.text.index(SUBJECT_SLOT) or not sentence.answer_last:
            raise TemplateError(
                f"the sentence {sentence.text!r} cannot separate subject and object: it needs "
                f"{SUBJECT_SLOT} first and {ANSWER_SLOT} last, as in 'The capital of [X] is [Y].'"
            )

    @property
    def frame(self) -> tuple[str, str, str]:
        """What stands before the subject, between subject and object, and after the object.

        >>> Separators().frame, Separators(inside="In [X] they speak [Y].").frame
        (('', ' ', ''), ('In ', ' they speak ', '.'))
        """
        if SUBJECT_SLOT not in self.inside:
            return "", self.inside, ""
        before, rest = self.inside.split(SUBJECT_SLOT)
        middle, after = rest.split(ANSWER_SLOT)
        return before, middle, after


def named_separators(name: str) -> Separators:
    r"""The separators that a name stands for: inside a pair, a slash, between two pairs.

    >>> named_separators("colon/newline")
    Separators(inside=' : ', between='\n')
    >>> named_separators(" is /;").inside
    ' is '
    """
    inside, slash, between = name.rpartition("/")
    if not slash or not inside or not between:
        raise UsageError(
            f"separators are written INSIDE/BETWEEN, such as colon/newline, not {name!r}; named "
            f"are {', '.join(NAMES)}, and other texts stand for themselves"
        )
    within, apart = (NAMES.get(word, word.replace("\\n", "\n")) for word in (inside, between))
    return Separators(inside=within, between=apart)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A fact as it is shown: its id, the name of its subject and the name of its object."""

    fact: str
    subject: str
    object: str


def told(lines: Iterable[Line], separators: Separators) -> str:
    """The examples, each followed by what stands between two.

    >>> told([Line(fact="1", subject="Peru", object="Lima")], Separators())
    'Peru Lima '
    """
    return "".join(_shown(line, separators) for line in lines)


def asked(lines: Iterable[Line], subject: str, separators: Separators) -> str:
    """The examples and a last subject: everything up to where its object is to stand.

    >>> asked([Line(fact="1", subject="Peru", object="Lima")], "Chile", Separators(inside=" : "))
    'Peru : Lima Chile : '
    """
    before, middle, _ = separators.frame
    return f"{told(lines, separators)}{before}{subject}{middle}"


def spans(lines: Sequence[Line], separators: Separators) -> tuple[tuple[int, int], ...]:
    """Where each line's object stands in `told`: the characters from start up to stop.

    >>> spans([Line(fact="1", subject="Peru", object="Lima")], Separators())
    ((5, 9),)
    """
    before, middle, _ = separators.frame
    starts = accumulate((len(_shown(line, separators)) for line in lines), initial=0)
    leads = (len(before) + len(line.subject) + len(middle) for line in lines)
    begins = [start + lead for start, lead in zip(starts, leads, strict=False)]
    return tuple((at, at + len(line.object)) for at, line in zip(begins, lines, strict=True))


def spaced(text: str, parts: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same spans with the spaces before them, as options are scored.

    Some words take the space into their first token and some leave it a token of its own; they are
    comparable only if each accounts for it.

    >>> spaced("Peru : Lima ", [(7, 11)])
    ((6, 11),)
    """
    return tuple((len(text[:start].rstrip(" ")), stop) for start, stop in parts)


def training(dataset: Dataset, relation: str, seeds: Iterable[int]) -> tuple[tuple[Line, ...], ...]:
    """Every fact of the relation that is for training, in the order of each draw; none without any.

    Of the facts about one subject only the first is there.
    """
    # read once: a fact with its wrong options is long
    facts = [fact for fact in dataset.facts(relation) if fact.split == TRAIN]
    return tuple(tuple(map(line_of, drawn(facts, seed))) for seed in seeds) if facts else ()


def drawn(facts: Iterable[Fact], seed: int) -> tuple[Fact, ...]:
    """The facts in the order drawn; of those about one subject only the first."""
    keyed = [(draw_key(seed, f"lke:{f.id}"), i, f) for i, f in enumerate(facts)]
    seen: set[str] = set()
    kept = []
    for _, _, fact in sorted(keyed, key=lambda entry: entry[:2]):
        # by name too, since that is what a model reads
        own = {f"id:{fact.subject.id}", f"name:{fact.subject.name}"}
        if not own & seen:
            kept.append(fact)
        seen |= own
    return tuple(kept)


def line_of(fact: Fact) -> Line:
    """A fact by the usual name of its subject and of its first object."""
    return Line(fact=fact.id, subject=fact.subject.name, object=fact.objects[0].name)


def examples(lines: Sequence[Line], subject: Entity, count: int) -> tuple[Line, ...]:
    """The first so many lines that are not about the subject: a spare takes the place of one."""
    others = (line for line in lines if line.subject not in subject.names)
    return tuple(line for line, _ in zip(others, range(count), strict=False))


def _shown(line: Line, separators: Separators) -> str:
    before, middle, after = separators.frame
    return f"{before}{line.subject}{middle}{line.object}{after}{separators.between}"
