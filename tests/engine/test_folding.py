"""What a tokenizer may fold, `folded` folds: names that become one token are spelt alike."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import normalizers
from tokenizers.normalizers import (
    NFC,
    NFD,
    NFKC,
    NFKD,
    BertNormalizer,
    Lowercase,
    Nmt,
    StripAccents,
)

from sonde.core.texts import folded

NORMALIZERS = {
    "bert, cased": BertNormalizer(lowercase=False, strip_accents=False),
    "bert, uncased": BertNormalizer(lowercase=True),
    "albert": normalizers.Sequence([NFKD(), StripAccents(), Lowercase()]),
    "sentencepiece": normalizers.Sequence([Nmt(), NFKC()]),
    "nfc": NFC(),
    "nfd": normalizers.Sequence([NFD(), StripAccents()]),
}


NEWER = "\u1cf2\u1cf3\ua7cb\ua7d2\ua7d4\ua7dc"
"""Characters that Python and tokenizers know from other versions of Unicode."""


@pytest.mark.parametrize("name", NORMALIZERS)
@example("İstanbul")
@example("Straße")
@example("ﬁlm ①")
@example("ᾳ")
@example("a\u2581b\ufffd")
@given(st.text(st.characters(exclude_characters=NEWER, exclude_categories=["Cs"]), max_size=8))
def test_a_text_and_what_a_tokenizer_makes_of_it_are_spelt_alike(name: str, text: str) -> None:
    assert folded(NORMALIZERS[name].normalize_str(text)) == folded(text)
