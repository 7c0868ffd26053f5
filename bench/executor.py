"""What the executor adds to an op: a chain of additions of one-element tensors, next to the same calls in a C++ loop.

Each round times all variants one after the other, in turning order, so that whatever else the machine does hits all
alike; reported are medians over the rounds of the time per op, and of its difference to the boxed and to the unboxed
loop of the same round, with the quartiles.

    python bench/executor.py [--ops 1000] [--rounds 200]
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time

import torch

from rockmate import _runtime


def add_chain(num_ops: int) -> _runtime.Program:
    """x = x + y, num_ops times, as a program of inputs x and y."""
    builder = _runtime.ProgramBuilder()
    x, y = builder.input(), builder.input()
    for index in range(num_ops):
        (x,) = builder.call(torch.ops.aten.add.Tensor, (x, y), {}, [(0, -1, ([1], [1]))], f"add_{index}")
    return builder.finish([x])


def python_chain(x: torch.Tensor, y: torch.Tensor, num_ops: int) -> torch.Tensor:
    for _ in range(num_ops):
        x = torch.ops.aten.add.Tensor(x, y)
    return x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=int, default=1000, help="calls per chain")
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    program = add_chain(options.ops)
    x, y = torch.zeros(1), torch.ones(1)
    variants = {
        "unboxed C++ loop": lambda: _runtime.add_chain_unboxed(x, y, options.ops),
        "boxed C++ loop": lambda: _runtime.add_chain_boxed(x, y, options.ops),
        "program": lambda: program.run([x, y])[0],
        "eager Python": lambda: python_chain(x, y, options.ops),
    }
    names = list(variants)
    times: dict[str, list[float]] = {name: [] for name in names}
    with torch.no_grad():
        for name in names:
            assert variants[name]().item() == options.ops
        for round_ in range(options.rounds):
            for shift in range(len(names)):
                name = names[(round_ + shift) % len(names)]
                begin = time.perf_counter()
                variants[name]()
                times[name].append((time.perf_counter() - begin) * 1e6 / options.ops)

    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}, one thread")
    print(f"{options.ops} additions of one-element tensors, {options.rounds} rounds; us per op: median (quartiles)")
    for name in names:
        print(f"  {name:18s} {_spread(times[name])}")
    print("the program over the loop of the same round, us per op: median (quartiles)")
    for name in names[:2]:
        extra = [mine - bare for mine, bare in zip(times["program"], times[name], strict=True)]
        ratio = statistics.median(mine / bare for mine, bare in zip(times["program"], times[name], strict=True))
        print(f"  over {name:18s} {_spread(extra)}   ratio {ratio:.3f}")


def _spread(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:7.3f} ({low:.3f} .. {high:.3f})"


if __name__ == "__main__":
    main()
