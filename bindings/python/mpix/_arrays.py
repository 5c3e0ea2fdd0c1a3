# SPDX-License-Identifier: BSD-3-Clause
"""Where an array of any package lies in memory, without copying it.

Asked in this order: __cuda_array_interface__ (CuPy, Numba, PyTorch), __array_interface__ (NumPy), DLPack.
"""
import ctypes

import numpy

# Of DLPack's devices: those whose memory the host can use, and those with memory of a CUDA GPU.
_DLPACK_HOST, _DLPACK_CUDA = (1, 3), (2, 13)
_DLPACK_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int * 2), ("ndim", ctypes.c_int),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


def _contiguous(shape, size):
    strides = []
    for n in reversed(shape):
        strides.insert(0, size)
        size *= n
    return tuple(strides)


class Memory:
    """An array's memory.

    `address`, of its first element; `shape`; `strides` in bytes; `dtype`, of NumPy; `on_gpu`; `owner`, which keeps it.
    `name` is the argument's, for errors: TypeError, ValueError.
    """

    def __init__(self, array, name):
        self.owner = array
        if getattr(array, "__cuda_array_interface__", None) is not None:
            self._take_interface(array.__cuda_array_interface__, name)
            self.on_gpu = True
        elif getattr(array, "__array_interface__", None) is not None:
            self._take_interface(array.__array_interface__, name)
            self.on_gpu = False
        elif hasattr(array, "__dlpack__"):
            self._take_dlpack(array, name)
        else:
            raise TypeError(f"{name} is {type(array).__name__}; it is an array of NumPy, CuPy, Numba or PyTorch, or "
                            "one with DLPack")
        if self.dtype.hasobject or not self.dtype.isnative:
            raise TypeError(f"{name} has values of {self.dtype}; they are numbers or structures in the machine's byte "
                            "order")

    def _take_interface(self, interface, name):
        self.address, read_only = interface["data"]
        if read_only:
            raise ValueError(f"{name} is read-only; ghost cells are written to it")
        if interface.get("mask") is not None:
            raise ValueError(f"{name} has a mask")
        self.shape = tuple(interface["shape"])
        structure = interface.get("descr") if interface["typestr"][1] == "V" else None
        self.dtype = numpy.dtype(structure or interface["typestr"])
        self.strides = interface.get("strides") or _contiguous(self.shape, self.dtype.itemsize)

    def _take_dlpack(self, array, name):
        device = array.__dlpack_device__()[0]
        if device not in _DLPACK_HOST + _DLPACK_CUDA:
            raise TypeError(f"{name} is on a device of DLPack's type {int(device)}; it is in memory of the host or of "
                            "CUDA")
        self.on_gpu = device in _DLPACK_CUDA
        # -1: the array is taken as it is; the program's streams order what is done with it.
        capsule = array.__dlpack__(stream=-1) if self.on_gpu else array.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
        tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
        if tensor.code not in _DLPACK_KINDS or tensor.lanes != 1 or tensor.bits % 8 != 0:
            raise TypeError(f"{name} has values of DLPack's type {tensor.code} with {tensor.bits} bits")
        self.owner = (array, capsule)  # a capsule that nobody takes over frees its tensor with itself
        self.address = (tensor.data or 0) + tensor.byte_offset
        self.shape = tuple(tensor.shape[: tensor.ndim])
        self.dtype = numpy.dtype(f"{_DLPACK_KINDS[tensor.code]}{tensor.bits // 8}")
        size = self.dtype.itemsize
        self.strides = (tuple(n * size for n in tensor.strides[: tensor.ndim]) if tensor.strides
                        else _contiguous(self.shape, size))

    def bytes(self):
        """From the first to behind the last element."""
        return sum((n - 1) * stride for n, stride in zip(self.shape, self.strides)) + self.dtype.itemsize
