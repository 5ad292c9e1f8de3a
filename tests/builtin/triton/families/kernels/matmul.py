"""Matrix products: grouped order, block pointers, descriptors, persistent programs, split sums, narrow types."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 16, "GROUP_SIZE_M": 2}, num_warps=4),
        triton.Config({"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 32, "GROUP_SIZE_M": 2}, num_stages=3),
        triton.Config({"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 16, "BLOCK_SIZE_K": 16, "GROUP_SIZE_M": 1}, num_stages=4),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
    ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    tl.assume(pid_m >= 0)
    offs_am = (pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    offs_bn = (pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)) % N
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_SIZE_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_SIZE_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_SIZE_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(c_ptr.dtype.element_ty)
    offs_cm = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)


def strides(*arrays):
    return [step // each.itemsize for each in arrays for step in each.strides]


def matmul(a, b, activation):
    (M, K), N = a.shape, b.shape[1]
    c = np.empty((M, N), a.dtype)
    grid = lambda META: (triton.cdiv(M, META["BLOCK_SIZE_M"]) * triton.cdiv(N, META["BLOCK_SIZE_N"]),)
    matmul_kernel[grid](a, b, c, M, N, K, *strides(a, b, c), ACTIVATION=activation)
    return c


@triton.jit
def matmul_block_kernel(
    A, B, C, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    a_block = tl.make_block_ptr(
        base=A, shape=(M, K), strides=(stride_am, stride_ak), offsets=(pid_m * BM, 0), block_shape=(BM, BK), order=(1, 0)
    )
    b_block = tl.make_block_ptr(
        base=B, shape=(K, N), strides=(stride_bk, stride_bn), offsets=(0, pid_n * BN), block_shape=(BK, BN), order=(1, 0)
    )
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc += tl.dot(a, b, allow_tf32=False)
        a_block = tl.advance(a_block, (0, BK))
        b_block = tl.advance(b_block, (BK, 0))
    c_block = tl.make_block_ptr(
        base=C, shape=(M, N), strides=(stride_cm, stride_cn), offsets=(pid_m * BM, pid_n * BN), block_shape=(BM, BN),
        order=(1, 0),
    )  # fmt: skip
    tl.store(c_block, acc.to(C.type.element_ty), boundary_check=(0, 1))


def matmul_block(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = np.empty((M, N), a.dtype)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 16))
    matmul_block_kernel[grid](a, b, c, M, N, K, *strides(a, b, c), BM=32, BN=16, BK=32)
    return c


@triton.jit
def matmul_descriptor_kernel(a_desc, b_desc, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """`b` lies transposed; the result's descriptor is made in the kernel."""
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    offs_m, offs_n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        a = a_desc.load([offs_m, k * BK])
        b = b_desc.load([offs_n, k * BK])
        acc = tl.dot(a, b.T, acc)
    c_desc.store([offs_m, offs_n], acc.to(c_desc.dtype))


def matmul_descriptor(a, b):
    from triton.tools.tensor_descriptor import TensorDescriptor

    (M, K), N = a.shape, b.shape[0]
    c = np.empty((M, N), a.dtype)
    a_desc = TensorDescriptor(a, a.shape, strides(a), [16, 32])
    b_desc = TensorDescriptor.from_tensor(b, [32, 32])
    matmul_descriptor_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 32))](a_desc, b_desc, c, M, N, K, 16, 32, 32)
    return c


@triton.jit
def _tile_of(tile_id, num_pid_in_group, num_pid_m, GROUP_SIZE_M: tl.constexpr):
    group_id = tile_id // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    return first_pid_m + (tile_id % group_size_m), (tile_id % num_pid_in_group) // group_size_m


