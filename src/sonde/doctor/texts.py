"""Check what a model is given: how texts open, where the answer stands, that all of it is there.

Knows token ids and offsets, nothing of tokenizers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sonde.core.examinations import Text
from sonde.doctor.findings import Case, Finding, Seen, counted, fault, ok, skipped, some, warning

PADDING = 0.9  # a model may have this much more rows than its tokenizer has tokens, to round up


def opening(seen: Seen) -> Finding:
    """Texts open, and for masked models close, as the tokenizer itself does it, and once."""
    texts = [(case, text) for case in seen.cases for text in case.given]
    doubled = [case.name for case, text in texts if is_doubled(text)]
    if doubled:
        most = max(text.opening for _, text in texts)
        return fault(
            f"{counted(len(doubled), 'text')} of {len(texts)} open with more than the "
            f"tokenizer's own beginning (up to {most} such tokens): {some(doubled)}",
            "A doubled BOS changes every probability. Put it there once: leave out --bos, "
            "or take it out of the template",
        )
    missing = [case.name for case, text in texts if text.opening < len(text.opens)]
    if missing:
        asked = any(case.shown and case.shown.limits.bos == "never" for case in seen.cases)
        return (warning if asked else fault)(
            f"{counted(len(missing), 'text')} of {len(texts)} lack the beginning that "
            f"{'tokenizer and config put' if paired(seen.cases) else 'the tokenizer itself puts'} "
            f"there: {some(missing)}",
            "You asked for that with --bos never"
            if asked
            else "Models made with a BOS answer nonsense without it; use --bos auto or always, "
            "and open what a decoder writes with its decoder_start_token_id",
        )
    open_ended = [case.name for case, text in texts if text.closing < len(text.closes)]
    if open_ended:
        return fault(
            f"{counted(len(open_ended), 'text')} of {len(texts)} lack the end that the "
            f"tokenizer itself puts there: {some(open_ended)}",
            "The encoder cuts texts, or the tokenizer is not the model's own",
        )
    found = described([text for _, text in texts], paired(seen.cases))
    return ok(found)


def paired(cases: Sequence[Case]) -> bool:
    """Whether the model writes into texts of their own, which open as its config says."""
    return any(case.shown and case.shown.sources for case in cases)


def is_doubled(text: Text) -> bool:
    """Whether what opens a text stands there twice, or again inside it."""
    inside = any(id in text.opens for id in text.inner) and text.opening >= len(text.opens)
    return inside or text.opening > max(len(text.opens), 1)


def described(texts: Sequence[Text], paired: bool) -> str:
    """How texts open, in words."""
    kinds = Counter(text.pieces[: text.opening] for text in texts)
    if not kinds:
        return "no text to look at"
    parts = [
        f"{counted(count, 'text')} with {''.join(pieces) or 'nothing before it'}"
        for pieces, count in kinds.most_common()
    ]
    who = "tokenizer and config have it" if paired else "the tokenizer does it"
    return "; ".join(parts) + f", as {who}" * all(text.opening == len(text.opens) for text in texts)


def boundary(seen: Seen) -> Finding:
    """Tokens are those of the text in one piece, and the answer's are where the answer stands."""
    texts = [(case, text) for case in seen.cases for text in case.given if text.content]
    whole = [(case, text) for case, text in texts if not cut_short(text)]
    strange = [(named(case, t), t) for case, t in whole if t.inner != t.content]
    apart = [name for name, text in strange if text.inner == text.apart]
    if apart:
        return fault(
            f"prefix and answer are tokenised apart in {counted(len(apart), 'text')} of "
            f"{len(texts)}, which gives other tokens than the whole text: {some(apart)}",
            "Tokenise prefix and answer as one text and find the answer by its characters",
        )
    other = [name for name, _ in strange]
    if other:
        return fault(
            f"{counted(len(other), 'text')} of {len(texts)} become other tokens than the "
            f"tokenizer makes of them: {some(other)}",
            "The model is not given the text that was asked; look at the tokens above",
        )
    misplaced = [named(case, t) for case, t in whole if t.answer and not in_place(t)]
    if misplaced:
        return fault(
            f"the tokens taken for the answer are not the answer's in "
            f"{counted(len(misplaced), 'text')} of {len(texts)}: {some(misplaced)}",
            "Other tokens than the answer's are scored; find the answer by its characters",
        )
    answers = [text for _, text in texts if text.answer]
    straddling = sum(map(straddles, answers))
    found = f"found by its characters in {counted(len(answers), 'text')}"
    if straddling:
        found += f"; in {straddling} a token reaches from prefix into answer and belongs to it"
    return ok(found)


