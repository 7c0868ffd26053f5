"""What others have reached on the published instances, and on graphs of the same kind: figures to hold ours against.

Overheads are shares of the time without recomputation, budgets shares of the peak without recomputation. Sources:

    CP      retention intervals in CP-SAT, at most two computations a value, the published order, 16 workers on 2 cores
    MILP    Checkmate's formulation (arXiv 1910.02653) in HiGHS 1.16, 2 threads
    FastSA  Fast Rematerialization by simulated annealing, NeurIPS 2023, its table of results
    Moccasin  Bartan et al., ICML 2023 (arXiv 2304.14463), 16 workers, 3600 s

Instances are named by the graph's own name in the node-link file, so that a copy under any file name is recognized.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    graph: str  # how the name in the file begins
    share: float
    overhead: float
    seconds: float
    proved: bool  # proved to be the least for the published order and two computations a value
    source: str


VGG16, FCN8, VGG_UNET = "VGG16 (MLSys)_256", "fcn_8_vgg (MLSys)_32", "vgg_unet (MLSys)_32"
LAYERED_100 = "random_layered_n100_w0.27"
LAYERED_250 = "random_layered_n250_w0.43"
LAYERED_1000 = "random_layered_n1000_w0.31"

PUBLISHED = [
    Published(VGG16, 0.9, 0.01968, 1.8, True, "CP and MILP"),
    Published(FCN8, 0.9, 0.00029, 7, True, "CP and MILP"),
    Published(FCN8, 0.8, 0.00136, 7, True, "CP and MILP"),
    Published(FCN8, 0.7, 0.00893, 7, True, "CP and MILP"),
    Published(FCN8, 0.65, 0.01617, 7, True, "CP and MILP"),
    Published(VGG_UNET, 0.9, 0.01129, 10, True, "CP and MILP"),
    Published(VGG_UNET, 0.8, 0.01984, 10, True, "CP and MILP"),
    Published(VGG_UNET, 0.7, 0.02967, 10, True, "CP and MILP"),
    Published(VGG_UNET, 0.6, 0.04451, 10, True, "CP and MILP"),
    Published(VGG_UNET, 0.5, 0.06967, 12, True, "CP"),
    Published(VGG_UNET, 0.45, 0.09321, 14, True, "CP"),
    Published(VGG_UNET, 0.42, 0.11466, 16, True, "CP"),
    Published(LAYERED_100, 0.9, 0.00789, 22, True, "CP"),
    Published(LAYERED_100, 0.8, 0.02296, 22, True, "CP"),
    Published(LAYERED_100, 0.77, 0.022, 0, False, "FastSA, order free"),
    Published(LAYERED_100, 0.7, 0.0783, 141, False, "CP"),
    Published(LAYERED_250, 0.9, 0.009, 3600, False, "Moccasin"),
    Published(LAYERED_250, 0.8, 0.049, 3600, False, "Moccasin"),
    Published(LAYERED_1000, 0.9, 0.004, 36, False, "FastSA"),
    Published(LAYERED_1000, 0.8, 0.025, 36, False, "FastSA"),
    Published(LAYERED_1000, 0.7, 0.074, 36, False, "FastSA"),
]

# The same figures for generated graphs of the same kind: another draw, so a comparison in kind only.
SAME_KIND = {"random_layered_100": LAYERED_100, "random_layered_250": LAYERED_250, "random_layered_1000": LAYERED_1000}


def published_for(graph_name: str) -> list[Published]:
    return [figure for figure in PUBLISHED if graph_name.startswith(figure.graph)]
