"""What is made of times: made-up runs of every rule, and everything that can go wrong with one."""

from __future__ import annotations

import random

import pytest

from pyshim.probe import judge
from pyshim.probe.judge import Run, Trial, verdict

BLOCK, WAVES, HIGH = 100.0, 24, 12.0
GRID = BLOCK * WAVES
ARRIVALS = (3, 6, 9, 12, 15, 18)
Pairs = list[tuple[float, float]]


def trial(waits: list[float], lost: float, control: float = 0.05, arrivals: tuple[int, ...] = ARRIVALS) -> Trial:
    """waits, control: in block times; lost: of what the grid loses under hold, by the integral of blocks that end."""
    highs = [(since * BLOCK, wait * BLOCK + HIGH) for since, wait in zip(arrivals, waits)]
    whole = sum(judge.held_back(wait) for wait in waits) * BLOCK
    own = len(waits) * HIGH / 132
    return Trial(GRID, GRID + lost * whole + own, (1.5 * BLOCK, control * BLOCK + HIGH), highs)


def hold(noise: float = 0.0) -> Trial:
    return trial([0.45 + noise] * 6, 1.0 + noise)


def drain() -> Trial:
    return trial([0.95] * 6, 0.03)


def backfill() -> Trial:
    """The first waits for the end of the grid, the others come after it."""
    highs: Pairs = [(3 * BLOCK, GRID - 3.8 * BLOCK + HIGH)]
    highs += [(GRID + (2 + 2 * i) * BLOCK, HIGH) for i in range(5)]
    return Trial(GRID, GRID + 5, (1.5 * BLOCK, 0.1 * BLOCK + HIGH), highs)


def ignored() -> Trial:
    """Priority does nothing: the control, which would fit, waits for the end as well."""
    highs: Pairs = [(GRID + 3 * i * BLOCK, HIGH) for i in range(1, 7)]
    return Trial(GRID, GRID, (1.5 * BLOCK, GRID - 2.5 * BLOCK + HIGH), highs)


def said(*trials: Trial, multiprocessors: int = 132) -> judge.Verdict:
    return verdict(Run(trials, WAVES, HIGH, multiprocessors))


@pytest.mark.parametrize(("rule", "one"), [("hold", hold()), ("drain", drain()), ("backfill", backfill())])
def test_the_three_answers(rule: str, one: Trial) -> None:
    found = said(*[one] * 20)
    assert (found.rule, found.trials) == (rule, 20)
    assert found.counts == {**dict.fromkeys(judge.WORDS, 0), rule: 20}


def test_the_unit_is_what_was_measured() -> None:
    """The same run a thousand times slower, or on a GPU that takes 3 ns a block, has the same answer."""
    for scale in (1e-4, 1e3):
        for rule, one in (("hold", hold()), ("drain", drain()), ("backfill", backfill())):
            scaled = Trial(
                one.alone * scale,
                one.grid * scale,
                (one.control[0] * scale, one.control[1] * scale),
                [(since * scale, took * scale) for since, took in one.highs],
            )
            assert verdict(Run([scaled] * 20, WAVES, HIGH * scale, 132)).rule == rule


def test_one_outlier_changes_nothing_and_many_do() -> None:
    odd = trial([0.45] * 5 + [7.0], 1.0)
    assert said(*[hold()] * 19, odd).rule == "hold"
    assert said(*[hold()] * 18, odd, drain()).rule == "hold"
    found = said(*[hold()] * 17, odd, odd, drain())
    assert found.rule is None and (found.counts["hold"], found.counts["unclear"], found.counts["drain"]) == (17, 2, 1)


def test_too_few_trials_are_no_answer() -> None:
    assert said(*[hold()] * judge.FEWEST).rule == "hold"
    assert said(*[hold()] * (judge.FEWEST - 1)).rule is None
    assert said().rule is None


def test_where_priority_does_nothing_it_is_not_backfill() -> None:
    found = said(*[ignored()] * 20)
    assert found.rule is None and found.counts["ignored"] == 20


def test_a_grid_that_ran_out_before_anything_came_says_nothing() -> None:
    """The high stream was late: every launch behind the grid starts at once, which looks like no wait."""
    late: Pairs = [(GRID + i * BLOCK, HIGH) for i in range(1, 7)]
    assert said(*[Trial(GRID, GRID, (GRID + 1, HIGH), late)] * 20).rule is None
    short = trial([0.45] * 6, 1.0, arrivals=(19, 20, 21, 22, 23, 24))
    assert said(*[short._replace(highs=[(since + 5 * BLOCK, took) for since, took in short.highs])] * 20).rule is None


