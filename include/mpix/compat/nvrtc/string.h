/* SPDX-License-Identifier: BSD-3-Clause
 * For NVRTC, which has memcpy and memset by itself. */
