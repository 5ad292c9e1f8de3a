"""Softmax, its gradient, and losses that are made of it: a program for each row, or for several."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(
    output_ptr, input_ptr, input_row_stride, output_row_stride, n_rows, n_cols,
    BLOCK_SIZE: tl.constexpr, num_stages: tl.constexpr,
):  # fmt: skip
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row_idx in tl.range(row_start, n_rows, row_step, num_stages=num_stages):
        row_start_ptr = input_ptr + row_idx * input_row_stride
        col_offsets = tl.arange(0, BLOCK_SIZE)
        mask = col_offsets < n_cols
        row = tl.load(row_start_ptr + col_offsets, mask=mask, other=-float("inf")).to(tl.float32)
        row_minus_max = row - tl.max(row, axis=0)
        numerator = tl.exp(row_minus_max)
        denominator = tl.sum(numerator, axis=0)
        softmax_output = numerator / denominator
        output_row_start_ptr = output_ptr + row_idx * output_row_stride
        tl.store(output_row_start_ptr + col_offsets, softmax_output, mask=mask)


def softmax(x):
    n_rows, n_cols = x.shape
    y = np.empty_like(x)
    softmax_kernel[(min(n_rows, 4), 1, 1)](
        y, x, x.strides[0] // x.itemsize, y.strides[0] // y.itemsize, n_rows, n_cols,
        BLOCK_SIZE=triton.next_power_of_2(n_cols), num_stages=2,
    )  # fmt: skip
    return y


@triton.jit
def online_softmax_kernel(x_ptr, y_ptr, stride, n_cols, LOG: tl.constexpr, BLOCK: tl.constexpr):
    """Rows longer than a block: the greatest and the sum are mended block by block."""
    x_ptr += tl.program_id(0) * stride
    y_ptr += tl.program_id(0) * stride
    m = -float("inf")
    d = 0.0
    at = 0
    while at < n_cols:
        cols = at + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, 0))
        d = d * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
        at += BLOCK
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        y = x - m - tl.log(d) if LOG else tl.exp(x - m) / d
        tl.store(y_ptr + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def online_softmax(x, log):
    y = np.empty_like(x)
    online_softmax_kernel[(x.shape[0],)](x, y, x.shape[1], x.shape[1], LOG=log, BLOCK=32)
    return y


@triton.jit
def softmax_backward_kernel(dy_ptr, y_ptr, dx_ptr, M, N, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, COLS)[None, :]
    mask = (rows < M) & (cols < N)
    at = rows * N + cols
    dy = tl.load(dy_ptr + at, mask, 0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask, 0.0).to(tl.float32)
    inner = tl.sum(dy * y, 1, keep_dims=True)
    tl.store(dx_ptr + at, y * (dy - inner), mask)


def softmax_backward(dy, y):
    dx = np.empty_like(y)
    M, N = y.shape
    softmax_backward_kernel[(triton.cdiv(M, 4),)](dy, y, dx, M, N, ROWS=4, COLS=triton.next_power_of_2(N))
    return dx


@triton.jit
def cross_entropy_kernel(
    x_ptr, x_stride, y_ptr, loss_ptr, n_cols, n_kept, ignore_index,
    label_smoothing: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    """The gradient takes the place of the row; rows to ignore are cleared at once."""
    program_id = tl.program_id(0).to(tl.int64)
    y = tl.load(y_ptr + program_id)
    x_ptr += program_id * x_stride
    if y == ignore_index:
        for i in range(0, n_cols, BLOCK_SIZE):
            x_offsets = i + tl.arange(0, BLOCK_SIZE)
            tl.store(x_ptr + x_offsets, 0.0, mask=x_offsets < n_cols)
        return
    loss_ptr += program_id
    m = float("-inf")
    d = 0.0
    scaled_sum = 0.0
    eps = label_smoothing / n_cols
    target = tl.load(x_ptr + y).cast(tl.float32)
    for i in range(0, n_cols, BLOCK_SIZE):
        x_offsets = i + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + x_offsets, mask=x_offsets < n_cols, other=float("-inf")).cast(tl.float32)
        block_max = tl.max(x)
        if label_smoothing > 0:
            scaled_sum += tl.sum(tl.where(x_offsets < n_cols, -eps * x, 0.0))
        m_new = tl.maximum(m, block_max)
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))
        m = m_new
    lse = m + tl.log(d)
    for i in range(0, n_cols, BLOCK_SIZE):
        x_offsets = i + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + x_offsets, mask=x_offsets < n_cols, other=float("-inf")).cast(tl.float32)
        p = tl.exp(x - m) / d
        grad = tl.where(x_offsets != y, p - eps, p - eps - (1 - label_smoothing)) / n_kept
        tl.store(x_ptr + x_offsets, grad, mask=x_offsets < n_cols)
    tl.debug_barrier()
    loss = lse - target
    if label_smoothing > 0:
        loss = loss * (1 - label_smoothing) + (scaled_sum + label_smoothing * lse)
    tl.store(loss_ptr, loss / n_kept)


def cross_entropy(x, target, ignore, smoothing):
    loss = np.zeros(x.shape[0], np.float32)
    kept = int((target != ignore).sum())
    cross_entropy_kernel[(x.shape[0],)](
        x, x.strides[-2] // x.itemsize, target, loss, x.shape[1], kept, ignore, label_smoothing=smoothing,
        BLOCK_SIZE=32, num_warps=8,
    )  # fmt: skip
    return x, loss


@triton.jit
def kl_div_kernel(p_ptr, q_ptr, out_ptr, n_cols, BLOCK: tl.constexpr, REDUCE: tl.constexpr = "sum"):
    """Sum q (log q - p), of log probabilities p, for each row."""
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(0, n_cols, BLOCK):
        cols = i + tl.arange(0, BLOCK)
        mask = cols < n_cols
        p = tl.load(p_ptr + row * n_cols + cols, mask=mask, other=0.0)
        q = tl.load(q_ptr + row * n_cols + cols, mask=mask, other=0.0)
        total += tl.where(q > 0, q * (tl.log(tl.maximum(q, 1e-20)) - p), 0.0)
    found = tl.sum(total)
    if REDUCE == "mean":
        found = found / n_cols
    tl.store(out_ptr + row, found)


def kl_div(p, q, mean):
    out = np.empty(len(p), np.float32)
    kl_div_kernel[(len(p),)](p, q, out, p.shape[1], BLOCK=64, REDUCE="mean" if mean else "sum")
    return out