def test_a_wait_for_the_end_that_was_short_is_not_backfill() -> None:
    """It arrived when the grid was nearly done: any rule makes it wait until then."""
    one = Trial(GRID, GRID, (1.5 * BLOCK, HIGH), [(20 * BLOCK, 3.5 * BLOCK + HIGH), *[(GRID + 1, HIGH)] * 5])
    assert said(*[one] * 20).rule is None


def test_a_wait_for_something_else_than_the_grid_is_not_backfill() -> None:
    """Another process's blocks, which stay longer than the grid."""
    one = backfill()
    since, took = one.highs[0]
    for late, word in ((0, "backfill"), (2, "backfill"), (5, "unclear"), (30, "unclear")):
        waited = one._replace(highs=[(since, took + late * BLOCK), *one.highs[1:]])
        assert said(*[waited] * 20).counts[word] == 20
    control, stuck = ignored(), (1.5 * BLOCK, GRID + 10 * BLOCK)
    assert said(*[control._replace(control=stuck)] * 20).counts["unclear"] == 20


def test_a_long_wait_in_the_middle_of_a_grid_is_none_of_the_three() -> None:
    assert said(*[trial([0.45, 0.45, 3.0, 0.45, 0.45, 0.45], 1.0)] * 20).rule is None
    # All in time but the last, which waits until the grid has run out.
    assert said(*[trial([0.45] * 5 + [7.0], 0.4, arrivals=(2, 4, 6, 8, 10, 17))] * 20).rule is None


def test_what_came_early_and_ended_behind_the_grid_is_none_of_the_three() -> None:
    one = hold()
    stuck = one._replace(highs=[*one.highs[:5], (GRID - 6 * BLOCK, 8 * BLOCK)])
    assert said(*[stuck] * 20).rule is None
    # Not for the end of the grid: it starts while there is much of it left.
    waited = one._replace(highs=[(3 * BLOCK, 8 * BLOCK + HIGH), *one.highs[3:]])
    assert said(*[waited] * 20).counts["unclear"] == 20


def test_most_of_them_must_have_met_the_grid() -> None:
    one = hold()
    few = one._replace(highs=[*one.highs[:2], *[(GRID + (i + 2) * BLOCK, HIGH) for i in range(4)]])
    assert said(*[few] * 20).rule is None


def test_what_high_blocks_take_themselves_is_not_lost_by_waiting() -> None:
    """On few multiprocessors a block that takes one for itself is a large part of the GPU."""
    one = drain()
    highs = [(since, took + 9 * HIGH) for since, took in one.highs]
    whole = one._replace(grid=one.alone + 6 * 10 * HIGH / 7, highs=highs)
    assert verdict(Run([whole] * 20, WAVES, 10 * HIGH, 7)).rule == "drain"


def test_the_last_ones_may_meet_the_end_of_the_grid() -> None:
    one = drain()
    late = one._replace(highs=[*one.highs[:4], (GRID - 0.5 * BLOCK, BLOCK), (GRID + BLOCK, HIGH)])
    assert said(*[late] * 20).rule == "drain"


@pytest.mark.parametrize("lost", [0.42, -2.0, 9.0])
def test_losses_between_and_beyond_the_two_are_unclear(lost: float) -> None:
    assert said(*[trial([0.6] * 6, lost)] * 20).counts["unclear"] == 20


def test_a_gpu_that_others_use_is_not_answered_wrongly() -> None:
    """Time slices of others, of 20 block times, fall into the grid with the high blocks, the grid alone, or a wait."""
    generator = random.Random(1)

    def disturbed(one: Trial) -> Trial:
        waits = list(one.highs)
        for _ in range(generator.randrange(3)):
            hit = generator.randrange(len(waits))
            waits[hit] = (waits[hit][0], waits[hit][1] + generator.random() * 20 * BLOCK)
        slices = [generator.randrange(3) * 20 * BLOCK * generator.random() for _ in range(2)]
        return Trial(one.alone + slices[0], one.grid + slices[1], one.control, waits)

    for rule, one in (("hold", hold()), ("drain", drain()), ("backfill", backfill())):
        for _ in range(200):
            assert said(*[disturbed(one) for _ in range(20)]).rule in (rule, None)


@pytest.mark.parametrize("broken", [{"alone": 0.0}, {"grid": 0.0}, {"alone": -1.0}, {"highs": []}])
def test_times_that_make_no_sense_say_nothing(broken: dict[str, object]) -> None:
    assert said(*[hold()._replace(**broken)] * 20).rule is None  # type: ignore[arg-type]


def test_small_slices_of_a_gpu() -> None:
    """Of few multiprocessors one that drains is a larger part."""
    assert said(*[trial([0.7] * 6, 0.9)] * 20, multiprocessors=7).rule == "hold"
    assert said(*[trial([0.95] * 6, 0.25)] * 20, multiprocessors=7).rule == "drain"
