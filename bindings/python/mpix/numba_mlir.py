# SPDX-License-Identifier: BSD-3-Clause
"""The device functions for kernels of numba-cuda-mlir, 0.6: those of mpix.numba, by the same names.

Import them by name: that compiler cannot call a function as a module's attribute.
"""
from numba_cuda_mlir import cuda

from ._numba import NAMES, compile_functions, declare

globals().update(declare(cuda))
__all__ = ["compile_functions"] + NAMES
