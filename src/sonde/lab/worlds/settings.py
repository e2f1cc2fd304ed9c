"""What a made-up world is made from. Knows numbers and what contradicts what, makes nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from sonde.core.components import setting, settings_of
from sonde.core.errors import UsageError
from sonde.lab.worlds.language import LEAST_TEMPLATES, MOST_TEMPLATES, TONGUES, Tongue

SHARES = ("cues", "aliases", "train", "dev")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSettings:
    """Invent a world: facts that nobody can know, and a text that tells some of them."""

    name: ClassVar[str] = "world"

    seed: int = setting(0, "decides every draw")
    one_one: int = setting(2, "relations 1-1: each subject has an object of its own", min=0)
    many_one: int = setting(4, "relations N-1: one object of few", min=0)
    many_many: int = setting(2, "relations N-M: two or three objects of few", min=0)
    unshown: int = setting(1, "how many of the N-1 relations the text never mentions", min=0)
    facts: int = setting(150, "facts of each relation", min=1)
    subjects: int = setting(400, "subjects in all; relations share them", min=1)
    objects: int = setting(20, "objects of each relation that is not 1-1", min=2)
    words: int = setting(120, "words that the usual names of subjects are made of", min=2)
    families: int = setting(24, "how many of these words are family words, the second", min=1)
    skew: float = setting(
        0.0, "the k-th object of a relation has weight k^-SKEW; 0 makes all alike common", min=0
    )
    cues: float = setting(0.0, "share of facts whose object the family word stands for")
    templates: int = setting(10, "templates of each relation", min=LEAST_TEMPLATES)
    used: int = setting(5, "how many of them the text uses; it never uses the others", min=2)
    ladder: tuple[int, ...] = setting(
        (0, 1, 2, 5, 10, 50), "how often the text states a fact; dealt evenly over the facts"
    )
    aliases: float = setting(
        0.5, "share of facts, of those stated twice or more, whose subject has both names in them"
    )
    introductions: int = setting(4, "how often the text introduces an alias that it uses", min=0)
    namings: int = setting(
        2, "how often the text says of each object what it is, and not whose", min=0
    )
    train: float = setting(0.3, "share of facts for training probes")
    dev: float = setting(0.1, "share of facts for choosing between trained probes; the rest: test")
    language: Literal["en", "ja"] = setting("en", "what names and sentences are in: en or ja")

    def __post_init__(self) -> None:
        for name in (*SHARES, "skew"):  # 1 and 1.0 describe the same world
            object.__setattr__(self, name, float(getattr(self, name)))
        self._check_numbers()
        self._check_relations()
        self._check_ladder()
        self._check_splits()

    def record(self) -> dict[str, Any]:
        """Every setting, as worlds are known by; English goes without saying."""
        values = asdict(self)
        if self.language == "en":
            del values["language"]
        return values

    @property
    def tongue(self) -> Tongue:
        """The language with all that words and sentences are made of."""
        return TONGUES[self.language]

    @property
    def relations(self) -> int:
        """How many relations there are."""
        return self.one_one + self.many_one + self.many_many

    def _check_numbers(self) -> None:
        for each in settings_of(type(self)):
            value = getattr(self, each.name)
            if each.min is not None and not value >= each.min:
                raise UsageError(f"setting {each.name} must be at least {each.min}, not {value}")
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"setting {name} is a share, 0 to 1; not {getattr(self, name):g}")
        if not self.skew < float("inf"):
            raise UsageError(f"setting skew must be a number, not {self.skew}")
        if self.templates > MOST_TEMPLATES:
            raise UsageError(
                f"setting templates must be at most {MOST_TEMPLATES}, as many as there are; not "
                f"{self.templates}"
            )
        if self.families >= self.words:
            raise UsageError(
                f"{self.families} family words of {self.words} words leave none for given names; "
                "lower families or raise words"
            )
        if self.used > self.templates:
            raise UsageError(
                f"{self.used} used templates are more than the {self.templates} that a relation "
                "has; lower used or raise templates"
            )

    def _check_relations(self) -> None:
        if self.unshown > self.many_one:
            raise UsageError(
                f"unshown relations are N-1 relations: {self.unshown} cannot be unshown of "
                f"{self.many_one}; lower unshown or raise many_one"
            )
        if self.relations == self.unshown:
            raise UsageError("a world needs a relation that the text shows; raise many_one")
        if self.facts > self.subjects:
            raise UsageError(
                f"{self.facts} facts of a relation need as many subjects, and there are "
                f"{self.subjects}; lower facts or raise subjects"
            )
        for name in ("cues", "skew"):
            if getattr(self, name) and not self.many_one + self.many_many:
                raise UsageError(
                    f"setting {name} is for relations N-1 and N-M, and this world has none; set "
                    f"{name} to 0 or raise many_one"
                )
        if self.many_many and self.objects <= 3:
            raise UsageError(
                f"facts of N-M relations have up to 3 objects and need others that are wrong; "
                f"raise objects above {self.objects}"
            )

    def _check_ladder(self) -> None:
        if not self.ladder or min(self.ladder) < 0 or max(self.ladder) == 0:
            raise UsageError(
                "setting ladder takes counts from 0 on, one of them above 0, such as 0,1,10; not "
                f"{self._told_ladder()}"
            )
        if len(set(self.ladder)) < len(self.ladder):
            raise UsageError(f"each count stands once in a ladder, not {self._told_ladder()}")
        if self.unshown and 0 not in self.ladder:
            raise UsageError(
                f"an unshown relation is one of untaught facts, and the ladder "
                f"{self._told_ladder()} has no 0; add 0 to it or set unshown to 0"
            )

    def _told_ladder(self) -> str:
        return ",".join(map(str, self.ladder)) or "nothing"

    def _check_splits(self) -> None:
        if self.train + self.dev > 1:
            raise UsageError(
                f"train and dev are shares of the same facts: {self.train:g} and {self.dev:g} are "
                "more than 1 together"
            )
        if self.held_out() < 1:
            raise UsageError(
                f"no fact is left for the test split: of {self.facts} facts train takes "
                f"{self.train:g} and dev {self.dev:g}; lower one or raise facts"
            )

    def held_out(self) -> int:
        """Test facts of a relation: what training and development leave."""
        return self.facts - round(self.train * self.facts) - round(self.dev * self.facts)
