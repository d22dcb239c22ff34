"""Recipes check themselves and survive JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hexqdq.errors import UsageError
from hexqdq.qtypes import QType
from hexqdq.quantize.recipe import Recipe


def test_round_trip() -> None:
    recipe = Recipe(activations=QType.S8, per_channel=False, keep_float=("a", "b"), method="mse", mse_power=3.5)
    assert Recipe.from_json(json.loads(recipe.to_text())) == recipe
    assert Recipe.from_json({}) == Recipe()


@pytest.mark.parametrize(
    "data, sentence",
    [
        ({"method": "median"}, "'method': is 'median'; expected one of minmax, average, percentile, entropy, mse"),
        ({"activations": "s32"}, "'activations': is 's32'; expected one of u8, s8, u16, s16"),
        ({"activations": "u7"}, "'activations': is 'u7'; expected one of u8, s8, u16, s16"),
        ({"weights": "u16"}, "'weights': is 'u16'; expected one of s8, u8, s4, s16"),
        ({"weight_block": 8}, "'weight_block': is 8; expected one of 0, 16, 32"),
        ({"overrides": "x"}, "'overrides': is 'x'; expected a list of objects"),
        ({"per_channel": "yes"}, "'per_channel': is 'yes'; expected true or false"),
        ({"percentile": 101}, "'percentile': is 101; expected a number from 50 to 100"),
        ({"mse_power": "two"}, "'mse_power': is 'two'; expected a number from 1 to 8"),
        ({"histogram_bins": 1000.5}, "'histogram_bins': is 1000.5; expected a whole number"),
        ({"histogram_bins": 100}, "'histogram_bins': is 100; expected a number from 512 to 1048576"),
        ({"keep_float": [1]}, "'keep_float': is (1,)"),
        ({"bits": 8}, "'name': is 'bits'; expected one of activations, adaround, awq, bias_correct"),
    ],
)
def test_unknown_choice_lists_the_valid_ones(data: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        Recipe.from_json(data)
    assert sentence in str(caught.value)
