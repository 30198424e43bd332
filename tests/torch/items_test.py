#!/usr/bin/env python3
"""Items of samples: made up ones, files of them and their places, what is refused, and how many weights encoders have.

    items_test.py FOLDER_OF_TANGRAM_TORCH [NAME...]     exit 77 where no Python here has PyTorch
"""

import math
import os
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from with_torch import need_torch

need_torch()
import plans
from cases import Cases, refused
from tangram_torch.data import open_tokens
from tangram_torch.encoders import Encoder, ItemCounts
from tangram_torch.items import FileItems, ReadSamples, SyntheticItems
from tangram_torch.launch_plan import plan_of
from tangram_torch.settings import read_settings
from tangram_torch.synthetic import Synthetic
from tangram_torch.train import source_of
from tangram_torch.weights import weights_of_model

IMAGE, LENGTH = 99, 16  # a token, and positions of a sample
test = Cases()


def encoder(name="vision", counts=ItemCounts(1.5, 3, 0.25), tokens_in=5, tokens_out=2, patch_width=9):
    return Encoder(name, range(2), 8, tokens_in, tokens_out, patch_width, True, None, counts)


def path_of(name):
    return os.path.join(scratch, name)


def write_npy(path, values, kind, shape, columns_first=False):
    header = str({"descr": kind, "fortran_order": columns_first, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    code = {"<i4": "i", "<f2": "e", "<f4": "f", "<f8": "d", ">f4": "f"}[kind]
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header
                   + struct.pack(f"<{len(values)}{code}", *values))


def file_items(row, count, kind="<f4", tokens_in=5, values=4, **options):
    """The k-th item has the value k everywhere."""
    write_npy(path_of("row.npy"), row, "<i4", (len(row),))
    write_npy(path_of("items.npy"), [k for k in range(count) for _ in range(tokens_in * values)], kind,
              (count, tokens_in, values), **options)
    tokens = open_tokens(path_of("row.npy"), 100, 2, 1)
    return ReadSamples(tokens, FileItems((encoder(),), tokens, LENGTH, {"vision": (path_of("items.npy"), IMAGE)}))


@test
def made_up_items_do_not_overlap_and_are_as_many_as_the_model_says():
    encoders = (encoder(), encoder("audio", ItemCounts(0.5), 6, 3))
    source = ReadSamples(Synthetic(50, 1), SyntheticItems(encoders, 64, 7))
    counts = {e.name: [] for e in encoders}
    for source.iteration in range(3):
        found = {e.name: source.items(e, range(400)) for e in encoders}
        for sample in range(400):
            taken = sorted((item.first, item.first + e.tokens_out) for e in encoders for item in found[e.name][sample])
            test.check(all(0 < first and last <= 64 for first, last in taken), f"places {taken}")
            test.check(all(a[1] <= b[0] for a, b in zip(taken, taken[1:])), f"places overlap: {taken}")
        for e in encoders:
            counts[e.name] += map(len, found[e.name])
            test.equal(source.items(e, range(5, 9)), found[e.name][5:9], "items by the number of a sample")
    for e in encoders:
        mean, none = sum(counts[e.name]) / 1200, counts[e.name].count(0) / 1200
        test.check(abs(mean - e.counts.mean) < 0.1, f"{e.name} has {mean} items in the mean")
        test.check(e.counts.none == 0 or abs(none - e.counts.none) < 0.05, f"{none} of all samples have none")
    patches = source.patches(encoders[0], range(8))
    test.equal(list(patches.shape), [sum(map(len, source.items(encoders[0], range(8)))), 5, 4], "shape of patches")
    tight = ReadSamples(Synthetic(50, 1), SyntheticItems(encoders, 4, 7))
    test.check(max(map(len, tight.items(encoders[0], range(50)))) == 1, "no more items than have a place")


@test
def items_of_a_file_stand_at_the_runs_of_their_token():
    row = [k % 50 for k in range(4 * LENGTH + 1)]
    starts = [3, 5, 14, 31, 47, 63]  # the ends of samples of 16 cut the last three
    for start in starts:
        row[start:start + 2] = [IMAGE, IMAGE]
    for kind in ("<f2", "<f4", "<f8"):
        source = file_items(row, len(starts), kind)
        seen = {}
        for source.iteration in range(2):
            for sample, tokens in enumerate(source.tokens(range(2), LENGTH + 1).tolist()):
                placed = source.items(encoder(), range(sample, sample + 1))[0]
                patches = source.patches(encoder(), range(sample, sample + 1))
                test.equal(patches[:, 0, 0].tolist(), [float(item.number) for item in placed], "values of items")
                test.check(all(tokens[item.first:item.first + 2] == [IMAGE, IMAGE] for item in placed), "places")
                seen[next(w for w in range(4) if row[16 * w:16 * w + 17] == tokens)] = [(i.number, i.first) for i in placed]
        test.equal(seen, {0: [(0, 3), (1, 5), (2, 14)], 1: [], 2: [], 3: []}, f"items of windows, {kind}")


@test
def what_are_no_items_is_refused():
    row = [1, IMAGE, IMAGE, 2] * 10
    refused(test, lambda: file_items(row, 9), "items.npy has 9 items", "places for 10")
    refused(test, lambda: file_items(row[:-2], 10), "token 99 at 37 is not in a run of 2", "vision")
    refused(test, lambda: file_items([1, IMAGE, 3, IMAGE] * 10, 10), "token 99 at 1 is not in a run of 2")
    refused(test, lambda: file_items(row, 10, values=5), "(10, 5, 5), not (items, 5, 4)")
    refused(test, lambda: file_items(row, 10, tokens_in=4), "(10, 4, 4), not (items, 5, 4)")
    refused(test, lambda: file_items(row, 10, ">f4"), "type >f4", "little-endian")
    refused(test, lambda: file_items(row, 10, columns_first=True), "row by row")
    file_items(row, 10, values=3)  # what it does not read of a token are positions


@test
def settings_that_do_not_fit_the_model_are_refused():
    plan = plan_of(plans.make(plans.LLAVA, [(2, 2, [(plans.one_chunk(0, 4), [plans.part(2)])])]))
    text = plan_of(plans.make(plans.LLAMA, [(2, 2, [(plans.one_chunk(0, 4), [plans.part(2)])])]))

    def source(plan, *words):
        return lambda: source_of(read_settings(["plan.json", *words]), plan)

    refused(test, source(plan, "--data", "tokens.npy"), "--data without --items vision=FILE:TOKEN")
    refused(test, source(plan, "--items", "vision=x.npy:3"), "--items without --data")
    refused(test, source(plan, "--items", "sound=x.npy:3"), "--items sound: the model has no such encoder")
    refused(test, source(text, "--items", "vision=x.npy:3"), "--items vision: the model has no such encoder")


@test
def encoders_have_the_weights_that_the_model_file_counts():
    def count(plan, *prefixes):
        return sum(math.prod(w.shape) for w in weights_of_model(plan.model) if w.name.startswith(prefixes))

    llava = plan_of(plans.make(plans.LLAVA, [(2, 2, [(plans.one_chunk(0, 4), [plans.part(2)])])]))
    test.equal(count(llava, "encoders.vision.patches"), 9 * 8, "patch parameters")
    # A norm of 16 with a bias, 16 x 12 and 12 x 16 with biases (parameters.cpp, connector.cpp).
    test.equal(count(llava, "encoders.vision.connector."), 2 * 16 + 16 * 12 + 12 + 12 * 16 + 16, "of the connector")
    # LayerNorms, four products with biases of attention, two of the feed-forward.
    test.equal(count(llava, "blocks.0."), 2 * 2 * 8 + 4 * (8 * 8 + 8) + 2 * 8 * 12 + 12 + 8, "of an encoder's block")


@test
def models_that_are_not_trained_are_refused():
    def read(change):
        architecture = plans.frozen(plans.LLAVA)
        change(architecture, architecture["modules"][0])
        return plan_of(plans.make(architecture, [(2, 2, [(plans.one_chunk(0, 4), [plans.part(2)])])]))

    connector = {"kind": "resampler", "widths": [8, 16, 16], "queries": 4}
    refused(test, lambda: read(lambda a, m: m["connector"].update(connector)), "a resampler", "mlp, merger, pool")
    refused(test, lambda: read(lambda a, m: m["connector"].update(extra_parameters=16)), "in no product")
    refused(test, lambda: read(lambda a, m: m.update(patch_parameters=71)), "71 patch parameters", "its width 8")
    refused(test, lambda: read(lambda a, m: m.pop("connector")), "vision has no connector")
    refused(test, lambda: read(lambda a, m: a.update(extra_embedding_parameters=80)), "belong to no module")
    refused(test, lambda: read(lambda a, m: a["edges"][0].update(into_layers=[0])), "inner layers of the language model")
    refused(test, lambda: read(lambda a, m: a["edges"][0].update(to="vision")), "another encoder")
    refused(test, lambda: read(lambda a, m: a["modules"][1].update(kind="generator")), "has a generator")
    refused(test, lambda: read(lambda a, m: (a.pop("modules"), a.pop("edges"), a.update(extra_embedding_parameters=0))),
            "blocks of type vision are an encoder's")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(test.run(sys.argv[2:]))
