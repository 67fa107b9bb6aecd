"""How fast records are read from files, and how much memory it takes; nothing is embedded.

    python benchmarks/ingest.py [--records 20000] [--memory 1000,10000,100000]

For each format a file of generated papers is written and read by `read_records`, which
decodes, parses, cleans and identifies, and by the bare parser that does the parsing alone
(json, csv, openpyxl; rispy and bibtexparser where they are installed). Times are the best of
three in one process. Memory is the peak of what Python allocates, as tracemalloc counts it.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from rag.records import Record
from rag.sources import read_records

FORMATS = ("jsonl", "json", "csv", "tsv", "ris", "bib", "nbib", "jsonl.gz", "xlsx")
_TRIES = 3
_WORDS = (
    "we show that large neural networks learn sparse features of data when trained with "
    "gradient descent under noise and prove bounds on the error of such models in theory "
    "results improve over baselines by 12.5 % on three benchmarks (p<0.05), while $O(n^2)$ "
    "memory & time remain the limits; co-occurrence statistics explain most of this effect"
).split()

Paper = dict[str, str]


def papers(count: int) -> Iterator[Paper]:
    """Papers with abstracts of 150 to 250 words, the same on every run."""
    rng = random.Random(7)
    for number in range(count):
        yield {
            "title": f"Paper {number} on {' '.join(rng.choices(_WORDS, k=8))}",
            "abstract": " ".join(rng.choices(_WORDS, k=rng.randint(150, 250))) + ".",
            "authors": f"Müller, Anna; Smith, John {number}; Li, Wei",
            "year": str(1990 + number % 35),
            "journal": "Journal of Examples",
            "doi": f"10.1234/example.{number}",
            "url": f"https://example.org/{number}",
            "keywords": "learning; sparse features",
        }


def write(path: Path, count: int) -> None:
    """A file of `count` papers in the format of the path's suffixes."""
    kind = path.name.split(".", 1)[1]
    if kind == "xlsx":
        _write_xlsx(path, count)
        return
    opened = gzip.open if kind.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8", newline="") as stream:
        _WRITERS[kind.removesuffix(".gz")](stream, papers(count))


def _write_jsonl(stream: TextIO, written: Iterator[Paper]) -> None:
    for paper in written:
        stream.write(json.dumps(paper) + "\n")


def _write_json(stream: TextIO, written: Iterator[Paper]) -> None:
    stream.write("[")
    for number, paper in enumerate(written):
        stream.write((",\n" if number else "\n") + json.dumps(paper, indent=1))
    stream.write("]")


def _write_table(stream: TextIO, written: Iterator[Paper], delimiter: str = ",") -> None:
    rows = csv.writer(stream, delimiter=delimiter)
    for number, paper in enumerate(written):
        if not number:
            rows.writerow(paper)
        rows.writerow(paper.values())


def _write_ris(stream: TextIO, written: Iterator[Paper]) -> None:
    tags = {"title": "TI", "abstract": "AB", "year": "PY", "journal": "JO", "doi": "DO"}
    for paper in written:
        lines = ["TY  - JOUR", *(f"{tag}  - {paper[key]}" for key, tag in tags.items())]
        lines += [f"AU  - {name}" for name in paper["authors"].split("; ")]
        lines += [f"KW  - {word}" for word in paper["keywords"].split("; ")]
        stream.write("\n".join([*lines, f"UR  - {paper['url']}", "ER  - ", "", ""]))


def _write_bib(stream: TextIO, written: Iterator[Paper]) -> None:
    for number, paper in enumerate(written):
        paper["author"] = paper.pop("authors").replace("; ", " and ").replace("ü", '{\\"u}')
        paper["abstract"] = paper["abstract"].replace("%", r"\%").replace("&", r"\&")
        paper["title"] = paper["title"].replace("%", r"\%").replace("&", r"\&")
        fields = ",\n".join(f"  {key} = {{{value}}}" for key, value in paper.items())
        stream.write(f"@article{{key{number},\n{fields}\n}}\n\n")


