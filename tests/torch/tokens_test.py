#!/usr/bin/env python3
"""Token files: what they hold, which windows are read of them and when, and what is refused.

    tokens_test.py FOLDER_OF_TANGRAM_TORCH [NAME...]     exit 77 where no Python here has PyTorch
"""

import os
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from with_torch import need_torch

need_torch()
from cases import Cases, refused
from tangram_torch.data import open_tokens, permuted
from tangram_torch.synthetic import Synthetic

CODES = {1: "B", 2: "b", 3: "h", 4: "i", 5: "q", 8: "H"}  # of Megatron-LM's index, and of struct
NPY = {"|u1": "B", "|i1": "b", "<u2": "H", "<i2": "h", "<u4": "I", "<i4": "i", "<i8": "q", "<u8": "Q"}
test = Cases()


def path_of(name):
    return os.path.join(scratch, name)


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def write_pair(prefix, documents, code=4, magic=b"MMIDIDX\0\0", version=1, shift=0):
    data = [struct.pack(f"<{len(d)}{CODES.get(code, 'f')}", *d) for d in documents]
    pointers = [sum(map(len, data[:i])) + shift for i in range(len(data))]
    count = len(data)
    write(prefix + ".bin", b"".join(data))
    write(prefix + ".idx", magic + struct.pack("<QBQQ", version, code, count, count + 1)
          + struct.pack(f"<{count}i", *map(len, documents)) + struct.pack(f"<{count}q", *pointers)
          + struct.pack(f"<{count + 1}q", *range(count + 1)))


