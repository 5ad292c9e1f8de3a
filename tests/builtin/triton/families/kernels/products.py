"""Products in parts: groups of rows, stacks, split sums, vectors, and convolutions as products."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def split_k_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT_K: tl.constexpr,
):  # fmt: skip
    """Programs of one tile add their parts of the sum to it; integers, so that the order does not matter."""
    pid, pid_z = tl.program_id(0), tl.program_id(1)
    grid_n = tl.cdiv(N, BN)
    rm = (pid // grid_n) * BM + tl.arange(0, BM)
    rn = (pid % grid_n) * BN + tl.arange(0, BN)
    rk = pid_z * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for k in range(0, tl.cdiv(K, BK * SPLIT_K)):
        at = rk + k * BK * SPLIT_K
        a = tl.load(a_ptr + rm[:, None] * K + at[None, :], mask=(rm < M)[:, None] & (at < K)[None, :], other=0)
        b = tl.load(b_ptr + at[:, None] * N + rn[None, :], mask=(at < K)[:, None] & (rn < N)[None, :], other=0)
        acc += tl.dot(a, b, out_dtype=tl.int32)
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    if SPLIT_K == 1:
        tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=mask)
    else:
        tl.atomic_add(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=mask)


def split_k(a, b, split):
    (M, K), N = a.shape, b.shape[1]
    c = np.zeros((M, N), np.int32)
    grid = (triton.cdiv(M, 16) * triton.cdiv(N, 16), split)
    split_k_kernel[grid](a, b, c, M, N, K, BM=16, BN=16, BK=16, SPLIT_K=split)
    return c


@triton.jit
def grouped_gemm_kernel(
    x_ptr, w_ptr, y_ptr, ends_ptr, groups, N, K, NUM_SM: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Rows up to `ends[g]` are of group g, whose matrix they are multiplied with; tiles are dealt to programs."""
    tile_idx = tl.program_id(0)
    last_problem_end = 0
    first_row = 0
    for g in range(groups):
        end_row = tl.load(ends_ptr + g)
        num_m_tiles = tl.cdiv(end_row - first_row, BM)
        num_n_tiles = tl.cdiv(N, BN)
        num_tiles = num_m_tiles * num_n_tiles
        while tile_idx >= last_problem_end and tile_idx < last_problem_end + num_tiles:
            in_problem = tile_idx - last_problem_end
            rm = first_row + (in_problem // num_n_tiles) * BM + tl.arange(0, BM)
            rn = (in_problem % num_n_tiles) * BN + tl.arange(0, BN)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for k in range(0, K, BK):
                rk = k + tl.arange(0, BK)
                x = tl.load(
                    x_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < end_row) & (rk[None, :] < K), other=0.0
                )
                w = tl.load(
                    w_ptr + g * K * N + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N),
                    other=0.0,
                )  # fmt: skip
                acc = tl.dot(x, w, acc)
            mask = (rm[:, None] < end_row) & (rn[None, :] < N)
            tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc.to(y_ptr.dtype.element_ty), mask=mask)
            tile_idx += NUM_SM
        last_problem_end = last_problem_end + num_tiles
        first_row = end_row


def grouped_gemm(x, w, ends):
    y = np.zeros((x.shape[0], w.shape[2]), x.dtype)
    grouped_gemm_kernel[(4,)](x, w, y, ends, len(ends), w.shape[2], x.shape[1], NUM_SM=4, BM=16, BN=16, BK=16)
    return y


@triton.jit
def bmm_kernel(A, B, O, M, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    """A matrix of the stacks for each program of axis 2; whole tiles are loaded without masks of their rows."""
    pid_b = tl.program_id(2)
    A += pid_b * M * K
    B += pid_b * K * N
    O += pid_b * M * N
    offs_m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    offs_n = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    o = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, K, TILE_K):
        offs_k = start + tl.arange(0, TILE_K)
        a = tl.load(A + offs_m[:, None] * K + offs_k[None, :], (offs_m < M)[:, None] & (offs_k < K)[None, :], other=0.0)
        b = tl.load(B + offs_k[:, None] * N + offs_n[None, :], (offs_k < K)[:, None] & (offs_n < N)[None, :], other=0.0)
        o += tl.dot(a, b)
    tl.store(O + offs_m[:, None] * N + offs_n[None, :], o, (offs_m < M)[:, None] & (offs_n < N)[None, :])


