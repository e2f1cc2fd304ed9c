"""Published results of in-context estimation are read, and come out as they were published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonde.core.errors import DataError
from sonde.core.scores import shares
from sonde.prompting.sequences import ListLayout

from .published import BETWEEN, INSIDE, examples, read_published

SMALL: dict[str, Any] = {
    "base_prompts": ["Peru : Lima , Chile : Santiago France : "],
    "post_processed_outputs": [[0.001, 0.003]],
    "post_processed_outputs_normalized": [[0.25, 0.75]],
    "accuracy": 1.0,
    "prob_mass": 0.75,
}


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "results.json"
    path.write_text(json.dumps({**SMALL, **changes}), encoding="utf-8")
    return path


@pytest.mark.shared
def test_published_results_are_reproduced(shared: Path) -> None:
    published = read_published(
        shared / "data" / "trex_mc_sample" / "mc_relation1_llama2-7b_seed10.json"
    )
    rows = np.array([shares(np.log(row)) for row in published.probabilities])
    assert (rows.argmax(axis=1) == published.gold).mean() == published.accuracy == 0.3
    assert rows[:, published.gold].mean() == pytest.approx(published.mass, abs=1e-12)
    assert published.mass == pytest.approx(0.2886, abs=5e-5)
    for row, normalised in zip(published.probabilities, published.normalised, strict=True):
        np.testing.assert_allclose(shares(np.log(row)), normalised, atol=1e-12)


@pytest.mark.shared
def test_published_prompts_are_worded_as_ours_are(shared: Path) -> None:
    published = read_published(
        shared / "data" / "trex_mc_sample" / "mc_relation1_llama2-7b_seed10.json"
    )
    layout = ListLayout(pair=INSIDE, example=BETWEEN)
    for prompt in published.prompts:
        shown, last = examples(prompt)
        assert len(shown) == 49
        assert layout.write(shown)[0] + last == prompt


def test_the_right_option_is_the_last(tmp_path: Path) -> None:
    published = read_published(written(tmp_path))
    [row] = published.probabilities
    assert max(row) == row[published.gold]
    assert shares(np.log(row))[published.gold] == pytest.approx(0.75)


def test_results_without_probabilities_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"base_prompts": []}), encoding="utf-8")
    with pytest.raises(DataError, match="post_processed_outputs"):
        read_published(path)


@pytest.mark.parametrize("rows", [[], [[0.1]], [[]]])
def test_results_with_options_missing_are_refused(rows: list[list[float]], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="as many in each"):
        read_published(written(tmp_path, post_processed_outputs=rows))


@pytest.mark.parametrize("text", ["none", "3", "[]"])
def test_a_file_of_another_form_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="published results"):
        read_published(path)
