"""Elementwise kernels: one program for each block of a vector, or of a matrix."""

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y):
    out = np.empty_like(x)
    n = x.size
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)
    add_kernel[grid](x, y, out, n, BLOCK_SIZE=128)
    return out


@triton.jit
def _gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def _gelu_tanh(x):
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1.0 + libdevice.tanh(inner))


@triton.jit
def _silu(x):
    return x * tl.sigmoid(x)


@triton.heuristics({"EVEN": lambda args: args["n_elements"] % args["BLOCK_SIZE"] == 0})
@triton.jit
def gelu_kernel(x_ptr, out_ptr, n_elements, TANH: tl.constexpr, BLOCK_SIZE: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    if EVEN:
        x = tl.load(x_ptr + offsets).to(tl.float32)
    else:
        x = tl.load(x_ptr + offsets, mask=offsets < n_elements, other=0.0).to(tl.float32)
    y = _gelu_tanh(x) if TANH else _gelu(x)
    y = y.to(out_ptr.dtype.element_ty)
    if EVEN:
        tl.store(out_ptr + offsets, y)
    else:
        tl.store(out_ptr + offsets, y, mask=offsets < n_elements)


def gelu(x, tanh):
    out = np.empty_like(x)
    gelu_kernel[(triton.cdiv(x.size, 64),)](x, out, x.size, TANH=tanh, BLOCK_SIZE=64)
    return out


@triton.jit
def gelu_backward_kernel(dy_ptr, x_ptr, dx_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0).to(tl.float32)
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0).to(tl.float32)
    cdf = 0.5 * (1.0 + tl.math.erf(x * 0.7071067811865476))
    pdf = 0.3989422804014327 * tl.math.exp(-0.5 * x * x)
    tl.store(dx_ptr + offsets, dy * (cdf + x * pdf), mask=mask)


def gelu_backward(dy, x):
    dx = np.empty_like(x)
    gelu_backward_kernel[(triton.cdiv(x.size, 128),)](dy, x, dx, x.size, BLOCK_SIZE=128, num_warps=8)
    return dx


@triton.jit
def bias_act_kernel(
    x_ptr, bias_ptr, res_ptr, out_ptr, M, N, stride_xm, stride_xn, stride_om, stride_on,
    ACT: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rn = tl.max_contiguous(tl.multiple_of(rn, BLOCK_N), BLOCK_N)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    x = tl.load(x_ptr + rm[:, None] * stride_xm + rn[None, :] * stride_xn, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)
    y = x + bias[None, :]
    if ACT == "relu":
        y = tl.where(y > 0, y, 0.0)
    elif ACT == "silu":
        y = _silu(y)
    elif ACT == "leaky":
        y = tl.where(y >= 0, y, 0.01 * y)
    if res_ptr is not None:
        y += tl.load(res_ptr + rm[:, None] * stride_om + rn[None, :] * stride_on, mask=mask, other=0.0)
    tl.store(out_ptr + rm[:, None] * stride_om + rn[None, :] * stride_on, y, mask=mask)


def bias_act(x, bias, residual, act):
    M, N = x.shape
    out = np.empty((M, N), x.dtype)
    sx, so = [s // x.itemsize for s in x.strides], [s // out.itemsize for s in out.strides]
    grid = lambda META: (triton.cdiv(M, META["BLOCK_M"]), triton.cdiv(N, META["BLOCK_N"]))
    bias_act_kernel[grid](x, bias, residual, out, M, N, *sx, *so, ACT=act, BLOCK_M=16, BLOCK_N=32)
    return out


@triton.jit
def silu_mul_forward_kernel(a_ptr, b_ptr, c_ptr, stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    program_id = tl.program_id(0).to(tl.int64)
    a_ptr += program_id * stride
    b_ptr += program_id * stride
    c_ptr += program_id * stride
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols
    a_row = tl.load(a_ptr + col_offsets, mask=mask, other=0).to(tl.float32)
    b_row = tl.load(b_ptr + col_offsets, mask=mask, other=0)
    c_row = _silu(a_row).cast(b_row.dtype) * b_row
    tl.store(c_ptr + col_offsets, c_row, mask=mask)


@triton.jit
def silu_mul_backward_kernel(dc_ptr, a_ptr, b_ptr, stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * stride
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    dc = tl.load(dc_ptr + row + cols, mask=mask, other=0)
    a = tl.load(a_ptr + row + cols, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + row + cols, mask=mask, other=0)
    sig = tl.sigmoid(a)
    silu = a * sig
    db = dc * silu
    da = dc * (silu * (1 - sig) + sig) * b
    tl.store(a_ptr + row + cols, da, mask=mask)
    tl.store(b_ptr + row + cols, db, mask=mask)


def swiglu(a, b):
    c = np.empty_like(a)
    rows, cols = a.shape
    silu_mul_forward_kernel[(rows,)](a, b, c, c.strides[0] // c.itemsize, cols, BLOCK_SIZE=triton.next_power_of_2(cols))
    return c


def swiglu_backward(dc, a, b):
    """The gradients replace the inputs."""
    rows, cols = a.shape
    silu_mul_backward_kernel[(rows,)](
        dc, a, b, stride=cols, n_cols=cols, BLOCK_SIZE=triton.next_power_of_2(cols), num_warps=4
    )
    return a, b


@triton.jit
def clamp_band_kernel(x_ptr, out_ptr, low, high, n, BLOCK: tl.constexpr):
    """Programs behind the end return early; lanes are chosen by a chained comparison's two halves."""
    start = tl.program_id(0) * BLOCK
    if start >= n:
        return
    offs = start + tl.arange(0, BLOCK)
    inside = offs < n
    x = tl.load(x_ptr + offs, mask=inside)
    kept = (low < x) & (x < high)
    tl.device_assert(offs >= 0, "offsets begin at 0")
    tl.store(out_ptr + offs, tl.where(kept, x, tl.clamp(x, low, high) * 2), mask=inside)


def clamp_band(x, low, high):
    out = np.empty_like(x)
    clamp_band_kernel[(triton.cdiv(x.size, 32) + 3,)](x, out, low, high, x.size, BLOCK=32)
    return out


@triton.jit
def adamw_kernel(
    p_ptr, g_ptr, m_ptr, v_ptr, lr, beta1, beta2, eps, decay, step, n_elements,
    BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    p = tl.load(p_ptr + offsets, mask=mask).to(tl.float32)
    g = tl.load(g_ptr + offsets, mask=mask).to(tl.float32)
    m = tl.load(m_ptr + offsets, mask=mask)
    v = tl.load(v_ptr + offsets, mask=mask)
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    correction1 = 1 - libdevice.pow(beta1, step.to(tl.float32))
    correction2 = 1 - libdevice.pow(beta2, step.to(tl.float32))
    p = p * (1 - lr * decay)
    p -= lr * (m / correction1) / (tl.sqrt(v / correction2) + eps)
    tl.store(m_ptr + offsets, m, mask=mask)
    tl.store(v_ptr + offsets, v, mask=mask)
    tl.store(p_ptr + offsets, p, mask=mask)


def adamw(p, g, m, v, lr, beta1, beta2, eps, decay, step):
    n = p.size
    adamw_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)](
        p, g, m, v, lr, beta1, beta2, eps, decay, step, n, BLOCK_SIZE=64
    )
    return p, m, v
