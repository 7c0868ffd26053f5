"""Share one budget among the pieces of a model.

The pieces run one after the other in the forward pass and in the reverse order in the backward pass, so what a piece keeps is
held while all later pieces run. For calls 1 .. k with options o_1 .. o_k the budget B is kept when, for every i,

    sum over j < i of kept(o_j)  +  peak(o_i)  <=  B

    memory of the step over time, three calls:          peak(o_3)
                                                         ____
                                              kept(o_2) |    | peak(o_2)
                                    kept(o_1) ..........|    |____  peak(o_1)
                              ________________|              ....|____
                     forward:    1     2        3 | backward:  3     2     1

Data-dependent branches make a tree of calls: a node for each call, given the calls before it. :func:`allocate` chooses an
option for each node that keeps every path within the budget in the least total time. From the leaves up, each node gets a
staircase: the least time of the calls from it on, as a function of the bytes that are held when it begins.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rockmate.piece_options import PieceOption, PieceOptions

MOST_STEPS = 400  # of a staircase; more find better allocations and take longer

Staircase = list[tuple[int, float]]  # (most bytes held before, least time), both descending


@dataclass(eq=False)
class CallNode:
    """A call of a piece, given the calls before it in the step.

    Attributes:
        options: the ways to run the piece.
        eager_bytes: held besides, from before this call until after its backward pass: what ops between the pieces saved or
            handed over.
        waiting_bytes: held besides while its backward pass runs: gradients that wait for earlier calls, outputs of later ones.
        after_bytes: held besides what was there when the call ended, at the most, by what runs between this call and its
            backward pass outside of all pieces.
        chosen: the option allocated to the call.
    """

    options: PieceOptions
    eager_bytes: int = 0
    waiting_bytes: int = 0
    after_bytes: int = 0
    chosen: PieceOption | None = None
    children: dict[object, CallNode] = field(default_factory=dict)

    def walk(self) -> Iterator[CallNode]:
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    def peak_of(self, option: PieceOption) -> int:
        """The most bytes that the call holds by itself: in its passes, and when it has kept what it keeps."""
        return max(
            option.forward_peak_bytes,
            option.backward_peak_bytes + self.waiting_bytes,
            option.kept_bytes + self.after_bytes,
        )


def least_peak_bytes(node: CallNode, options_of: Callable[[CallNode], list[PieceOption]]) -> int:
    """The least budget under which the calls from ``node`` on can run, with the options that ``options_of`` gives."""
    least: dict[CallNode, int] = {}
    for current in reversed(list(node.walk())):
        rest = max((least[child] for child in current.children.values()), default=0)
        least[current] = current.eager_bytes + min(
            max(current.peak_of(option), option.kept_bytes + rest) for option in options_of(current)
        )
    return least[node]


def store_all_peak_bytes(node: CallNode) -> int:
    """The peak of the calls from ``node`` on when nothing is computed again."""
    return least_peak_bytes(node, lambda current: [current.options.store_all])


def min_budget_bytes(node: CallNode) -> int:
    """The least budget that every step keeps, the first included: there the forward passes save as late options do."""
    return min(least_peak_bytes(node, lambda current: current.options.late), store_all_peak_bytes(node))


def allocate(root: CallNode, budget_bytes: int) -> bool:
    """Choose an option for every call. Returns whether there is a choice that keeps the budget."""
    staircases: dict[CallNode, Staircase] = {}
    for node in reversed(list(root.walk())):
        staircases[node] = _staircase(node, _sum([staircases[child] for child in node.children.values()]), budget_bytes)
    if not staircases[root] or staircases[root][0][0] < 0:
        return False
    stack = [(root, 0)]
    while stack:
        node, held_bytes = stack.pop()
        node.chosen = _best(node, held_bytes, staircases, budget_bytes)
        if node.chosen is None:
            return False
        after = held_bytes + node.eager_bytes + node.chosen.kept_bytes
        stack.extend((child, after) for child in node.children.values())
    return True


def chosen_peak_bytes(root: CallNode) -> int:
    """The peak under the options chosen."""
    return least_peak_bytes(root, lambda node: [node.chosen] if node.chosen is not None else node.options.late)


def _best(node: CallNode, held_bytes: int, staircases: dict[CallNode, Staircase], budget_bytes: int) -> PieceOption | None:
    best: PieceOption | None = None
    best_price = (float("inf"), 0)
    for option in node.options.options:
        before = held_bytes + node.eager_bytes
        if before + node.peak_of(option) > budget_bytes:
            continue
        times = [_time_at(staircases[child], before + option.kept_bytes) for child in node.children.values()]
        price = (option.time_us + sum(times), option.kept_bytes)
        if price < best_price:
            best, best_price = option, price
    return best


def _staircase(node: CallNode, rest: Staircase, budget_bytes: int) -> Staircase:
    steps = []
    for option in node.options.options:
        own_limit = budget_bytes - node.peak_of(option)
        for limit, time_us in rest:
            steps.append((min(own_limit, limit - option.kept_bytes) - node.eager_bytes, option.time_us + time_us))
    return _thinned(_lower_hull(steps))


def _lower_hull(steps: Staircase) -> Staircase:
    """Without steps that another one beats in bytes and time both."""
    kept: Staircase = []
    for limit, time_us in sorted(steps, key=lambda step: (-step[0], step[1])):
        if not kept or time_us < kept[-1][1]:
            kept.append((limit, time_us))
    return kept


def _thinned(steps: Staircase) -> Staircase:
    if len(steps) <= MOST_STEPS:
        return steps
    return [steps[round(i * (len(steps) - 1) / (MOST_STEPS - 1))] for i in range(MOST_STEPS)]


def _time_at(staircase: Staircase, held_bytes: int) -> float:
    """The least time with so many bytes held before."""
    after = bisect.bisect_right(staircase, -held_bytes, key=lambda step: -step[0])
    return staircase[after - 1][1] if after else float("inf")


def _sum(staircases: list[Staircase]) -> Staircase:
    """The staircase of several branches together: each has its time at the same bytes held."""
    if not staircases:
        return [(1 << 62, 0.0)]
    if len(staircases) == 1:
        return staircases[0]
    limits = sorted({limit for staircase in staircases for limit, _ in staircase}, reverse=True)
    steps = [(limit, sum(_time_at(staircase, limit) for staircase in staircases)) for limit in limits]
    return [step for step in steps if step[1] != float("inf")]