def _write_nbib(stream: TextIO, written: Iterator[Paper]) -> None:
    for number, paper in enumerate(written):
        lines = [f"PMID- {number + 1}", f"TI  - {paper['title']}", f"AB  - {paper['abstract']}"]
        lines += [f"FAU - {name}" for name in paper["authors"].split("; ")]
        lines += [
            f"DP  - {paper['year']}",
            f"LID - {paper['doi']} [doi]",
            f"JT  - {paper['journal']}",
        ]
        stream.write("\n".join([*lines, "", ""]))


def _write_xlsx(path: Path, count: int) -> None:
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for number, paper in enumerate(papers(count)):
        if not number:
            sheet.append(list(paper))
        sheet.append(list(paper.values()))
    book.save(path)


_WRITERS: dict[str, Callable[[TextIO, Iterator[Paper]], None]] = {
    "jsonl": _write_jsonl,
    "json": _write_json,
    "csv": _write_table,
    "tsv": lambda stream, written: _write_table(stream, written, "\t"),
    "ris": _write_ris,
    "bib": _write_bib,
    "nbib": _write_nbib,
}


# --- Bare parsers: the parsing alone, by the library that users would take ------------------


def _bare_jsonl(path: Path) -> int:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as stream:
        return sum(1 for line in stream if json.loads(line))


def _bare_json(path: Path) -> int:
    return len(json.loads(path.read_text("utf-8")))


def _bare_csv(path: Path) -> int:
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with path.open(encoding="utf-8", newline="") as stream:
        return sum(1 for _ in csv.DictReader(stream, delimiter=delimiter))


def _bare_ris(path: Path) -> int:
    import rispy

    with path.open(encoding="utf-8") as stream:
        return len(rispy.load(stream))


def _bare_bib(path: Path) -> int:
    from bibtexparser.entrypoint import parse_string

    return len(parse_string(path.read_text("utf-8")).entries)


def _bare_xlsx(path: Path) -> int:
    import openpyxl

    sheet = openpyxl.load_workbook(path, read_only=True).worksheets[0]
    return sum(1 for _ in sheet.iter_rows(values_only=True)) - 1


_BARE: dict[str, Callable[[Path], int]] = {
    "jsonl": _bare_jsonl,
    "jsonl.gz": _bare_jsonl,
    "json": _bare_json,
    "csv": _bare_csv,
    "tsv": _bare_csv,
    "ris": _bare_ris,
    "bib": _bare_bib,
    "xlsx": _bare_xlsx,
}


# --- Measuring ------------------------------------------------------------------------------


def _read(path: Path) -> int:
    return sum(isinstance(entry, Record) for entry in read_records(path))


def _rate(read: Callable[[Path], int], path: Path, count: int) -> float:
    """Records per second, the best of three."""
    best = float("inf")
    for _ in range(_TRIES):
        start = time.perf_counter()
        found = read(path)
        best = min(best, time.perf_counter() - start)
        if found != count:
            raise SystemExit(f"{path.name}: {found} of {count} records were read")
    return count / best


def _rates(path: Path, count: int) -> tuple[float, float | None]:
    bare = _BARE.get(path.name.split(".", 1)[1])
    try:
        rate = _rate(bare, path, count) if bare else None
    except ImportError:
        rate = None
    return _rate(_read, path, count), rate


def _peak(path: Path) -> float:
    """The most MiB of Python objects held at a time while all records are read."""
    tracemalloc.start()
    try:
        _read(path)
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=20_000, help="for the rates")
    parser.add_argument("--memory", default="1000,10000,100000", help="sizes for the memory")
    parser.add_argument("--formats", default=",".join(FORMATS))
    chosen = parser.parse_args()
    sizes = [int(size) for size in chosen.memory.split(",") if size]
    peaks = "".join(f"{f'MiB at {size:,}':>18}" for size in sizes)
    print(f"{'format':10}{'records/s':>12}{'bare parser/s':>16}{'time ratio':>12}{peaks}")
    with tempfile.TemporaryDirectory() as folder:
        for kind in chosen.formats.split(","):
            path = Path(folder) / f"papers.{kind}"
            write(path, chosen.records)
            rate, bare = _rates(path, chosen.records)
            row = f"{kind:10}{rate:12,.0f}"
            row += f"{bare:16,.0f}{bare / rate:12.2f}" if bare else f"{'-':>16}{'-':>12}"
            for size in sizes:
                write(path, size)
                row += f"{_peak(path):18.1f}"
            print(row, flush=True)


if __name__ == "__main__":
    main()
