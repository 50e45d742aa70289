"""BLAKE2b of many short values at once (RFC 7693), as `hashlib.blake2b` has it one by one.

A million learners' ids take a second each time that they are digested one by one, and most of it is not spent on
the digests.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_BLOCK = 128
_START = np.array(
    [
        0x6A09E667F3BCC908,
        0xBB67AE8584CAA73B,
        0x3C6EF372FE94F82B,
        0xA54FF53A5F1D36F1,
        0x510E527FADE682D1,
        0x9B05688C2B3E6C1F,
        0x1F83D9ABFB41BD6B,
        0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)
_ORDER = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ]
)


def blake2_numbers(data: bytes, sizes: NDArray[np.int64], key: bytes = b"") -> Words:
    """The digest of eight bytes, as a little-endian number, of each of the values that lie in `data` one by one."""
    if len(key) > 64:
        raise ValueError(f"a key of {len(key)} bytes was given; 64 are possible")
    ends = np.cumsum(sizes, dtype=np.int64)
    if (sizes < 0).any() or (int(ends[-1]) if len(ends) else 0) != len(data):
        raise ValueError("the sizes of the values do not add up to the data")
    result = np.empty(len(sizes), dtype=np.uint64)
    padded = np.frombuffer(key.ljust(_BLOCK, b"\0"), dtype=np.uint8)
    _digest_all(np.frombuffer(data, dtype=np.uint8), ends, padded, len(key), result)
    return result


@njit(cache=True, nogil=True)
def _digest_all(data, ends, key, key_size, result):  # type: ignore[no-untyped-def]
    """The first word of the state after each value; a key is a block before the value's own."""
    fresh, state = np.empty(8, np.uint64), np.empty(8, np.uint64)
    words = np.empty(16, np.uint64)
    for i in range(8):
        fresh[i] = _START[i]
    # Digests of 8 bytes, one tree without branches.
    fresh[0] ^= np.uint64(0x01010000) ^ np.uint64(key_size << 8) ^ np.uint64(8)
    keyed = fresh.copy()
    before = 0
    if key_size:
        before = _BLOCK
        _load(key, 0, _BLOCK, words)
        _compress(keyed, words, np.uint64(_BLOCK), False)
    for n in range(len(ends)):
        start = ends[n - 1] if n else 0
        size = ends[n] - start
        if size == 0 and key_size:
            # The key's block is the last one.
            state[:] = fresh
            _load(key, 0, _BLOCK, words)
            _compress(state, words, np.uint64(_BLOCK), True)
            result[n] = state[0]
            continue
        state[:] = keyed
        at = 0
        while size - at > _BLOCK:
            _load(data, start + at, _BLOCK, words)
            at += _BLOCK
            _compress(state, words, np.uint64(before + at), False)
        _load(data, start + at, size - at, words)
        _compress(state, words, np.uint64(before + size), True)
        result[n] = state[0]


@njit(cache=True, nogil=True)
def _load(data, start, size, words):  # type: ignore[no-untyped-def]
    """A block as little-endian words, filled up with zeros."""
    for i in range(16):
        word = np.uint64(0)
        for j in range(min(8, size - 8 * i)):
            word |= np.uint64(data[start + 8 * i + j]) << np.uint64(8 * j)
        words[i] = word


@njit(cache=True, nogil=True, inline="always")
def _mix(a, b, c, d, x, y):  # type: ignore[no-untyped-def]
    a = a + b + x
    d = d ^ a
    d = (d >> np.uint64(32)) | (d << np.uint64(32))
    c = c + d
    b = b ^ c
    b = (b >> np.uint64(24)) | (b << np.uint64(40))
    a = a + b + y
    d = d ^ a
    d = (d >> np.uint64(16)) | (d << np.uint64(48))
    c = c + d
    b = b ^ c
    b = (b >> np.uint64(63)) | (b << np.uint64(1))
    return a, b, c, d


@njit(cache=True, nogil=True)
def _compress(state, m, n_bytes, last):  # type: ignore[no-untyped-def]
    """The function F of the standard, its sixteen words in registers; `n_bytes` are those up to here."""
    v0, v1, v2, v3 = state[0], state[1], state[2], state[3]
    v4, v5, v6, v7 = state[4], state[5], state[6], state[7]
    v8, v9, v10, v11 = _START[0], _START[1], _START[2], _START[3]
    v12, v13, v14, v15 = _START[4] ^ n_bytes, _START[5], _START[6], _START[7]
    if last:
        v14 = ~v14
    for r in range(12):
        s = _ORDER[r]
        v0, v4, v8, v12 = _mix(v0, v4, v8, v12, m[s[0]], m[s[1]])
        v1, v5, v9, v13 = _mix(v1, v5, v9, v13, m[s[2]], m[s[3]])
        v2, v6, v10, v14 = _mix(v2, v6, v10, v14, m[s[4]], m[s[5]])
        v3, v7, v11, v15 = _mix(v3, v7, v11, v15, m[s[6]], m[s[7]])
        v0, v5, v10, v15 = _mix(v0, v5, v10, v15, m[s[8]], m[s[9]])
        v1, v6, v11, v12 = _mix(v1, v6, v11, v12, m[s[10]], m[s[11]])
        v2, v7, v8, v13 = _mix(v2, v7, v8, v13, m[s[12]], m[s[13]])
        v3, v4, v9, v14 = _mix(v3, v4, v9, v14, m[s[14]], m[s[15]])
    state[0] ^= v0 ^ v8
    state[1] ^= v1 ^ v9
    state[2] ^= v2 ^ v10
    state[3] ^= v3 ^ v11
    state[4] ^= v4 ^ v12
    state[5] ^= v5 ^ v13
    state[6] ^= v6 ^ v14
    state[7] ^= v7 ^ v15