@triton.jit
def matmul_persistent_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, NUM_SMS: tl.constexpr,
):  # fmt: skip
    start_pid = tl.program_id(axis=0)
    num_pid_m, num_pid_n, k_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    num_tiles = num_pid_m * num_pid_n
    for tile_id in tl.range(start_pid, num_tiles, NUM_SMS, flatten=True):
        pid_m, pid_n = _tile_of(tile_id, GROUP * num_pid_n, num_pid_m, GROUP)
        offs_am = pid_m * BM + tl.arange(0, BM)
        offs_bn = pid_n * BN + tl.arange(0, BN)
        offs_am = tl.where(offs_am < M, offs_am, 0)
        offs_bn = tl.where(offs_bn < N, offs_bn, 0)
        offs_am = tl.max_contiguous(tl.multiple_of(offs_am, BM), BM)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for ki in range(k_tiles):
            offs_k = ki * BK + tl.arange(0, BK)
            a = tl.load(a_ptr + offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak, offs_k[None, :] < K, 0.0)
            b = tl.load(b_ptr + offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn, offs_k[:, None] < K, 0.0)
            acc = tl.dot(a, b, acc)
        offs_cm = pid_m * BM + tl.arange(0, BM)
        offs_cn = pid_n * BN + tl.arange(0, BN)
        c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
        c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
        if c_ptr.dtype.element_ty == tl.float16:
            tl.store(c_ptrs, acc.to(tl.float16), mask=c_mask)
        else:
            tl.store(c_ptrs, acc, mask=c_mask)


def matmul_persistent(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = np.empty((M, N), a.dtype)
    sms = triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"]
    tiles = triton.cdiv(M, 16) * triton.cdiv(N, 16)
    matmul_persistent_kernel[(min(sms, tiles),)](
        a, b, c, M, N, K, *strides(a, b, c), BM=16, BN=16, BK=32, GROUP=4, NUM_SMS=min(sms, tiles)
    )
    return c


@triton.jit
def matmul_int8_kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Products of int8 are added in int32, and scaled by rows of `a` and columns of `b`."""
    rm = tl.program_id(1) * BM + tl.arange(0, BM)
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0)
        b = tl.load(b_ptr + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0)
        acc += tl.dot(a, b, out_dtype=tl.int32)
    scale_a = tl.load(scale_a_ptr + rm, mask=rm < M, other=0.0)
    scale_b = tl.load(scale_b_ptr + rn, mask=rn < N, other=0.0)
    c = acc.to(tl.float32) * scale_a[:, None] * scale_b[None, :]
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], c, mask=(rm[:, None] < M) & (rn[None, :] < N))


def matmul_int8(a, b, scale_a, scale_b):
    (M, K), N = a.shape, b.shape[1]
    c = np.empty((M, N), np.float32)
    matmul_int8_kernel[(triton.cdiv(N, 32), triton.cdiv(M, 16))](
        a, b, scale_a, scale_b, c, M, N, K, BM=16, BN=32, BK=32
    )
    return c


@triton.jit
def matmul_fp8_kernel(
    a_ptr, b_ptr, as_ptr, bs_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """8-bit floats with a scale for each BK elements of a row of `a`, and for each BK x BN of `b`."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    k_blocks = tl.cdiv(K, BK)
    offs_m = (pid_m * BM + tl.arange(0, BM)) % M
    offs_n = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_n[None, :] * K + offs_k[:, None]
    a_s_ptrs = as_ptr + offs_m * k_blocks
    b_s_ptrs = bs_ptr + (offs_n // BN) * k_blocks
    accumulator = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(k_blocks):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - i * BK, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - i * BK, other=0.0)
        a_s = tl.load(a_s_ptrs)
        b_s = tl.load(b_s_ptrs)
        accumulator += tl.dot(a, b) * a_s[:, None] * b_s[None, :]
        a_ptrs += BK
        b_ptrs += BK
        a_s_ptrs += 1
        b_s_ptrs += 1
    offs_m = pid_m * BM + tl.arange(0, BM)
    offs_n = pid_n * BN + tl.arange(0, BN)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], accumulator.to(c_ptr.dtype.element_ty), mask=mask)


def matmul_fp8(a, b, scale_a, scale_b):
    (M, K), N = a.shape, b.shape[0]
    c = np.empty((M, N), np.float32)
    matmul_fp8_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16))](
        a, b, scale_a, scale_b, c, M, N, K, BM=16, BN=16, BK=32
    )
    return c
