"""Kernels in ways of writing that libraries have: functions and dtypes as parameters, packed words, states, windows."""

import numpy as np
import triton
import triton.language as tl
from triton.language.extra.cuda.libdevice import rsqrt, tanh

NEGATIVE_SLOPE: tl.constexpr = tl.constexpr(0.2)
WORD_BITS = tl.constexpr(32)


@triton.jit
def leaky(x):
    return tl.where(x >= 0, x, NEGATIVE_SLOPE * x)


@triton.jit
def squashed(x, scale: tl.constexpr = 2.0):
    return tanh(x * scale)


@triton.jit
def apply_kernel(x_ptr, y_ptr, n, ACT: tl.constexpr, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    """The function and the dtype to compute in are parameters."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, eviction_policy="evict_first").to(DTYPE)
    if DTYPE == tl.float32 and y_ptr.dtype.element_ty.is_floating():
        x = ACT(x)
    else:
        x = ACT(x.to(tl.float32)).to(DTYPE)
    tl.store(y_ptr + at, x, mask=at < n, cache_modifier=".wb")


def apply(x, name):
    y = np.empty_like(x)
    module = {"leaky": leaky, "squashed": squashed}
    import triton.language as language

    apply_kernel[(triton.cdiv(x.size, 32),)](x, y, x.size, ACT=module[name], DTYPE=language.float32, BLOCK=32)
    return y


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((16, 2), (32, 4), (64, 8))],
    key=["n"], reset_to_zero=["total_ptr"],
)
@triton.heuristics({"WHOLE": lambda args: args["n"] % args["BLOCK"] == 0, "TWICE": lambda args: args["n"] > 64})
@triton.jit
def tuned_count_kernel(x_ptr, total_ptr, n, BLOCK: tl.constexpr, WHOLE: tl.constexpr, TWICE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at) if WHOLE else tl.load(x_ptr + at, mask=at < n, other=0)
    count = tl.sum((x > 0).to(tl.int32), 0)
    if TWICE:
        count *= 2
    tl.atomic_add(total_ptr, count)


def tuned_count(x):
    total = np.zeros(1, np.int32)
    tuned_count_kernel[lambda meta: (triton.cdiv(x.size, meta["BLOCK"]),)](x, total, x.size)
    return total


@triton.jit
def selective_scan_kernel(
    u_ptr, delta_ptr, A_ptr, B_ptr, C_ptr, D_ptr, y_ptr, L, D, N: tl.constexpr, BLOCK_D: tl.constexpr,
    HAS_D: tl.constexpr,
):  # fmt: skip
    """A state of BLOCK_D x N goes from token to token."""
    b, d = tl.program_id(0), tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    n = tl.arange(0, N)
    live = d < D
    A = tl.load(A_ptr + d[:, None] * N + n[None, :], mask=live[:, None], other=0.0).to(tl.float32)
    h = tl.zeros((BLOCK_D, N), dtype=tl.float32)
    u_ptr += b * L * D
    delta_ptr += b * L * D
    for t in range(L):
        u = tl.load(u_ptr + t * D + d, mask=live, other=0.0).to(tl.float32)
        delta = tl.load(delta_ptr + t * D + d, mask=live, other=0.0).to(tl.float32)
        delta = tl.where(delta <= 20.0, tl.math.log1p(tl.exp(delta)), delta)
        B = tl.load(B_ptr + (b * L + t) * N + n).to(tl.float32)
        C = tl.load(C_ptr + (b * L + t) * N + n).to(tl.float32)
        h = tl.exp(delta[:, None] * A) * h + (delta * u)[:, None] * B[None, :]
        y = tl.sum(h * C[None, :], axis=1)
        if HAS_D:
            y += u * tl.load(D_ptr + d, mask=live, other=0.0).to(tl.float32)
        tl.store(y_ptr + (b * L + t) * D + d, y, mask=live)


def selective_scan(u, delta, A, B, C, D):
    (batch, L, dim), N = u.shape, A.shape[1]
    y = np.empty_like(u)
    selective_scan_kernel[(batch, triton.cdiv(dim, 8))](
        u, delta, A, B, C, D, y, L, dim, N=N, BLOCK_D=8, HAS_D=D is not None
    )
    return y


@triton.jit
def packed_matmul_kernel(
    x_ptr, q_ptr, scales_ptr, zeros_ptr, y_ptr, M, N, K, GROUP: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Weights of 4 bits, eight to a word along K; zeros of 4 bits, eight to a word along N."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    per_word = WORD_BITS // 4
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        group = k // GROUP
        x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=(rm < M)[:, None] & (rk < K)[None, :], other=0.0)
        words = tl.load(
            q_ptr + (rk[:, None] // per_word) * N + rn[None, :], mask=(rk < K)[:, None] & (rn < N)[None, :], other=0
        )
        w = (words >> ((rk % per_word) * 4)[:, None]) & 15
        scale = tl.load(scales_ptr + group * N + rn, mask=rn < N, other=0.0)
        zero = tl.load(zeros_ptr + group * (N // per_word) + rn // per_word, mask=rn < N, other=0)
        zero = (zero >> ((rn % per_word) * 4)) & 15
        w = (w - zero[None, :]).to(tl.float32) * scale[None, :]
        acc += tl.dot(x, w.to(x.dtype))
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm < M)[:, None] & (rn < N)[None, :])


def packed_matmul(x, q, scales, zeros, group):
    (M, K), N = x.shape, q.shape[1]
    y = np.empty((M, N), x.dtype)
    packed_matmul_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16))](
        x, q, scales, zeros, y, M, N, K, GROUP=group, BM=16, BN=16, BK=16
    )
    return y


@triton.jit
def solve_tril_kernel(A_ptr, Ai_ptr, T, BT: tl.constexpr):
    """The inverse of I + A of a strictly lower triangular block, row by row."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    A_ptr += i_bh * T * BT
    o_i = tl.arange(0, BT)
    p_A = tl.make_block_ptr(A_ptr, (T, BT), (BT, 1), (i_t * BT, 0), (BT, BT), (1, 0))
    b_A = -tl.where(o_i[:, None] > o_i[None, :], tl.load(p_A, boundary_check=(0, 1)), 0).to(tl.float32)
    for i in range(1, min(BT, T - i_t * BT)):
        b_a = -tl.load(A_ptr + (i_t * BT + i) * BT + o_i)
        b_a = tl.where(o_i < i, b_a, 0.0)
        b_a += tl.sum(b_a[:, None] * b_A, 0)
        b_A = tl.where((o_i == i)[:, None], b_a[None, :], b_A)
    b_A += o_i[:, None] == o_i[None, :]
    p_Ai = tl.make_block_ptr(Ai_ptr + i_bh * T * BT, (T, BT), (BT, 1), (i_t * BT, 0), (BT, BT), (1, 0))
    tl.store(p_Ai, b_A.to(p_Ai.dtype.element_ty, fp_downcast_rounding="rtne"), boundary_check=(0, 1))


def solve_tril(A):
    heads, T, BT = A.shape
    out = np.empty_like(A)
    solve_tril_kernel[(triton.cdiv(T, BT), heads)](A, out, T, BT=BT)
    return out


@triton.jit
def window_attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, T, scale, WINDOW: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Each query sees the WINDOW latest keys; blocks outside are passed over, a soft cap bends the scores."""
    start = tl.program_id(0) * BM
    head = tl.program_id(1) * T * D
    rm, d = start + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + head + rm[:, None] * D + d[None, :], mask=rm[:, None] < T, other=0.0)
    m = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    first = tl.maximum(start - WINDOW + 1, 0) // BN * BN
    last = tl.minimum(start + BM, T)
    for begin in range(0, T, BN):
        if begin >= first and begin < last:
            rn = begin + tl.arange(0, BN)
            k = tl.load(k_ptr + head + rn[:, None] * D + d[None, :], mask=rn[:, None] < T, other=0.0)
            s = tl.dot(q, tl.trans(k)) * scale
            s = 5.0 * tanh(s / 5.0)
            gap = rm[:, None] - rn[None, :]
            seen = (0 <= gap) & (gap < WINDOW) & (rn[None, :] < T)
            s = tl.where(seen, s, -1e30)
            new = tl.maximum(m, tl.max(s, 1))
            p = tl.where(seen, tl.exp(s - new[:, None]), 0.0)
            fade = tl.exp(m - new)
            v = tl.load(v_ptr + head + rn[:, None] * D + d[None, :], mask=rn[:, None] < T, other=0.0)
            acc = acc * fade[:, None] + tl.dot(p.to(v.dtype), v)
            total = total * fade + tl.sum(p, 1)
            m = new
    tl.store(o_ptr + head + rm[:, None] * D + d[None, :], acc / total[:, None], mask=rm[:, None] < T)


def window_attention(q, k, v, scale, window):
    H, T, D = q.shape
    o = np.empty_like(q)
    window_attention_kernel[(triton.cdiv(T, 16), H)](q, k, v, o, T, scale, WINDOW=window, D=D, BM=16, BN=8)
    return o


@triton.jit
def argsort_kernel(x_ptr, places_ptr, N, BLOCK: tl.constexpr):
    """Keys and places in one word of 64 bits, of which equal keys keep their order."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=2147483647).to(tl.int64)
    words = tl.sort((x << 32) | at.to(tl.int64))
    tl.store(places_ptr + row * N + at, (words & 0xFFFFFFFF).to(tl.int32), mask=at < N)


def argsort(x):
    places = np.empty(x.shape, np.int32)
    argsort_kernel[(len(x),)](x, places, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return places


@triton.jit
def jagged_mean_kernel(x_ptr, offsets_ptr, y_ptr, D, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    """The mean of the rows of each group; an empty one gives zero."""
    group = tl.program_id(0)
    begin, end = tl.load(offsets_ptr + group), tl.load(offsets_ptr + group + 1)
    d = tl.arange(0, BLOCK_D)
    if begin == end:
        tl.store(y_ptr + group * D + d, 0.0, mask=d < D)
        return
    total = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for first in range(begin, end, BLOCK_R):
        rows = first + tl.arange(0, BLOCK_R)
        mask = (rows < end)[:, None] & (d < D)[None, :]
        total += tl.sum(tl.load(x_ptr + rows[:, None] * D + d[None, :], mask=mask, other=0.0).to(tl.float32), axis=0)
    tl.store(y_ptr + group * D + d, total / (end - begin), mask=d < D)


def jagged_mean(x, offsets):
    y = np.empty((len(offsets) - 1, x.shape[1]), x.dtype)
    jagged_mean_kernel[(len(y),)](x, offsets, y, x.shape[1], BLOCK_R=4, BLOCK_D=triton.next_power_of_2(x.shape[1]))
    return y


@triton.jit
def qk_norm_kernel(x_ptr, w_ptr, y_ptr, eps, HEADS: tl.constexpr, D: tl.constexpr):
    """Heads of one token at once, normalised apart."""
    x = tl.load(x_ptr + tl.program_id(0) * HEADS * D + tl.arange(0, HEADS * D)).reshape(HEADS, D).to(tl.float32)
    r = rsqrt(tl.sum(x * x, axis=1, keep_dims=True) / D + eps)
    w = tl.load(w_ptr + tl.arange(0, D)).expand_dims(0).broadcast_to(HEADS, D)
    y = tl.ravel(x * r * w)
    tl.store(y_ptr + tl.program_id(0) * HEADS * D + tl.arange(0, HEADS * D), y.to(y_ptr.type.element_ty))


def qk_norm(x, w, eps):
    y = np.empty_like(x)
    qk_norm_kernel[(x.shape[0],)](x, w, y, eps, HEADS=x.shape[1], D=x.shape[2])
    return y


@triton.jit
def stencil_kernel(x_ptr, y_ptr, H, W, BLOCK: tl.constexpr):
    """Five points; the edge stays."""
    i = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    here = i * W + j
    x = tl.load(x_ptr + here, mask=j < W, other=0.0)
    inner = (j > 0) & (j < W - 1)
    if 0 < i < H - 1:
        around = tl.load(x_ptr + here - W, mask=j < W) + tl.load(x_ptr + here + W, mask=j < W)
        around += tl.load(x_ptr + here - 1, mask=inner, other=0.0) + tl.load(x_ptr + here + 1, mask=inner, other=0.0)
        x = tl.where(inner, around * 0.25, x)
    tl.store(y_ptr + here, x, mask=j < W)


def stencil(x):
    y = np.empty_like(x)
    stencil_kernel[(x.shape[0], triton.cdiv(x.shape[1], 16))](x, y, *x.shape, BLOCK=16)
    return y
