"""Counting, ordering and choosing: scans, sorting, atomics, random numbers, and what decides by them."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, y_ptr, n_elements, p, seed, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    random = tl.rand(seed, offsets)
    x_keep = random > p
    tl.store(y_ptr + offsets, tl.where(x_keep, x / (1 - p), 0.0), mask=mask)


def dropout(x, p, seed):
    y = np.empty_like(x)
    dropout_kernel[lambda meta: (triton.cdiv(x.size, meta["BLOCK_SIZE"]),)](x, y, x.size, p, seed, BLOCK_SIZE=64)
    return y


@triton.jit
def dropout4_kernel(x_ptr, y_ptr, n_elements, p, seed, BLOCK: tl.constexpr):
    """Four numbers of each counter, for quarters of a block."""
    quarter: tl.constexpr = BLOCK // 4
    lane = tl.arange(0, quarter)
    first = tl.program_id(0) * BLOCK
    counter = tl.program_id(0) * quarter + lane
    words = tl.randint4x(seed, counter)
    for i in tl.static_range(4):
        at = first + i * quarter + lane
        keep = (words[i] >> 8).to(tl.float32) * (1.0 / 16777216.0) >= p
        x = tl.load(x_ptr + at, mask=at < n_elements, other=0.0)
        tl.store(y_ptr + at, tl.where(keep, x * (1 / (1 - p)), 0.0), mask=at < n_elements)


def dropout4(x, p, seed):
    y = np.empty_like(x)
    dropout4_kernel[(triton.cdiv(x.size, 64),)](x, y, x.size, p, seed, BLOCK=64)
    return y


@triton.jit
def histogram_atomic_kernel(x_ptr, counts_ptr, n, low, width, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    bins = tl.floor((x - low) / width).to(tl.int32)
    bins = tl.minimum(tl.maximum(bins, 0), BINS - 1)
    tl.atomic_add(counts_ptr + bins, 1, mask=at < n)


@triton.jit
def histogram_block_kernel(x_ptr, counts_ptr, n, low, width, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """Count in the block first, and add once."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    bins = tl.clamp(tl.floor((x - low) / width), 0.0, BINS - 1.0).to(tl.int32)
    counts = tl.histogram(bins, BINS, mask=at < n)
    tl.atomic_add(counts_ptr + tl.arange(0, BINS), counts, sem="relaxed")


def histogram(x, low, high, in_block):
    counts = np.zeros(16, np.int32)
    kernel = histogram_block_kernel if in_block else histogram_atomic_kernel
    kernel[(triton.cdiv(x.size, 64),)](x, counts, x.size, low, (high - low) / 16, BINS=16, BLOCK=64)
    return counts


@triton.jit
def extremes_kernel(x_ptr, groups_ptr, low_ptr, high_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, other=0)
    group = tl.load(groups_ptr + at, mask=mask, other=0)
    tl.atomic_min(low_ptr + group, x, mask=mask)
    tl.atomic_max(high_ptr + group, x, mask=mask)


def extremes(x, groups, count):
    low, high = np.full(count, 2**31 - 1, np.int32), np.full(count, -(2**31), np.int32)
    extremes_kernel[(triton.cdiv(x.size, 32),)](x, groups, low, high, x.size, BLOCK=32)
    return low, high


@triton.jit
def argmax_block_kernel(x_ptr, values_ptr, places_ptr, M, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < M, other=-float("inf"))
    value, place = tl.max(x, axis=0, return_indices=True)
    tl.store(values_ptr + pid, value)
    tl.store(places_ptr + pid, place + pid * BLOCK)


