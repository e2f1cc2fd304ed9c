"""Rows of trees answer every option once, and their rows are the trees of their texts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.rated import ends_of
from sonde.engine.batching import Budget
from sonde.engine.dry_run import DryRun
from sonde.engine.encode import Branches, Span, lengthened
from sonde.engine.prefixes import PrefixCache, opened
from sonde.engine.row_schedule import tree_row_passes
from sonde.engine.schedule import Pass, Passes
from sonde.engine.token_tree import TokenTree, merge
from sonde.engine.tree_rows import TreeRows

TOKENS = st.integers(0, 3)
# some long enough to be a prefix that others share
HEADS = st.tuples(
    st.sampled_from([(), (5,) * 16, (6,) * 40]), st.lists(TOKENS, min_size=1, max_size=3)
)


@st.composite
def branches(draw: st.DrawFn) -> Branches:
    opening, rest = draw(HEADS)
    spans = []
    for ids in draw(
        st.lists(st.lists(TOKENS, min_size=1, max_size=4).map(tuple), min_size=1, max_size=4)
    ):
        start = draw(st.integers(0, len(ids) - 1))
        stop = draw(st.integers(start + 1, len(ids)))
        spans.append(Span(ids=ids, start=start, stop=stop, end=len(ids)))
    return Branches(head=(*opening, *rest), spans=tuple(spans))


PROMPTS = st.lists(branches(), min_size=1, max_size=6)
BUDGETS = st.sampled_from([1, 9, 40, 1000])
Read = tuple[tuple[int, ...], int]


def budget(tokens: int) -> Budget:
    return Budget(tokens, lambda _: True)


def run(passes: Passes, room: int) -> list[Pass]:
    """The passes that succeed where only so many tokens fit into memory at once."""
    done: list[Pass] = []
    step = next(passes, None)
    while step is not None:
        failed = step.divisible and step.size > room
        done += [] if failed else [step]
        try:
            step = passes.send(failed)
        except StopIteration:
            step = None
    return done


def expected(prompts: list[Branches]) -> list[list[Read]]:
    """For each text, what it reads: the tokens before, and the token."""
    texts = [lengthened(span, own.head) for own in prompts for span in own.spans]
    return [[(t.ids[:i], t.ids[i]) for i in range(t.start, t.end)] for t in texts]


def reads_of(rows: TreeRows) -> list[Read]:
    """Every read of a pass: the tokens that its place sees, in order, and a token."""
    width = rows.ids.shape[1]
    found = []
    for which, token in zip(rows.which, rows.tokens, strict=True):
        row, column = divmod(int(rows.reads[which]), width)
        back = np.flatnonzero(rows.seen[row, column])
        assert sorted(rows.depths[row, back]) == list(range(rows.depths[row, column] + 1))
        own = rows.ids[row, back[np.argsort(rows.depths[row, back])]]
        found.append(((*rows.prefixes[rows.owners[row]], *own.tolist()), int(token)))
    return found


def tree_reads(tree: TokenTree, prefix: tuple[int, ...]) -> list[Read]:
    order = [np.flatnonzero(row) for row in tree.seen]
    paths = [tree.ids[nodes[np.argsort(tree.depths[nodes])]].tolist() for nodes in order]
    pairs = zip(tree.nodes.tolist(), tree.tokens.tolist(), strict=True)
    return [((*prefix, *paths[node]), token) for node, token in pairs]


@given(PROMPTS, BUDGETS, st.integers(1, 60), st.sampled_from([0, 10]), st.sampled_from([None, 20]))
def test_every_option_is_read_once_after_its_own_tokens(
    prompts: list[Branches], tokens: int, room: int, enough: int, farthest: int | None
) -> None:
    first = ends_of([len(own.spans) for own in prompts])
    wanted, found = expected(prompts), {}
    passes = tree_row_passes(budget(tokens), prompts, enough=enough, farthest=farthest)
    for step in run(passes, room):
        if isinstance(step.work, TreeRows):
            numbers, reads = step.texts, iter(reads_of(step.work))
            most = max(len(ids) for ids, _ in reads_of(step.work))
            behind = np.array([len(step.work.prefixes[own]) for own in step.work.owners])
            assert (step.work.depths + behind[:, None]).max() < most, "no place beyond the texts"
            assert farthest is None or all(len(ids) <= farthest for ids, _ in reads_of(step.work))
        else:
            start = int(first[step.members[0]]) + step.first
            several = [n for i in step.members for n in range(first[i], first[i + 1])]
            alone = list(range(start, start + len(step.work.sizes)))
            numbers = several if len(step.members) > 1 else alone
            reads = iter(tree_reads(step.work, step.prefix))
        for number in numbers:
            assert int(number) not in found
            found[int(number)] = [next(reads) for _ in wanted[int(number)]]
    assert [found[n] for n in range(len(wanted))] == wanted


@given(PROMPTS, st.booleans())
def test_a_dry_run_counts_what_is_fed(prompts: list[Branches], twice: bool) -> None:
    prompts = prompts * 2 if twice else prompts
    cache: PrefixCache[None] = PrefixCache(lambda _: (None, 0), budget=1)
    dry = DryRun(len(prompts))
    dry.count(tree_row_passes(budget(1000), prompts), list(range(len(prompts))), prefixes=cache)
    fed = sum(shape.rows * shape.width for shape in dry.shapes)
    stems = sum(cost.stems for cost in dry.costs)
    padding = sum(cost.padding for cost in dry.costs)
    heads = {
        own.head: [s for other in prompts if other.head == own.head for s in other.spans]
        for own in prompts
    }
    trees = sum(
        len(merge([lengthened(s, head) for s in spans]).ids) for head, spans in heads.items()
    )
    computed = sum(cost.computed for cost in dry.costs)
    (step,) = tree_row_passes(budget(1000), prompts)
    behind = [step.work.prefixes[k] for k in step.work.owners]
    assert computed - stems == trees - sum(map(len, behind))
    kept = {ids for ids in behind if ids}
    assert stems == sum(map(len, kept))
    rows = sum(len(batch) * len(batch[0]) for batch in opened(list(kept), step.size))
    assert computed + padding == fed + rows


def test_rows_of_like_size_go_together_once_there_are_enough_tokens() -> None:
    def prompt(number: int, size: int) -> Branches:
        return Branches(
            head=(number,),
            spans=tuple(Span(ids=(k, 0), start=0, stop=2, end=2) for k in range(size)),
        )

    prompts = [prompt(0, 30), prompt(1, 29), prompt(2, 10), prompt(3, 9), prompt(4, 30)]
    every = list(tree_row_passes(budget(1000), prompts))
    assert [sorted(step.members) for step in every] == [[0, 1, 2, 3, 4]]
    like = list(tree_row_passes(budget(1000), prompts, enough=40))
    assert [sorted(step.members) for step in like] == [[0, 1, 4], [2, 3]]
