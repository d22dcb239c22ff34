"""The exact arithmetic of tests/models/ties.py, on values worked out by hand."""

from __future__ import annotations

from fractions import Fraction

from tests.models.ties import is_tie, source_taps


def test_only_halves_are_ties() -> None:
    assert is_tie(Fraction(5, 2)) and is_tie(Fraction(-5, 2))
    assert not any(map(is_tie, (Fraction(2), Fraction(1, 3), Fraction(5, 2) + Fraction(1, 10**9))))


def test_places_between_elements() -> None:
    half = Fraction(1, 2)
    assert source_taps("align_corners", 1, 3, 5) == ((0, half), (1, half))
    assert source_taps("asymmetric", 1, 2, 4) == ((0, half), (1, half))
    assert source_taps("half_pixel", 0, 2, 4)[0] == (0, Fraction(1))
