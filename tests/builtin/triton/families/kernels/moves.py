"""Moving elements: transposed, gathered, turned, pooled, quantised, and by positions that were loaded."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    rm = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    rn = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    x = tl.load(x_ptr + rm[:, None] * N + rn[None, :], mask=mask)
    tl.store(y_ptr + rn[:, None] * M + rm[None, :], tl.trans(x), mask=tl.trans(mask))


def transpose(x):
    M, N = x.shape
    y = np.empty((N, M), x.dtype)
    transpose_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16))](x, y, M, N, BLOCK=16)
    return y


@triton.jit
def embedding_kernel(ids_ptr, w_ptr, y_ptr, n, dim, padding_idx: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    ids = tl.load(ids_ptr + rows, mask=rows < n, other=0)
    mask = (rows < n)[:, None] & (cols < dim)[None, :]
    found = tl.load(w_ptr + ids[:, None] * dim + cols[None, :], mask=mask & (ids != padding_idx)[:, None], other=0.0)
    tl.store(y_ptr + rows[:, None] * dim + cols[None, :], found, mask=mask)


def embedding(ids, w, padding):
    n, dim = ids.size, w.shape[1]
    y = np.empty((n, dim), w.dtype)
    embedding_kernel[(triton.cdiv(n, 8), triton.cdiv(dim, 32))](ids, w, y, n, dim, padding, BLOCK_N=8, BLOCK_D=32)
    return y


@triton.jit
def embedding_backward_kernel(ids_ptr, dy_ptr, dw_ptr, dim, BLOCK_D: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_D)
    at = tl.load(ids_ptr + row)
    dy = tl.load(dy_ptr + row * dim + cols, mask=cols < dim, other=0)
    tl.atomic_add(dw_ptr + at * dim + cols, dy, mask=cols < dim)


def embedding_backward(ids, dy, words):
    """Rows of one word are added up; integers, so that the order does not matter."""
    dw = np.zeros((words, dy.shape[1]), dy.dtype)
    embedding_backward_kernel[(ids.size,)](ids, dy, dw, dy.shape[1], BLOCK_D=triton.next_power_of_2(dy.shape[1]))
    return dw


@triton.jit
def rope_kernel(
    q_ptr, cos_ptr, sin_ptr, seq_len, n_heads: tl.constexpr, head_dim: tl.constexpr,
    pad_heads: tl.constexpr, pad_half: tl.constexpr, BACKWARD: tl.constexpr = False,
):  # fmt: skip
    """Turn halves of each head's vector in place."""
    pid = tl.program_id(0).to(tl.int64)
    q_ptr = q_ptr + pid * (n_heads * head_dim)
    row = pid % seq_len
    half = tl.arange(0, pad_half)
    cos = tl.load(cos_ptr + row * (head_dim // 2) + half, mask=half < head_dim // 2, other=0)
    sin = tl.load(sin_ptr + row * (head_dim // 2) + half, mask=half < head_dim // 2, other=0)
    heads = tl.arange(0, pad_heads)
    first = heads[:, None] * head_dim + half[None, :]
    second = first + head_dim // 2
    mask = (heads[:, None] < n_heads) & (half[None, :] < head_dim // 2)
    a = tl.load(q_ptr + first, mask=mask, other=0).to(sin.dtype)
    b = tl.load(q_ptr + second, mask=mask, other=0).to(sin.dtype)
    if BACKWARD:
        sin = -sin
    tl.store(q_ptr + first, a * cos - b * sin, mask=mask)
    tl.store(q_ptr + second, b * cos + a * sin, mask=mask)


def rope(q, cos, sin, backward):
    B, T, H, D = q.shape
    rope_kernel[(B * T,)](
        q, cos, sin, T, H, D, triton.next_power_of_2(H), triton.next_power_of_2(D // 2), BACKWARD=backward
    )
    return q


@triton.jit
def rope_interleaved_kernel(x_ptr, y_ptr, T, theta, D: tl.constexpr, BLOCK_T: tl.constexpr):
    """Turn neighbours; the angles are computed."""
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    i = tl.arange(0, D // 2)
    angle = t[:, None].to(tl.float32) * tl.exp2(-(2.0 * i.to(tl.float32) / D) * tl.log2(theta))[None, :]
    at = t[:, None] * D + tl.arange(0, D)[None, :]
    x = tl.load(x_ptr + at, mask=(t < T)[:, None], other=0.0).to(tl.float32)
    even, odd = tl.split(tl.reshape(x, (BLOCK_T, D // 2, 2)))
    c, s = tl.cos(angle), tl.sin(angle)
    y = tl.interleave(even * c - odd * s, odd * c + even * s)
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=(t < T)[:, None])


def rope_interleaved(x, theta):
    y = np.empty_like(x)
    rope_interleaved_kernel[(triton.cdiv(len(x), 8),)](x, y, len(x), theta, D=x.shape[1], BLOCK_T=8)
    return y


@triton.jit
def quantize_rows_kernel(x_ptr, q_ptr, s_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(x), axis=0) / 127.0
    scale = tl.where(scale == 0, 1.0, scale)
    q = tl.extra.cuda.libdevice.llrint(x / scale)
    tl.store(q_ptr + row * n_cols + cols, q.to(tl.int8), mask=cols < n_cols)
    tl.store(s_ptr + row, scale)


def quantize_rows(x):
    q, s = np.empty(x.shape, np.int8), np.empty(len(x), np.float32)
    quantize_rows_kernel[(len(x),)](x, q, s, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return q, s


@triton.jit
def dequantize_int4_kernel(q_ptr, s_ptr, z_ptr, y_ptr, n_words, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Eight nibbles of a word, the lowest first; a scale and a zero for each group of words."""
    word = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = word < n_words
    q = tl.load(q_ptr + word, mask=mask, other=0)
    shifts = tl.arange(0, 8) * 4
    nibbles = (q[:, None] >> shifts[None, :]) & 0xF
    s = tl.load(s_ptr + word // GROUP, mask=mask, other=0.0)
    z = tl.load(z_ptr + word // GROUP, mask=mask, other=0)
    y = (nibbles - z[:, None]).to(tl.float32) * s[:, None]
    tl.store(y_ptr + word[:, None] * 8 + tl.arange(0, 8)[None, :], y, mask=mask[:, None])


def dequantize_int4(q, s, z, group):
    y = np.empty(q.size * 8, np.float32)
    dequantize_int4_kernel[(triton.cdiv(q.size, 16),)](q, s, z, y, q.size, GROUP=group, BLOCK=16)
    return y


@triton.jit
def quantize_fp8_kernel(x_ptr, y_ptr, s_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    s = tl.maximum(tl.max(tl.abs(x)) / 448.0, 1e-10)
    tl.store(y_ptr + at, (x / s).to(y_ptr.dtype.element_ty), mask=at < n)
    tl.store(s_ptr + tl.program_id(0), s)


def quantize_fp8(x):
    from ml_dtypes import float8_e4m3fn

    y, s = np.empty(x.shape, float8_e4m3fn), np.empty(triton.cdiv(x.size, 64), np.float32)
    quantize_fp8_kernel[(len(s),)](x, y, s, x.size, BLOCK=64)
    return y, s


@triton.jit
def max_pool_kernel(x_ptr, y_ptr, at_ptr, H, W, OH, OW, K: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    """The greatest of each window, and where it is."""
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    channel = tl.program_id(1)
    top, left = (p // OW) * STRIDE, (p % OW) * STRIDE
    best = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    where = tl.zeros((BLOCK,), dtype=tl.int32)
    for r in tl.static_range(K):
        for s in tl.static_range(K):
            at = (top + r) * W + left + s
            x = tl.load(x_ptr + channel * H * W + at, mask=p < OH * OW, other=float("-inf")).to(tl.float32)
            better = x > best
            best = tl.where(better, x, best)
            where = tl.where(better, at, where)
    tl.store(y_ptr + channel * OH * OW + p, best, mask=p < OH * OW)
    tl.store(at_ptr + channel * OH * OW + p, where, mask=p < OH * OW)


def max_pool(x, k, stride):
    C, H, W = x.shape
    OH, OW = (H - k) // stride + 1, (W - k) // stride + 1
    y, at = np.empty((C, OH, OW), x.dtype), np.empty((C, OH, OW), np.int32)
    max_pool_kernel[(triton.cdiv(OH * OW, 16), C)](x, y, at, H, W, OH, OW, K=k, STRIDE=stride, BLOCK=16)
    return y, at


@triton.jit
def csr_matvec_kernel(indptr, indices, values, x, y, rows, BLOCK: tl.constexpr):
    """Rows of a sparse matrix; how long each is, is loaded."""
    row = tl.program_id(0)
    begin = tl.load(indptr + row)
    end = tl.load(indptr + row + 1)
    total = 0.0
    while begin < end:
        at = begin + tl.arange(0, BLOCK)
        col = tl.load(indices + at, mask=at < end, other=0)
        total += tl.sum(tl.load(values + at, mask=at < end, other=0.0) * tl.load(x + col, mask=at < end, other=0.0))
        begin += BLOCK
    tl.store(y + row, total)


def csr_matvec(indptr, indices, values, x):
    y = np.empty(len(indptr) - 1, values.dtype)
    csr_matvec_kernel[(len(y),)](indptr, indices, values, x, y, len(y), BLOCK=4)
    return y
