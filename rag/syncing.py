"""What must change in the index, from what it holds and what was read. Writes nothing."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from rag.errors import UsageError
from rag.lexical import Entry
from rag.papers import Version, papers
from rag.reading import Reading
from rag.records import Source
from rag.sources import Skip

# Of a stored version: whether it is still to be counted.
Keep = Callable[[Version], bool]


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps from what the index holds to what it should hold, in ids of papers.

    wanted:   the versions of each paper that should be there
    held:     the number of passages and of sentences of each paper that is there
    new:      papers to add, in order
    touched:  papers that are there but whose versions, or their places, have changed
    gone:     papers to remove
    edited:   those of `new` that are one of `gone` with other words
    read:     papers that were read now
    skips:    what was not read, or is the same as something else
    """

    wanted: Mapping[str, list[Version]]
    held: dict[str, tuple[int, int]]
    new: tuple[str, ...]
    touched: tuple[str, ...]
    gone: tuple[str, ...]
    edited: frozenset[str]
    read: frozenset[str]
    skips: tuple[Skip, ...]


def plan_sync(reading: Reading, entries: Iterable[Entry], keep_missing: bool) -> Plan:
    """Versions at the places that were read give way to those read there now."""
    stored = _Stored.of(entries)
    here = {
        (known, version.source.path)
        for version in reading.versions
        for known in (version.id, version.key)
        if known
    }
    ids = {version.id for versions in stored.versions.values() for version in versions}
    # Untitled entries have only their place to tell an edit from another paper.
    replaced = {
        version.source for version in reading.versions if version.id not in ids and not version.key
    }

    def keep(version: Version) -> bool:
        path = version.source.path
        if not reading.covers(path):
            return True
        if not (keep_missing or reading.is_broken(path)):
            return False
        again = (version.id, path) in here or (version.key, path) in here
        return not again and version.source not in replaced

    return _plan(stored, keep, reading)


def plan_removal(sources: Iterable[str], entries: Iterable[Entry]) -> Plan:
    """Everything read from `sources`, files or folders, goes.

    Raises UsageError, naming the near ones, when nothing was read from one of them.
    """
    stored = _Stored.of(entries)
    paths = sorted({v.source.path for versions in stored.versions.values() for v in versions})
    leaving: set[str] = set()
    for source in sources:
        place = str(Path(source).expanduser().resolve())
        found = [path for path in paths if path == source or PurePath(path).is_relative_to(place)]
        if not found:
            raise UsageError(f"nothing was read from {source}; {_near(place, paths)}")
        leaving.update(found)
    return _plan(stored, lambda version: version.source.path not in leaving)


@dataclass(frozen=True, slots=True)
class _Stored:
    """What the index holds, without the texts: versions and numbers of chunks by paper id."""

    versions: Mapping[str, list[Version]]
    chunks: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> _Stored:
        versions: dict[str, list[Version]] = {}
        chunks: dict[str, tuple[int, int]] = {}
        for entry in entries:
            home = entry.record.id
            chunks[home] = (entry.passages, entry.sentences)
            versions[home] = [
                Version.of(record, home=home) for record in entry.versions or (entry.record,)
            ]
        return cls(versions, chunks)


def _plan(stored: _Stored, keep: Keep, reading: Reading | None = None) -> Plan:
    read = reading.versions if reading else []
    kept = (v for versions in stored.versions.values() for v in versions if keep(v))
    # An interrupted sync may have left a version in two papers.
    wanted = papers({(v.id, v.source): v for v in (*kept, *read)}.values())
    new = tuple(id_ for id_ in wanted if id_ not in stored.versions)
    gone = tuple(id_ for id_ in stored.versions if id_ not in wanted)
    read_now = {id_: [v for v in group if v.offset >= 0] for id_, group in wanted.items()}
    merges = [skip for group in read_now.values() for skip in _merges(group)]
    return Plan(
        wanted=wanted,
        held=stored.chunks,
        new=new,
        touched=tuple(
            id_
            for id_, group in wanted.items()
            if id_ in stored.versions and _facts(group) != _facts(stored.versions[id_])
        ),
        gone=gone,
        edited=_edited({id_: wanted[id_] for id_ in new}, [stored.versions[id_] for id_ in gone]),
        read=frozenset(id_ for id_, group in read_now.items() if group),
        skips=(*(reading.skips if reading else ()), *merges),
    )


def _facts(versions: Iterable[Version]) -> set[tuple[str, bytes, Source]]:
    return {(version.id, version.digest, version.source) for version in versions}


def _edited(new: Mapping[str, list[Version]], gone: Iterable[list[Version]]) -> frozenset[str]:
    """The new papers that stand at the place of one that is gone, or have the title and first
    author of one, each paired with another."""
    known = {mark: id_ for id_, group in new.items() for v in group for mark in _marks(v)}
    edited: set[str] = set()
    for group in gone:
        marks = [mark for version in group for mark in _marks(version)]
        here = {known[mark] for mark in marks if mark in known} - edited
        edited |= set(sorted(here)[:1])
    return frozenset(edited)


def _marks(version: Version) -> list[Source | str]:
    return [version.source, version.key] if version.key else [version.source]


def _merges(read: list[Version]) -> list[Skip]:
    """A Skip for each version but the first of those read of one paper."""
    first = read[0].source if read else None
    return [
        Skip(
            version.source.path,
            f"entry {version.source.ordinal}",
            f"the same paper as {first.path} entry {first.ordinal}; kept once, with both places",
        )
        for version in read[1:]
        if first
    ]


def _near(place: str, paths: list[str]) -> str:
    if not paths:
        return "the index has no sources"
    folders = sorted({str(PurePath(path).parent) for path in paths})
    near = difflib.get_close_matches(place, [*paths, *folders], n=3, cutoff=0.5)
    name = PurePath(place).name
    near += [path for path in paths if PurePath(path).name == name and path not in near]
    return f"its sources are {', '.join(near[:3] or paths[:3])}{'' if near else ' …'}"
