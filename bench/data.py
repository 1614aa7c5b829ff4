"""The data sets of the benchmarks in the folder NESVM_DATA: what is there, whether it is what it
should be, and, with --download, what the LIBSVM project offers of the rest.

Where a file is missing, benchmarks make data of the same shape and say so in every table.
"""

import argparse
import bz2
import hashlib
import lzma
import os
import sys
import tempfile
import urllib.request
from pathlib import Path

from .common import note, table

PUBLIC = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
BINARY = ("a1a", "a2a", "a3a", "a4a", "a5a", "a6a", "a9a", "w8a")
COMPRESSED = {"ijcnn1": "binary", "usps": "multiclass", "mnist": "multiclass"}
BLOCK = 1 << 20
SHA256 = {  # of the plain text
    "a1a": "740f16ebaee4597b2f8f5286686d77fc297b1ceb2f67ed9510362b7cf6101166",
    "a2a": "083f671516c88094266c04f2487d205c0ef83dbaeac0064d675212704b5d707f",
    "a3a": "39b8d56047026d5f244806856fe2b0584e39c24d3ead6c1c2da3884d5c66ab79",
    "a4a": "7b437b584d8a0e1611bb0a342961511b29bb541c804bc4b217f69fb7e167118a",
    "a5a": "3a2b1bf7b3215a01da52664dc61a6eef749d959528306b7b8c6f4ea95c16e008",
    "a6a": "c2dda21d30ff3ee4863477fa657a1ceae468fab6c9d3beffcf727e2a683bd355",
    "a9a": "76b604b2c3f738783537bd3b32893eae66af54b8a41aee534fac1ecea45c1535",
    "a1a.t": "9d54e4270f2e4cf6b4a788e989f3b92d272a8da0f6a48a36286e01e86f87d9ff",
    "a2a.t": "d31c4863d23eac97de5a1b76f650c708bc1581179476ef914f3d59d32121735a",
    "a3a.t": "0f130e2e53eadb6201bde033ee584ef011561c5c47bdf500e048b5dc9357bf69",
    "a4a.t": "2a5037d181220551aac1f9e52e4d778c957e0538daee1e87bca85e81da0ed62a",
    "a5a.t": "3ea1693d33138d2dc9aff5082cb1847a4c13f47bd1baae64032aed613440fe5e",
    "a6a.t": "fef8f9813a3f93c1f921687c965981765cebdb0929e2018dcfc13770e23b8112",
    "a9a.t": "0c3135eb9b9d83a4fa007d6e1a3b719f029db78884dafd5a46a4d7eeb4c2b018",
    "ijcnn1": "020d7c364da052ab1f5b2b78d7f77f2cf422e1f58a440d7e100d8d782c32b0c9",
    "ijcnn1.t": "2c75519e532a043679e177bfd07dfa525f4e5e65b95960360737809ead16f95a",
    "w8a": "05af7655871a35d5bc89c755791b5338a9969cb604c9df045c811c5e5a45426e",
    "usps": "83b3e2490d0da05237ce1f63477763c3ae116bff90700822d6ed810791432fa9",
    "usps.t": "a92340313639767be7580f70aa1d68f16ae41342f290e8ef501183225fb00a28",
    "scene15.gist512": "92e4363f49edc6255fb63c91fdb05f86d3c257d419da8692483a0c5b5990aa55",
    "scene15.gist512.t": "e57c01ce4ffed4e58813300de23f73d52a487fa4c2872205d7b20e9eefcea945",
    "news20bydate": "b5ac30eb180b71b7ac4b3b7a0fd54552f0f8b4a14701250875e8d87b7edbf714",
    "news20bydate.t": "6b5f7ac6b31d39925c4ac171b9c43acce6b3a46178f74cd26c21acfb7506c04b",
    "mnist": "c42b75fcb54dda11d97af9bd6e3950b41c93b4f44eeb9608aa115f79a5979e88",
    "mnist.t": "31ffc3cfb1824d0994d57172bb8ca68882e578859e1ee1bd9fc1f2f15bfd06a2",
    "heart_scale": "63917b08a72632bb3d5c0a704c40fe3ed35aca473c2ace511c8ad37a8b5df20a",
    "breast_cancer_sklearn": "16b7fcb9898439dabfda3c187e557907e20fe56000e5b2b4beaa969da37dc4e5",
    "digits_sklearn": "b82d89c2691202b8add34b5bf633e936062defcf92753a8db0ff078f68214ee0",
}


def address(name: str) -> str | None:
    """Where a file can be had, if it is public."""
    base = name.removesuffix(".t")
    if name == "heart_scale" or (base in BINARY and name != "w8a.t"):
        return f"{PUBLIC}binary/{name}"
    if base in COMPRESSED:
        return f"{PUBLIC}{COMPRESSED[base]}/{name}.bz2"
    return None


def find(folder: Path, name: str) -> Path | None:
    """The file, plain or compressed with xz."""
    return next((p for p in (folder / name, folder / f"{name}.xz") if p.is_file()), None)


def checksum(path: Path) -> str:
    """SHA-256 of the plain text."""
    digest = hashlib.sha256()
    with lzma.open(path) if path.suffix == ".xz" else open(path, "rb") as f:
        while block := f.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def state(folder: Path, name: str) -> str:
    """present, damaged or missing."""
    path = find(folder, name)
    if path is None:
        return "missing, public" if address(name) else "missing"
    try:
        return "present" if checksum(path) == SHA256[name] else "DAMAGED: another SHA-256"
    except (OSError, EOFError, lzma.LZMAError) as error:
        return f"DAMAGED: {error}"


def download(folder: Path, name: str) -> str:
    """Fetch a public file; it appears only when it is whole and what it should be."""
    source = address(name)
    assert source is not None
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with urllib.request.urlopen(source, timeout=60) as answer:
            content = answer.read()
        plain = bz2.decompress(content) if source.endswith(".bz2") else content
    except (OSError, ValueError) as error:
        return f"cannot be had from {source}: {error}"
    if hashlib.sha256(plain).hexdigest() != SHA256[name]:
        return f"{source} has another SHA-256: not kept"
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as f:
        f.write(plain)
    os.replace(f.name, folder / name)
    return "downloaded"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.data", description=__doc__)
    parser.add_argument("--download", action="store_true", help="fetch what is public and missing")
    options = parser.parse_args()
    named = os.environ.get("NESVM_DATA")
    if not named:
        print("NESVM_DATA must name a folder for the data sets", file=sys.stderr)
        return 1
    rows = []
    for name in SHA256:
        found = state(Path(named), name)
        if options.download and found == "missing, public":
            note(f"downloading {name}")
            found = download(Path(named), name)
        rows.append((name, found))
    print(table(rows, ("data set", "state")))
    return int(any("DAMAGED" in found or "SHA-256" in found for _, found in rows))


if __name__ == "__main__":
    sys.exit(main())