@triton.jit
def argmax_last_kernel(values_ptr, places_ptr, out_ptr, blocks, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(values_ptr + at, mask=at < blocks, other=-float("inf"))
    best = tl.argmax(values, axis=0)
    tl.store(out_ptr, tl.load(places_ptr + best))


def argmax(x):
    blocks = triton.cdiv(x.size, 32)
    values, places, out = np.empty(blocks, x.dtype), np.empty(blocks, np.int64), np.empty(1, np.int64)
    argmax_block_kernel[(blocks,)](x, values, places, x.size, BLOCK=32)
    argmax_last_kernel[(1,)](values, places, out, blocks, BLOCK=triton.next_power_of_2(blocks))
    return out


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, T, N, REVERSE: tl.constexpr, BT: tl.constexpr, BN: tl.constexpr):
    """Block by block along the rows; what is before a block is carried on."""
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    carry = tl.zeros([BN], dtype=tl.float32)
    blocks = tl.cdiv(T, BT)
    for i in range(blocks):
        i_t = blocks - 1 - i if REVERSE else i
        t = i_t * BT + tl.arange(0, BT)
        mask = (t < T)[:, None] & (n < N)[None, :]
        x = tl.load(x_ptr + t[:, None] * N + n[None, :], mask=mask, other=0.0).to(tl.float32)
        y = carry[None, :] + tl.cumsum(x, axis=0, reverse=REVERSE)
        tl.store(y_ptr + t[:, None] * N + n[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)
        carry += tl.sum(x, axis=0)


def cumsum(x, reverse):
    y = np.empty_like(x)
    cumsum_kernel[(triton.cdiv(x.shape[1], 16),)](x, y, *x.shape, REVERSE=reverse, BT=8, BN=16)
    return y


@triton.jit
def _gated(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def gated_scan_kernel(a_ptr, b_ptr, h_ptr, T, N, BT: tl.constexpr):
    """h[t] = a[t] h[t - 1] + b[t], the time of a block at once."""
    n = tl.program_id(0)
    h = 0.0
    for first in range(0, T, BT):
        t = first + tl.arange(0, BT)
        a = tl.load(a_ptr + t * N + n, mask=t < T, other=1.0).to(tl.float32)
        b = tl.load(b_ptr + t * N + n, mask=t < T, other=0.0).to(tl.float32)
        fades, own = tl.associative_scan((a, b), 0, _gated)
        y = own + fades * h
        tl.store(h_ptr + t * N + n, y, mask=t < T)
        h = tl.sum(tl.where(tl.arange(0, BT) == BT - 1, y, 0.0), 0)


def gated_scan(a, b):
    h = np.empty_like(b)
    T, N = a.shape
    gated_scan_kernel[(N,)](a, b, h, T, N, BT=8)
    return h


@triton.jit
def _welford(mean1, m21, w1, mean2, m22, w2):
    delta = mean2 - mean1
    w = w1 + w2
    share = tl.where(w == 0.0, 0.0, w2 / tl.where(w == 0.0, 1.0, w))
    return mean1 + delta * share, m21 + m22 + delta * delta * w1 * share, w


@triton.jit
def var_mean_kernel(x_ptr, var_ptr, mean_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=inside, other=0.0).to(tl.float32)
    mean, m2, count = tl.reduce((x, tl.zeros((BLOCK,), tl.float32), inside.to(tl.float32)), 0, _welford)
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, m2 / count)


def var_mean(x):
    M, N = x.shape
    var, mean = np.empty(M, np.float32), np.empty(M, np.float32)
    var_mean_kernel[(M,)](x, var, mean, N, BLOCK=triton.next_power_of_2(N))
    return var, mean


@triton.jit
def sort_kernel(x_ptr, y_ptr, N, DESCENDING: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    rest = -float("inf") if DESCENDING else float("inf")
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=rest)
    tl.store(y_ptr + row * N + cols, tl.sort(x, descending=DESCENDING), mask=cols < N)


def sort(x, descending):
    y = np.empty_like(x)
    sort_kernel[(len(x),)](x, y, x.shape[1], DESCENDING=descending, BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@triton.jit
def topk_gate_kernel(x_ptr, ids_ptr, weights_ptr, E, K: tl.constexpr, BLOCK: tl.constexpr):
    """The K likeliest experts of a token, by turns the greatest of those that are left, and their shares."""
    row = tl.program_id(0)
    e = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * E + e, mask=e < E, other=-float("inf")).to(tl.float32)
    p = tl.exp(x - tl.max(x))
    p = p / tl.sum(p)
    total = 0.0
    for i in tl.static_range(K):
        best = tl.argmax(p, 0)
        share = tl.max(p, 0)
        tl.store(ids_ptr + row * K + i, best)
        tl.store(weights_ptr + row * K + i, share)
        total += share
        p = tl.where(e == best, -1.0, p)
    k = tl.arange(0, triton.next_power_of_2(K))
    shares = tl.load(weights_ptr + row * K + k, mask=k < K, other=0.0)
    tl.store(weights_ptr + row * K + k, shares / total, mask=k < K)


def topk_gate(x, k):
    ids, weights = np.empty((len(x), k), np.int32), np.empty((len(x), k), np.float32)
    topk_gate_kernel[(len(x),)](x, ids, weights, x.shape[1], K=k, BLOCK=triton.next_power_of_2(x.shape[1]))
    return ids, weights


@triton.jit
def moe_count_kernel(ids_ptr, counts_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    expert = tl.load(ids_ptr + at, mask=at < n, other=0)
    tl.atomic_add(counts_ptr + expert, 1, mask=at < n)


@triton.jit
def moe_place_kernel(ids_ptr, counts_ptr, sorted_ptr, blocks_ptr, n, E: tl.constexpr, BLOCK_M: tl.constexpr, PAD: tl.constexpr):
    """Tokens of each expert one after the other, each expert from a whole block on; free places hold n."""
    e = tl.arange(0, PAD)
    counts = tl.load(counts_ptr + e, mask=e < E, other=0)
    padded = tl.cdiv(counts, BLOCK_M) * BLOCK_M
    starts = tl.cumsum(padded, 0) - padded
    expert = tl.program_id(0)
    start = tl.sum(tl.where(e == expert, starts, 0), 0)
    count = tl.load(counts_ptr + expert)
    if count == 0:
        return
    for block in range(tl.cdiv(count, BLOCK_M)):
        tl.store(blocks_ptr + start // BLOCK_M + block, expert)
    found = 0
    for token in range(n):
        if tl.load(ids_ptr + token) == expert:
            tl.store(sorted_ptr + start + found, token)
            found += 1


@triton.jit
def moe_gemm_kernel(
    x_ptr, w_ptr, y_ptr, weights_ptr, sorted_ptr, blocks_ptr, n, N, K, top_k: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Rows of a block are tokens of one expert, gathered by what was placed there."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    expert = tl.load(blocks_ptr + pid_m).to(tl.int64)
    if expert == -1:
        return
    token = tl.load(sorted_ptr + pid_m * BM + tl.arange(0, BM))
    live = token < n
    rn = pid_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(x_ptr + (token // top_k)[:, None] * K + rk[None, :], mask=live[:, None] & (rk < K)[None, :], other=0.0)
        w = tl.load(
            w_ptr + expert * N * K + rn[None, :] * K + rk[:, None], mask=(rn < N)[None, :] & (rk < K)[:, None], other=0.0
        )
        acc += tl.dot(x, w)
    acc *= tl.load(weights_ptr + token, mask=live, other=0.0)[:, None]
    tl.store(y_ptr + token[:, None] * N + rn[None, :], acc, mask=live[:, None] & (rn < N)[None, :])


def fused_moe(x, w, ids, weights):
    """Each token is multiplied by the matrices of its experts, and the products are weighted."""
    (E, N, K), n, top_k = w.shape, ids.size, ids.shape[1]
    counts = np.zeros(E, np.int32)
    moe_count_kernel[(triton.cdiv(n, 32),)](ids, counts, n, BLOCK=32)
    blocks = n // 16 + E
    placed, experts = np.full(blocks * 16, n, np.int32), np.full(blocks, -1, np.int32)
    moe_place_kernel[(E,)](ids, counts, placed, experts, n, E=E, BLOCK_M=16, PAD=triton.next_power_of_2(E))
    y = np.zeros((*ids.shape, N), x.dtype)
    moe_gemm_kernel[(blocks, triton.cdiv(N, 16))](
        x, w, y, weights, placed, experts, n, N, K, top_k=top_k, BM=16, BN=16, BK=16
    )
    return y


@triton.jit
def compact_kernel(x_ptr, y_ptr, count_ptr, n, BLOCK: tl.constexpr):
    """Keep what is above zero, in order: each lane's place is how many before it are kept."""
    kept = 0
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0)
        keep = x > 0
        place = tl.cumsum(keep.to(tl.int32), 0) - 1
        tl.store(y_ptr + kept + place, x, mask=keep)
        kept += tl.sum(keep.to(tl.int32), 0)
    tl.store(count_ptr, kept)


def compact(x):
    y, count = np.zeros_like(x), np.zeros(1, np.int32)
    compact_kernel[(1,)](x, y, count, x.size, BLOCK=16)
    return y, count


@triton.jit
def work_queue_kernel(queue_ptr, x_ptr, y_ptr, tiles, n, BLOCK: tl.constexpr):
    """Programs take the next tile until none is left."""
    tile = tl.atomic_add(queue_ptr, 1)
    while tile < tiles:
        at = tile * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0)
        tl.store(y_ptr + at, x * x, mask=at < n)
        tile = tl.atomic_add(queue_ptr, 1)


def work_queue(x):
    y, queue = np.empty_like(x), np.zeros(1, np.int32)
    work_queue_kernel[(4,)](queue, x, y, triton.cdiv(x.size, 16), x.size, BLOCK=16)
    return y, queue