def bmm(a, b):
    batch, M, K = a.shape
    N = b.shape[2]
    out = np.empty((batch, M, N), a.dtype)
    bmm_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16), batch)](a, b, out, M, N, K, TILE_M=16, TILE_N=16, TILE_K=16)
    return out


@triton.autotune(configs=[triton.Config({"BM": bm, "BN": 32}) for bm in (4, 8, 16)], key=["M", "N"])
@triton.jit
def mv_kernel(A, v, out, M, N, stride_am, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    cols = tl.arange(0, BN)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in tl.range(0, N, BN):
        mask = (rows < M) & (cols + start < N)
        a = tl.load(A + rows * stride_am + cols + start, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(v + cols + start, mask=cols + start < N, other=0.0).to(tl.float32)
        acc += a * x
    found = tl.sum(acc, axis=1)[:, None]
    tl.store(out + rows, found, mask=rows < M)


def mv(a, v):
    out = np.empty(a.shape[0], a.dtype)
    mv_kernel[lambda meta: (triton.cdiv(a.shape[0], meta["BM"]),)](
        a, v, out, a.shape[0], a.shape[1], a.strides[0] // a.itemsize
    )
    return out


@triton.jit
def conv2d_kernel(
    x_ptr, w_ptr, y_ptr, C, H, W, K, OH, OW, stride: tl.constexpr, padding: tl.constexpr,
    R: tl.constexpr, S: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """A convolution as a product: rows are pixels of the output, columns channels, the sum goes over r, s and c."""
    p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    k = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    n, oh, ow = p // (OH * OW), (p // OW) % OH, p % OW
    inside = n < tl.num_programs(2)
    acc = tl.zeros((BLOCK_P, BLOCK_K), dtype=tl.float32)
    for r in tl.static_range(R):
        for s in tl.static_range(S):
            ih, iw = oh * stride - padding + r, ow * stride - padding + s
            pixel = (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W) & (p < OH * OW)
            for first in range(0, C, BLOCK_C):
                c = first + tl.arange(0, BLOCK_C)
                x = tl.load(
                    x_ptr + ((tl.program_id(2) * C + c[None, :]) * H + ih[:, None]) * W + iw[:, None],
                    mask=pixel[:, None] & (c < C)[None, :] & inside[:, None], other=0.0,
                )  # fmt: skip
                w = tl.load(
                    w_ptr + ((k[None, :] * C + c[:, None]) * R + r) * S + s, mask=(k < K)[None, :] & (c < C)[:, None],
                    other=0.0,
                )  # fmt: skip
                acc = tl.dot(x, w, acc)
    out = y_ptr + (tl.program_id(2) * K + k[None, :]) * OH * OW + p[:, None]
    tl.store(out, acc, mask=(p < OH * OW)[:, None] & (k < K)[None, :])


def conv2d(x, w, stride, padding):
    (N, C, H, W), (K, _, R, S) = x.shape, w.shape
    OH, OW = (H + 2 * padding - R) // stride + 1, (W + 2 * padding - S) // stride + 1
    y = np.empty((N, K, OH, OW), x.dtype)
    conv2d_kernel[(triton.cdiv(OH * OW, 16), triton.cdiv(K, 16), N)](
        x, w, y, C, H, W, K, OH, OW, stride=stride, padding=padding, R=R, S=S, BLOCK_P=16, BLOCK_K=16, BLOCK_C=4
    )
    return y


@triton.jit
def causal_conv1d_kernel(
    x_ptr, w_ptr, bias_ptr, y_ptr, L, D, WIDTH: tl.constexpr, SILU: tl.constexpr,
    BLOCK_L: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Each channel by itself, of the WIDTH latest tokens."""
    b, d = tl.program_id(2), tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    t = tl.program_id(0) * BLOCK_L + tl.arange(0, BLOCK_L)
    acc = tl.zeros((BLOCK_L, BLOCK_D), dtype=tl.float32)
    acc += tl.load(bias_ptr + d, mask=d < D, other=0.0).to(tl.float32)[None, :]
    for i in tl.static_range(WIDTH):
        at = t - (WIDTH - 1) + i
        mask = (at >= 0)[:, None] & (at < L)[:, None] & (d < D)[None, :]
        x = tl.load(x_ptr + b * L * D + at[:, None] * D + d[None, :], mask=mask, other=0.0)
        w = tl.load(w_ptr + d * WIDTH + i, mask=d < D, other=0.0)
        acc += x.to(tl.float32) * w[None, :]
    if SILU:
        acc = acc / (1 + tl.exp(-acc))
    tl.store(y_ptr + b * L * D + t[:, None] * D + d[None, :], acc, mask=(t < L)[:, None] & (d < D)[None, :])


def causal_conv1d(x, w, bias, silu):
    B, L, D = x.shape
    y = np.empty_like(x)
    causal_conv1d_kernel[(triton.cdiv(L, 16), triton.cdiv(D, 32), B)](
        x, w, bias, y, L, D, WIDTH=w.shape[1], SILU=silu, BLOCK_L=16, BLOCK_D=32
    )
    return y


@triton.jit
def group_pointers_kernel(
    group_a_ptrs, group_b_ptrs, group_c_ptrs, group_gemm_sizes, g_lds, group_size,
    NUM_SM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Products of matrices of several shapes, whose addresses and sizes are in memory."""
    tile_idx = tl.program_id(0)
    last_problem_end = 0
    for g in range(group_size):
        gm = tl.load(group_gemm_sizes + g * 3)
        gn = tl.load(group_gemm_sizes + g * 3 + 1)
        gk = tl.load(group_gemm_sizes + g * 3 + 2)
        num_n_tiles = tl.cdiv(gn, BLOCK_N)
        num_tiles = tl.cdiv(gm, BLOCK_M) * num_n_tiles
        if tile_idx >= last_problem_end and tile_idx < last_problem_end + num_tiles:
            lda, ldb, ldc = tl.load(g_lds + g * 3), tl.load(g_lds + g * 3 + 1), tl.load(g_lds + g * 3 + 2)
            a_ptr = tl.load(group_a_ptrs + g).to(tl.pointer_type(tl.float32))
            b_ptr = tl.load(group_b_ptrs + g).to(tl.pointer_type(tl.float32))
            c_ptr = tl.load(group_c_ptrs + g).to(tl.pointer_type(tl.float32))
            while tile_idx >= last_problem_end and tile_idx < last_problem_end + num_tiles:
                tile = tile_idx - last_problem_end
                offs_m = (tile // num_n_tiles) * BLOCK_M + tl.arange(0, BLOCK_M)
                offs_n = (tile % num_n_tiles) * BLOCK_N + tl.arange(0, BLOCK_N)
                acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
                for k in range(0, tl.cdiv(gk, BLOCK_K)):
                    offs_k = k * BLOCK_K + tl.arange(0, BLOCK_K)
                    a_mask = (offs_m < gm)[:, None] & (offs_k < gk)[None, :]
                    b_mask = (offs_k < gk)[:, None] & (offs_n < gn)[None, :]
                    a = tl.load(a_ptr + offs_m[:, None] * lda + offs_k[None, :], mask=a_mask, other=0.0)
                    b = tl.load(b_ptr + offs_k[:, None] * ldb + offs_n[None, :], mask=b_mask, other=0.0)
                    acc += tl.dot(a, b)
                c_mask = (offs_m < gm)[:, None] & (offs_n < gn)[None, :]
                tl.store(c_ptr + offs_m[:, None] * ldc + offs_n[None, :], acc, mask=c_mask)
                tile_idx += NUM_SM
        last_problem_end = last_problem_end + num_tiles


def group_pointers(*matrices):
    pairs = list(zip(matrices[::2], matrices[1::2], strict=True))
    outs = [np.zeros((len(a), b.shape[1]), a.dtype) for a, b in pairs]
    addresses = [np.array([data_ptr(x) for x in row], np.int64) for row in (*zip(*pairs, strict=True), outs)]  # noqa: F821
    sizes = np.array([[len(a), b.shape[1], len(b)] for a, b in pairs], np.int32)
    lds = np.array([[a.shape[1], b.shape[1], b.shape[1]] for a, b in pairs], np.int32)
    group_pointers_kernel[(4,)](*addresses, sizes, lds, len(pairs), NUM_SM=4, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
    return tuple(outs)
