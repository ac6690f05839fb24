"""Sums of outer products of rows, and the ridge regressions made of them: the inner loop of ALS.

A design is a float32[(rows + 1), width], kept flat: a row is (1, f_1 .. f_r, 0 ...), its width the next
multiple of 8, and the last row is all zeros, to fill up groups of four. The number of columns r + 1 is the
length of the tuple `tag`, so that the compiler knows it: each rank is compiled once and kept on disk, the
loops are laid out in full and a sum stays in vector registers (3 times as fast as loops over a length known
only at run time).
"""

# ruff: noqa: ARG001 (an intrinsic names arguments that only its signature uses)

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

LANES = 8  # float32 in a vector register; the compiler cuts it in pieces where registers are shorter
_FLUSH = 2048  # float32 sums take in at most that many terms before they are added to float64 ones


def tag_of(rank: int) -> tuple[np.int8, ...]:
    """The tuple whose length tells the compiled kernels the number of columns, rank + 1."""
    return (np.int8(0),) * (rank + 1)


def width_of(rank: int) -> int:
    """Floats in a row of a design."""
    return -(-(rank + 1) // LANES) * LANES


def factors_of(design: NDArray[np.float32], rows: int, rank: int) -> NDArray[np.float32]:
    """The factors in a flat design, float32[rows, rank]."""
    return np.ascontiguousarray(design.reshape(rows + 1, -1)[:rows, 1 : rank + 1])


def new_design(rows: int, rank: int) -> NDArray[np.float32]:
    """A flat design, float32[(rows + 1) * width], with all factors zero."""
    design = np.zeros((rows + 1, width_of(rank)), dtype=np.float32)
    design[:rows, 0] = 1.0
    return design.reshape(-1)


@intrinsic
def _add_outer_4(
    typing: Any, gram: Any, design: Any,
    o0: Any, o1: Any, o2: Any, o3: Any, t0: Any, t1: Any, t2: Any, t3: Any, tag: Any,
) -> Any:  # fmt: skip
    """gram += sum of x x' over the rows x at the offsets o0..o3 of the design; its last row += sum of t x.

    gram float32[(columns + 1) * width], flat. Of x x' only the lower triangle is kept (whole vectors of it).
    """
    int64, float32 = types.int64, types.float32
    signature = types.void(gram, design, int64, int64, int64, int64, float32, float32, float32, float32, tag)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        gram_at = context.make_array(signature.args[0])(context, builder, args[0]).data
        design_at = context.make_array(signature.args[1])(context, builder, args[1]).data
        builder.call(_outer_function(builder.module, len(tag)), [gram_at, design_at, *args[2:10]])
        return context.get_dummy_value()

    return signature, codegen


def _outer_function(module: Any, columns: int) -> Any:
    """The LLVM function behind `_add_outer_4` for a number of columns.

    It is not inlined: its code is long, and every copy would have to be compiled.
    """
    name = f"kgather_add_outer_4_{columns}"
    if name in module.globals:
        return module.globals[name]
    f32, i32, i64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
    pointer, vector = f32.as_pointer(), ir.VectorType(f32, LANES)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer] * 2 + [i64] * 4 + [f32] * 4), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block())
    gram_at, design_at, *rest = function.args
    fma = cgutils.get_or_insert_function(module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{LANES}f32")
    undefined = ir.Constant(vector, ir.Undefined)
    first_lane = ir.Constant(ir.VectorType(i32, LANES), [0] * LANES)

    def step(base: Any, count: int) -> Any:
        return builder.gep(base, [ir.Constant(i64, count)])

    def load(base: Any) -> Any:
        value = builder.load(builder.bitcast(base, vector.as_pointer()))
        value.align = 4
        return value

    def spread(scalar: Any) -> Any:
        one = builder.insert_element(undefined, scalar, ir.Constant(i32, 0))
        return builder.shuffle_vector(one, undefined, first_lane)

    def add(factors: list[Any], line: int, until: int) -> None:
        for block in range(until):
            place = step(gram_at, (line * blocks + block) * LANES)
            total = load(place)
            for factor, part in zip(factors, parts, strict=True):
                total = builder.call(fma, [factor, part[block], total])
            builder.store(total, builder.bitcast(place, vector.as_pointer())).align = 4

    blocks = -(-columns // LANES)
    rows = [builder.gep(design_at, [offset]) for offset in rest[:4]]
    parts = [[load(step(row, block * LANES)) for block in range(blocks)] for row in rows]
    for column in range(columns):
        add([spread(builder.load(step(row, column))) for row in rows], column, column // LANES + 1)
    add([spread(target) for target in rest[4:]], columns, blocks)
    builder.ret_void()
    return function


@njit(nogil=True, cache=True)
def add_rows(
    gram: NDArray[np.float32],
    design: NDArray[np.float32],
    level: NDArray[np.float32],
    rows: NDArray[np.int32],
    values: NDArray[np.float32],
    lo: int,
    hi: int,
    sign: float,
    out: NDArray[np.float64],
    tag: tuple[np.int8, ...],
) -> None:
    """out += sign * sum over entries lo..hi of (x x' and, in the last row, (value - level) x).

    x is the design's row rows[j]; level float32[rows]; gram float32[(columns + 1) * width] is scratch, zero
    before and after; out float64[columns + 1, columns], lower triangle.
    """
    columns = len(tag)
    width = np.int64((columns + LANES - 1) // LANES * LANES)
    zeros = np.int64(len(design)) - width
    start = lo
    while start < hi:
        stop = min(start + _FLUSH, hi)
        j = start
        while j + 4 <= stop:
            # unsigned indices spare the test for negative ones
            i0, i1 = np.uint32(rows[j]), np.uint32(rows[j + 1])
            i2, i3 = np.uint32(rows[j + 2]), np.uint32(rows[j + 3])
            _add_outer_4(  # type: ignore[call-arg]
                gram, design,
                np.int64(i0) * width, np.int64(i1) * width, np.int64(i2) * width, np.int64(i3) * width,
                values[j] - level[i0], values[j + 1] - level[i1],
                values[j + 2] - level[i2], values[j + 3] - level[i3],
                tag,
            )  # fmt: skip
            j += 4
        if j < stop:
            zero = np.float32(0.0)
            o0, t0 = np.int64(rows[j]) * width, values[j] - level[rows[j]]
            o1, t1, o2, t2 = zeros, zero, zeros, zero
            if j + 1 < stop:
                o1, t1 = np.int64(rows[j + 1]) * width, values[j + 1] - level[rows[j + 1]]
            if j + 2 < stop:
                o2, t2 = np.int64(rows[j + 2]) * width, values[j + 2] - level[rows[j + 2]]
            _add_outer_4(gram, design, o0, o1, o2, zeros, t0, t1, t2, zero, tag)  # type: ignore[call-arg]
        for a in range(columns + 1):
            for b in range(min(a + 1, columns)):
                out[a, b] += sign * gram[a * width + b]
            for b in range(width):
                gram[a * width + b] = np.float32(0.0)
        start = stop


@njit(nogil=True, cache=True)
def solve_ridge(system: NDArray[np.float64], first_penalty: float, penalty: float) -> None:
    """Solves (A + diag(first_penalty, penalty, ...)) x = b; x replaces b.

    system float64[c + 1, c]: the lower triangle of A in its first c rows, overwritten by the Cholesky
    factor, and b in the last. A direction whose pivot is only rounding gets 0. O(c^3).
    """
    c = system.shape[1]
    system[0, 0] += first_penalty
    for a in range(1, c):
        system[a, a] += penalty
    for a in range(c):
        diagonal = system[a, a]
        for b in range(a):
            value = system[a, b]
            for s in range(b):
                value -= system[a, s] * system[b, s]
            value *= system[b, b]  # the diagonal holds reciprocals
            system[a, b] = value
        pivot = diagonal
        for s in range(a):
            pivot -= system[a, s] * system[a, s]
        system[a, a] = 1.0 / np.sqrt(pivot) if pivot > 1e-9 * diagonal else 0.0
    for a in range(c):
        value = system[c, a]
        for s in range(a):
            value -= system[a, s] * system[c, s]
        system[c, a] = value * system[a, a]
    for a in range(c - 1, -1, -1):
        value = system[c, a]
        for s in range(a + 1, c):
            value -= system[s, a] * system[c, s]
        system[c, a] = value * system[a, a]