def named(case: Case, text: Text) -> str:
    """How a text is called in a message."""
    return f"{case.name} + {text.answer!r}" if text.answer else f"{case.name}, as it is read"


def cut_short(text: Text) -> bool:
    """Whether a text's tokens are a part of what they should be, from its start or its end."""
    given, whole = text.inner, text.content
    if not whole or len(given) >= len(whole):
        return False
    return given == whole[: len(given)] or given == whole[len(whole) - len(given) :]


def in_place(text: Text) -> bool:
    """Whether the tokens marked as answer, and no others, hold the answer's characters.

    The space before an answer may be the answer's or the prefix's.
    """
    start, stop = text.start - text.opening, text.stop - text.opening
    spans = list(enumerate(text.offsets))
    holding = {i for i, (a, b) in spans if b > text.begin and a < text.finish}
    spaces = {i for i, (a, b) in spans if text.gap <= a and b <= text.begin}
    marked = set(range(start, stop))
    return holding <= marked <= holding | spaces and start < stop


def straddles(text: Text) -> bool:
    """Whether a token of the answer holds more of the prefix than a space."""
    start = text.start - text.opening
    return start < len(text.offsets) and text.offsets[start][0] < text.gap


def length(seen: Seen) -> Finding:
    """Every text goes into the model whole."""
    texts = [(case, text) for case in seen.cases for text in case.given]
    short = [(case, text) for case, text in texts if cut_short(text)]
    if short:
        case, text = short[0]
        return fault(
            f"{counted(len(short), 'text')} of {len(texts)} are truncated: of {case.name} "
            f"the model gets {len(text.inner)} of {len(text.content)} tokens",
            "Turn truncation off in the tokenizer; what is cut off is not asked",
        )
    limit = next((case.shown.limits.context for case in seen.cases if case.shown), None)
    longest = max((len(text.ids) for _, text in texts), default=0)
    values = {"longest": float(longest)} | ({"context": float(limit)} if limit else {})
    takes = f"the model takes {limit:,}" if limit else "the model takes any length"
    over = [case.name for case, text in texts if limit and len(text.ids) > limit]
    if over:
        return fault(
            f"{counted(len(over), 'text')} of {len(texts)} are too long: the longest has "
            f"{longest:,} tokens, {takes}: {some(over)}",
            "Leave these facts out, shorten the context, or take a model with a longer one",
            values=values,
        )
    found = f"the longest text has {counted(longest, 'token')}; {takes}"
    return ok(found, values=values)


def known(seen: Seen) -> Finding:
    """The tokenizer gives no token that the model does not have."""
    shown = [case for case in seen.cases if case.shown]
    limits = [case.shown.limits for case in shown if case.shown]
    if not limits:
        return skipped("no text to look at")
    rows, tokens = limits[0].vocabulary, limits[0].tokens
    sizes = f"the tokenizer has {tokens:,} tokens and the model {rows:,}"
    strange = [c.name for c in shown for t in c.texts if max(t.ids, default=0) >= rows]
    if strange:
        return fault(
            f"{counted(len(strange), 'text')} hold tokens the model does not have ({sizes}): "
            f"{some(strange)}",
            "Tokenizer and weights do not belong together; use the model's own tokenizer",
        )
    if tokens > rows or tokens < PADDING * rows:
        return warning(
            f"{sizes}, so they may not belong together",
            "Compare the tokenizer files with those the model was published with",
        )
    return ok(f"all; {sizes}")


def unknown(seen: Seen) -> Finding:
    """No option and no subject is unknown to the tokenizer."""
    texts = [(case, text) for case in seen.cases for text in case.given]
    options = [t.answer for _, t in texts if t.unknown in t.ids[t.start : t.stop]]
    around = [
        case.name
        for case, t in texts
        if t.unknown in t.ids[t.opening : t.start] + t.ids[t.stop : len(t.ids) - t.closing]
    ]
    found = {"options with an unknown token": options, "prompts with one": around}
    parts = [f"{what}: {some(names)}" for what, names in found.items() if names]
    if not parts:
        return ok("none")
    return warning(
        "; ".join(parts),
        "The model cannot tell such names apart; leave these facts out or take a model "
        "whose tokenizer writes them",
    )


def refusals(seen: Seen) -> Finding:
    """Every prompt was answered."""
    told = [f"{case.name}: {case.refused}" for case in seen.cases if case.refused]
    if told:
        return fault(
            f"{counted(len(told), 'prompt')} of {len(seen.cases)} not answered. {some(told, 1)}",
            "A run would stop there",
        )
    answered = sum(case.answer is not None for case in seen.cases)
    rest = "; the others are too long or not in its tokens" if answered < len(seen.cases) else ""
    return ok(f"{answered} of {len(seen.cases)} prompts{rest}")
