"""Lists of facts: what a model reads, where each object is, which facts are drawn and offered."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import TemplateError
from sonde.core.facts import Dataset
from sonde.prompting.options import build_option_table
from sonde.prompting.sequences import (
    NAMES,
    Line,
    ListLayout,
    build_draws_and_lines,
    extend_spans_over_spaces,
    list_layout,
    write_list_before_each,
)
from tests.worlds import entity, fact, facts, world

GOLDEN = Path(__file__).parents[1] / "golden" / "lke" / "separators.txt"
LINES = (
    Line(fact="1", subject="Peru", object="Lima"),
    Line(fact="2", subject="New Zealand", object="Wellington"),
)
LAYOUTS = {
    "space": ListLayout(),
    "colon": ListLayout(pair=" : ", example=" "),
    "comma": ListLayout(pair=" ", example=", "),
    "newline": ListLayout(pair=" : ", example="\n"),
    "sentence": ListLayout(pair="The capital of [X] is [Y].", example=" "),
}
TEXT = st.text(st.characters(exclude_characters="[]"), min_size=1, max_size=6)
LAYOUT = st.builds(ListLayout, pair=TEXT, example=TEXT) | st.sampled_from([*LAYOUTS.values()])


@st.composite
def lists(draw: st.DrawFn) -> list[Line]:
    pairs = draw(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5))
    return [Line(fact=str(i), subject=s, object=o) for i, (s, o) in enumerate(pairs)]


def capitals(data: Dataset, seed: int = 0) -> list[str]:
    """The subjects of the facts of a draw, in its order."""
    [draw], lines = build_draws_and_lines(data.frame("P36").filter(split="train"), [seed])
    return [lines[row].subject for row in draw.take_rows(99)]


def test_lists_are_written_as_written_down() -> None:
    written = [
        f"{name}\n{layout.write(LINES)[0] + layout.text_before_object('Chile')!r}"
        for name, layout in LAYOUTS.items()
    ]
    assert "\n".join(written) + "\n" == GOLDEN.read_text(encoding="utf-8")


@given(lists(), LAYOUT)
def test_a_span_holds_the_object_and_is_preceded_by_what_precedes_it(
    lines: list[Line], layout: ListLayout
) -> None:
    text, spans = layout.write(lines)
    assert [text[start:stop] for start, stop in spans] == [line.object for line in lines]
    *shown, last = lines
    assert text[: spans[-1][0]] == layout.write(shown)[0] + layout.text_before_object(last.subject)


def test_a_span_takes_the_spaces_before_it_but_nothing_else() -> None:
    text, spans = LAYOUTS["colon"].write(LINES)
    assert [text[a:b] for a, b in extend_spans_over_spaces(text, spans)] == [" Lima", " Wellington"]


@pytest.mark.parametrize(
    "sentence", ["[X] is", "is [Y]", "[Y] is the capital of [X]", "[X] has [Y] as its capital"]
)
def test_a_sentence_must_have_its_answer_last(sentence: str) -> None:
    with pytest.raises(TemplateError):
        ListLayout(pair=sentence)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_stands_for_its_text(name: str) -> None:
    layout = list_layout(name, name)
    assert layout.pair == layout.example == NAMES[name]


def test_other_texts_stand_for_themselves() -> None:
    layout = list_layout("The capital of [X] is [Y].", "\\n\\n")
    assert layout.template == "The capital of [X] is [Y]." and layout.example == "\n\n"


def test_the_seed_decides_the_order_and_not_which_facts_there_are() -> None:
    one, other = capitals(world()), capitals(world(), 1)
    assert one != other and sorted(one) == sorted(other) and len(one) == 6


def test_a_new_fact_moves_no_other() -> None:
    more = [*facts(), fact("P36", "Cuba", "Havana", split="train")]
    after = capitals(world(more), 3)
    assert [name for name in after if name != "Cuba"] == capitals(world(), 3)


def test_a_fact_about_the_subject_is_replaced_by_the_next() -> None:
    [draw], lines = build_draws_and_lines(world().frame("P36"), [0])
    order = [lines[row] for row in draw.take_rows(9)]
    asked = {"relation": ["P36"], "subject": ["x"], "subject_names": [["x", order[1].subject]]}
    [text] = write_list_before_each(pl.DataFrame(asked), ListLayout(), draw, lines, 3)
    assert text == ListLayout().write([order[0], order[2], order[3]])[0] + "x "


def test_options_are_the_own_object_and_wrong_ones() -> None:
    held = [*facts(), fact("P36", "Egypt", "Giza", id="second", split="train")]
    egypt = build_option_table(world(held), "P36", 4).filter(fact="P36-Egypt").row(0, named=True)
    assert "Cairo" in egypt["options"] and "Giza" not in egypt["options"]
    assert egypt["n_options"] == 4 and egypt["options"] == sorted(egypt["options"])
    assert egypt["spellings"] == egypt["options"] and egypt["gold_spellings"] == ["Cairo"]


def test_all_names_of_options_are_offered_if_they_are_wanted() -> None:
    held = [*facts()[:7], fact("P36", "Egypt", entity("Cairo", "al-Qahira"))]
    rows = build_option_table(world(held), "P36", aliases=True)
    assert all("al-Qahira" in names for names in rows["spellings"].to_list())
    assert rows["gold_spellings"].to_list() == [["Vienna"], ["Cairo", "al-Qahira"]]
    assert not any("al-Qahira" in names for names in rows["options"].to_list())


def test_the_baseline_is_the_most_common_of_the_options() -> None:
    held = [fact("P36", name, city) for name, city in (("a", "X"), ("b", "X"), ("c", "Y"))]
    assert build_option_table(world(held), "P36")["baseline"].to_list() == [True, True, False]
