"""Names and patterns of variables: what fits, and that very many cost little."""

from __future__ import annotations

from fnmatch import fnmatchcase

import msgspec

from tests.support.seed import dice
from yolofs.config.settings import RunSettings, Settings
from yolofs.config.trust import Surroundings, settle_settings
from yolofs.text.wildcards import Wildcards


def test_names_fit_a_wildcard_as_fnmatch_says() -> None:
    chosen = dice("wildcards")
    for _ in range(3_000):
        patterns = ["".join(chosen.choices("ab*?[]!", k=chosen.randint(0, 5))) for _ in range(2)]
        wildcards = Wildcards(patterns)
        for name in ("".join(chosen.choices("ab[", k=chosen.randint(0, 6))) for _ in range(7)):
            expected = any(fnmatchcase(name, pattern) for pattern in patterns)
            assert wildcards.fit(name) == expected, (patterns, name)


def test_a_pattern_is_covered_by_itself_and_by_wider_ones() -> None:
    assert Wildcards(["*_TOKEN"]).cover("*_TOKEN")
    assert Wildcards(["*TOKEN*"]).cover("*_TOKEN")
    assert Wildcards(["A[B]"]).cover("A[B]")
    assert not Wildcards(["A?TOKEN", "A_*"]).cover("*_TOKEN")


def test_names_are_looked_up_however_many_there_are() -> None:
    many = Wildcards([f"NAME{number}" for number in range(20_000)])
    assert [many.fit(name) for name in ("NAME1", "NAME19999", "OTHER")] == [True, True, False]
    assert many.looks == 3


def test_twenty_thousand_names_in_a_trees_settings_wait_as_one_line() -> None:
    names = tuple(f"NAME{number}" for number in range(20_000))
    run = msgspec.structs.replace(RunSettings(), keep_env=names)
    around = Surroundings(is_root=False, preset=lambda: "", place_of=lambda text: text)
    settings, (waits,) = settle_settings(msgspec.structs.replace(Settings.defaults(), run=run), frozenset(), around)
    assert settings.run.keep_env == ()
    assert len(waits.meanings) == 20_000
