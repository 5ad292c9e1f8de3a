"""Norms and their gradients: rows, groups, and weights that all rows add to."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def layer_norm_forward_kernel(
    X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    _mean = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        _mean += tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(_mean, axis=0) / N
    _var = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        _var += x * x
    var = tl.sum(_var, axis=0) / N
    rstd = 1 / tl.sqrt(var + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        w = tl.load(W + cols, mask=mask)
        b = tl.load(B + cols, mask=mask)
        x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(Y + cols, (x - mean) * rstd * w + b, mask=mask)


def layer_norm(x, w, b, eps):
    M, N = x.shape
    y = np.empty_like(x)
    mean, rstd = np.empty(M, np.float32), np.empty(M, np.float32)
    layer_norm_forward_kernel[(M,)](x, y, w, b, mean, rstd, x.strides[0] // x.itemsize, N, eps, BLOCK_SIZE=32)
    return y, mean, rstd


@triton.jit
def layer_norm_backward_dx_kernel(
    DX, DY, DW, DB, X, W, Mean, Rstd, Lock, stride, N, GROUP_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE_N)
    mask = cols < N
    X += row * stride
    DY += row * stride
    DX += row * stride
    lock_id = row % GROUP_SIZE_M
    Lock += lock_id
    Count = Lock + GROUP_SIZE_M
    DW = DW + lock_id * N + cols
    DB = DB + lock_id * N + cols
    x = tl.load(X + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    mean = tl.load(Mean + row)
    rstd = tl.load(Rstd + row)
    xhat = (x - mean) * rstd
    wdy = w * dy
    xhat = tl.where(mask, xhat, 0.0)
    wdy = tl.where(mask, wdy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    dx = (wdy - (xhat * c1 + c2)) * rstd
    tl.store(DX + cols, dx, mask=mask)
    partial_dw = (dy * xhat).to(w.dtype)
    partial_db = dy.to(w.dtype)
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    count = tl.load(Count)
    if count == 0:
        tl.atomic_xchg(Count, 1)
    else:
        partial_dw += tl.load(DW, mask=mask)
        partial_db += tl.load(DB, mask=mask)
    tl.store(DW, partial_dw, mask=mask)
    tl.store(DB, partial_db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(Lock, 0)


@triton.jit
def sum_rows_kernel(PART, OUT, M, N, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    pid = tl.program_id(0)
    cols = pid * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    total = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for i in range(0, M, BLOCK_SIZE_M):
        rows = i + tl.arange(0, BLOCK_SIZE_M)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        total += tl.load(PART + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    tl.store(OUT + cols, tl.sum(total, axis=0), mask=cols < N)


@triton.jit
def layer_norm_backward_kernel(
    DX, DY, DW, DB, X, W, Mean, Rstd, M, N, ROWS: tl.constexpr, BLOCK_SIZE_N: tl.constexpr,
):  # fmt: skip
    """Each program adds up the weights' gradients of the rows that are its own."""
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE_N)
    mask = cols < N
    w = tl.load(W + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK_SIZE_N,), tl.float32)
    db = tl.zeros((BLOCK_SIZE_N,), tl.float32)
    for row in range(pid * ROWS, min((pid + 1) * ROWS, M)):
        x = tl.load(X + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(DY + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(Rstd + row)
        xhat = tl.where(mask, (x - tl.load(Mean + row)) * rstd, 0.0)
        wdy = w * dy
        c1 = tl.sum(xhat * wdy, axis=0) / N
        c2 = tl.sum(wdy, axis=0) / N
        tl.store(DX + row * N + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)
        dw += dy * xhat
        db += dy
    tl.store(DW + pid * N + cols, dw, mask=mask)
    tl.store(DB + pid * N + cols, db, mask=mask)


def _statistics(x):
    wide = x.astype(np.float32)
    return wide.mean(1), (1 / np.sqrt(wide.var(1) + 1e-5)).astype(np.float32)


def layer_norm_backward(dy, x, w):
    M, N = x.shape
    dx = np.empty_like(x)
    mean, rstd = _statistics(x)
    programs = triton.cdiv(M, 3)
    parts = np.empty((2, programs, N), np.float32)
    layer_norm_backward_kernel[(programs,)](
        dx, dy, parts[0], parts[1], x, w, mean, rstd, M, N, ROWS=3, BLOCK_SIZE_N=triton.next_power_of_2(N)
    )
    found = np.empty((2, N), np.float32)
    for part, out in zip(parts, found, strict=True):
        sum_rows_kernel[(triton.cdiv(N, 16),)](part, out, programs, N, BLOCK_SIZE_M=4, BLOCK_SIZE_N=16)
    return dx, found[0], found[1]


@triton.jit
def rms_norm_forward_kernel(
    Y, X, W, R, row_stride, n_cols, eps, offset: tl.constexpr, BLOCK_SIZE: tl.constexpr, IN_F32: tl.constexpr,
):  # fmt: skip
    row_idx = tl.program_id(0).to(tl.int64)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols
    Y += row_idx * row_stride
    X += row_idx * row_stride
    X_row = tl.load(X + col_offsets, mask=mask, other=0)
    X_dtype = X_row.dtype
    W_row = tl.load(W + col_offsets, mask=mask, other=0)
    X_row = X_row.to(tl.float32)
    if IN_F32:
        W_row = W_row.to(tl.float32)
    mean_square = tl.sum(X_row * X_row, axis=0) / n_cols
    rstd = tl.rsqrt(mean_square + eps)
    tl.store(R + row_idx, rstd)
    X_row = X_row * rstd
    if not IN_F32:
        X_row = X_row.to(X_dtype)
    tl.store(Y + col_offsets, X_row * (offset + W_row), mask=mask)


def rms_norm(x, w, eps, offset, in_f32):
    M, N = x.shape
    y, r = np.empty_like(x), np.empty(M, np.float32)
    rms_norm_forward_kernel[(M,)](
        y, x, w, r, N, N, eps, offset=offset, BLOCK_SIZE=triton.next_power_of_2(N), IN_F32=in_f32, num_warps=4
    )
    return y, r


@triton.jit
def rms_norm_backward_kernel(
    dY, dX, X, W, R, dW, n_rows, n_cols, rows_per_program: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    row_block_id = tl.program_id(0)
    row_start = row_block_id * rows_per_program
    row_end = min((row_block_id + 1) * rows_per_program, n_rows)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols
    dW_row = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    dY += row_start * n_cols
    X += row_start * n_cols
    dX += row_start * n_cols
    W_row = tl.load(W + col_offsets, mask=mask, other=0.0)
    for row_idx in range(row_start, row_end):
        dY_row = tl.load(dY + col_offsets, mask=mask, other=0.0)
        X_row = tl.load(X + col_offsets, mask=mask, other=0.0).to(tl.float32)
        rstd_row = tl.load(R + row_idx)
        m = (dY_row * W_row).to(tl.float32)
        dX_row = rstd_row * m
        dX_row += rstd_row * (-(1 / n_cols) * rstd_row * rstd_row * tl.sum(m * X_row, axis=0) * X_row)
        dW_row += dY_row * (X_row * rstd_row)
        tl.store(dX + col_offsets, dX_row.to(dX.dtype.element_ty), mask=mask)
        dY += n_cols
        X += n_cols
        dX += n_cols
    tl.store(dW + row_block_id * n_cols + col_offsets, dW_row, mask=mask)


def rms_norm_backward(dy, x, w):
    M, N = x.shape
    r = (1 / np.sqrt((x.astype(np.float32) ** 2).mean(1) + 1e-6)).astype(np.float32)
    dx = np.empty_like(x)
    programs = min(M, 3)
    parts = np.empty((programs, N), np.float32)
    rms_norm_backward_kernel[(programs,)](
        dy, dx, x, w, r, parts, M, N, rows_per_program=triton.cdiv(M, programs), BLOCK_SIZE=triton.next_power_of_2(N)
    )
    return dx, parts.sum(0)


@triton.jit
def group_norm_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, C, HW, groups: tl.constexpr, eps,
    BLOCK_C: tl.constexpr, BLOCK_HW: tl.constexpr,
):  # fmt: skip
    n, g = tl.program_id(0), tl.program_id(1)
    size = C // groups
    c = g * size + tl.arange(0, BLOCK_C)
    hw = tl.arange(0, BLOCK_HW)
    mask = (tl.arange(0, BLOCK_C) < size)[:, None] & (hw < HW)[None, :]
    at = n * C * HW + c[:, None] * HW + hw[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    count = size * HW
    mean = tl.sum(x) / count
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred) / count + eps)
    keep = tl.arange(0, BLOCK_C) < size
    w = tl.load(w_ptr + c, mask=keep, other=1.0)
    b = tl.load(b_ptr + c, mask=keep, other=0.0)
    tl.store(y_ptr + at, centred * rstd * w[:, None] + b[:, None], mask=mask)


def group_norm(x, w, b, groups):
    N, C, H, W = x.shape
    y = np.empty_like(x)
    group_norm_kernel[(N, groups)](
        x, y, w, b, C, H * W, groups, 1e-5, BLOCK_C=triton.next_power_of_2(C // groups),
        BLOCK_HW=triton.next_power_of_2(H * W),
    )  # fmt: skip
    return y


def layer_norm_backward_locked(dy, x, w):
    """Rows of a group add to one row of partial sums, one after the other under a lock."""
    M, N = x.shape
    dx = np.empty_like(x)
    mean, rstd = _statistics(x)
    groups = 2
    locks = np.zeros(2 * groups, np.int32)
    parts = np.zeros((2, groups, N), np.float32)
    layer_norm_backward_dx_kernel[(M,)](
        dx, dy, parts[0], parts[1], x, w, mean, rstd, locks, N, N, GROUP_SIZE_M=groups,
        BLOCK_SIZE_N=triton.next_power_of_2(N),
    )  # fmt: skip
    found = np.empty((2, N), np.float32)
    for part, out in zip(parts, found, strict=True):
        sum_rows_kernel[(triton.cdiv(N, 16),)](part, out, groups, N, BLOCK_SIZE_M=4, BLOCK_SIZE_N=16)
    return dx, found[0], found[1]