def write_npy(path, values, kind="<i4", shape=None):
    header = str({"descr": kind, "fortran_order": False, "shape": shape or (len(values),)}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    write(path, b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header
          + struct.pack(f"<{len(values)}{NPY.get(kind, 'f')}", *values))


def windows_of(source, count, length, batch):
    """The first so many samples of a run, iteration by iteration."""
    found = []
    for source.iteration in range(-(-count // batch)):
        found += source.tokens(range(batch), length).tolist()
    return found[:count]


@test
def every_type_of_integers():
    documents = [[5, 3, 7], [1], [2, 9, 4]]
    row = [token for document in documents for token in document]
    for code in CODES:
        write_pair(path_of("pair"), documents, code)
        for name in ("pair", "pair.bin", "pair.idx"):
            test.equal(windows_of(open_tokens(path_of(name), 10, 1, 0), 1, 7, 1), [row], f"type {code}")
    for kind in NPY:
        write_npy(path_of("row.npy"), row, kind)
        test.equal(windows_of(open_tokens(path_of("row.npy"), 10, 1, 0), 1, 7, 1), [row], f"type {kind}")
    write_npy(path_of("row.npy"), [65535, 40000], "<u2")
    test.equal(windows_of(open_tokens(path_of("row.npy"), 65536, 1, 0), 1, 2, 1), [[65535, 40000]], "high uint16")
    write_npy(path_of("row.npy"), [4294967295, 3], "<u4")
    test.equal(windows_of(open_tokens(path_of("row.npy"), 2 ** 32, 1, 0), 1, 2, 1), [[4294967295, 3]], "high uint32")


@test
def permutations_are_permutations():
    for count in (1, 2, 3, 4, 5, 16, 17, 100, 257, 1000):
        orders = [[permuted(place, count, key) for place in range(count)] for key in (b"7/0", b"7/1", b"8/0")]
        for order in orders:
            test.equal(sorted(order), list(range(count)), f"order of {count}")
        test.check(count < 16 or orders[0] != orders[1] != orders[2] != orders[0], f"orders of {count} are unlike")
    order = [permuted(place, 4000, b"1/0") for place in range(4000)]
    kept = sum(b - a == 1 for a, b in zip(order, order[1:]))
    test.check(kept < 10, f"{kept} neighbours stay neighbours")
    mean = sum(order[:400]) / 400
    test.check(1800 < mean < 2200, f"the first tenth of an order has the mean {mean}")
    far = 10 ** 12
    test.check(0 <= permuted(far - 1, far, b"1/0") < far, "a place among very many is worked out alone")


@test
def an_epoch_has_each_window_once():
    write_npy(path_of("row.npy"), list(range(43)))
    length, windows, batch = 5, 10, 4  # tokens 41 and 42 are left over
    seen = windows_of(open_tokens(path_of("row.npy"), 43, batch, 3), 3 * windows, length, batch)
    whole = [list(range(4 * k, 4 * k + 5)) for k in range(windows)]
    epochs = [seen[i:i + windows] for i in range(0, len(seen), windows)]
    for epoch in epochs:
        test.equal(sorted(epoch), whole, "windows of an epoch")
    test.check(epochs[0] != epochs[1] != epochs[2] != epochs[0], "epochs have orders of their own")
    other = windows_of(open_tokens(path_of("row.npy"), 43, batch, 4), windows, length, batch)
    test.check(other != epochs[0], "seeds have orders of their own")


@test
def samples_depend_on_iteration_and_number_alone():
    write_npy(path_of("row.npy"), list(range(200)))
    sources = [lambda: open_tokens(path_of("row.npy"), 200, 6, 3), lambda: Synthetic(200, 3)]
    for make in sources:
        straight = make()
        rows = {}
        for straight.iteration in range(20):
            rows[straight.iteration] = straight.tokens(range(6), 5).tolist()
        resumed = make()
        for resumed.iteration in (17, 3, 17):
            parts = [resumed.tokens(part, 5).tolist() for part in (range(4, 6), range(0, 1), range(1, 4), range(2, 2))]
            test.equal(parts[1] + parts[2] + parts[0] + parts[3], rows[resumed.iteration], "samples of a resumed run")
        test.equal(list(resumed.tokens(range(0), 5).shape), [0, 5], "shape of no samples")
        test.check(str(resumed.tokens(range(1), 5).dtype) == "torch.int64", "type")
    unlike = len({str(row) for of_iteration in rows.values() for row in of_iteration})
    test.check(unlike > 100, f"of 120 samples, {unlike} are unlike")


@test
def what_is_no_token_file_is_refused():
    pair, npy = path_of("bad"), path_of("bad.npy")

    def open_pair(**options):
        write_pair(pair, [[1, 2, 3], [4, 5]], **options)
        return open_tokens(pair, 10, 1, 0)

    def open_npy(*arguments, **options):
        write_npy(npy, *arguments, **options)
        return open_tokens(npy, 10, 1, 0)

    refused(test, lambda: open_tokens(path_of("none"), 10, 1, 0), path_of("none.idx") + " does not exist", "PREFIX.bin")
    refused(test, lambda: open_tokens(path_of("none.npy"), 10, 1, 0), path_of("none.npy") + " does not exist")
    refused(test, lambda: open_pair(magic=b"TNTIDX\0\0\0"), "bad.idx is not an index of Megatron-LM", "MMIDIDX")
    refused(test, lambda: open_pair(version=2), "version 2")
    refused(test, lambda: open_pair(code=7), "type float32, not integers")
    refused(test, lambda: open_pair(code=9), "type 9, not integers")
    refused(test, lambda: open_pair(shift=4), "are not a pair")
    open_pair()
    write(pair + ".bin", b"\0" * 16)
    refused(test, lambda: open_tokens(pair, 10, 1, 0), "bad.bin has 16 bytes", "5 tokens of 4 bytes")
    with open(pair + ".idx", "rb") as file:
        index = file.read()
    write(pair + ".idx", index[:50])
    refused(test, lambda: open_tokens(pair, 10, 1, 0), "bad.idx is cut off")
    refused(test, lambda: open_npy([1.0, 2.0], "<f4"), "elements of type <f4, not integers", "astype")
    refused(test, lambda: open_npy([1, 2], ">i4"), "type >i4", "little-endian")
    refused(test, lambda: open_npy([1, 2], shape=(1, 2)), "the shape (1, 2), not one row")
    refused(test, lambda: open_npy([1, 2], shape=(3,)), "bad.npy is cut off")
    write(npy, b"PK\3\4 and so on and on")
    refused(test, lambda: open_tokens(npy, 10, 1, 0), "is not a .npy file")
    write(npy, b"")
    refused(test, lambda: open_tokens(npy, 10, 1, 0), "is empty")
    refused(test, lambda: open_npy([1, 2, 3]).tokens(range(1), 4), "has 3 tokens, and a sample 4", "shorter sequences")
    refused(test, lambda: open_npy([1, 2, 30, 4]).tokens(range(1), 4), "token 2 is 30", "before 10", "tokenizer")
    refused(test, lambda: open_npy([1, -2, 3, 4]).tokens(range(1), 4), "token 1 is -2")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(test.run(sys.argv[2:]))
