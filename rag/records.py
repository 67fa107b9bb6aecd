"""Record: one abstract with what is known of its paper, and how it is identified."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """Where a record was read: a file and the record's place in it, counted from 1."""

    path: str
    ordinal: int


@dataclass(frozen=True, slots=True)
class Record:
    """One abstract.

    `abstract` is the source's text without what its export added (rag.sources.cleaning);
    every offset in this project counts characters of it. Text fields that a source lacks
    are empty, a missing `year` is None. `source` is where the record was first read;
    `sources` holds the further places of a merged record.
    """

    id: str
    abstract: str
    source: Source
    title: str = ""
    authors: tuple[str, ...] = ()
    year: int | None = None
    venue: str = ""
    doi: str = ""
    url: str = ""
    keywords: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()

    @property
    def label(self) -> str:
        """What to show in a list: the title, else a short label made from the text."""
        return self.title or derived_label(self.abstract)


def content_id(
    abstract: str,
    doi: str = "",
    *,
    arxiv_id: str = "",
    title: str = "",
    authors: Sequence[str] = (),
) -> str:
    """A stable id: the DOI's, else the arXiv id's, else the content's.

    The content is the abstract's words, with the title and the first author where they are
    known: two papers may share an abstract, or a title. Case, white space and Unicode
    composition do not count. The DOI that arXiv gives a paper is its arXiv id, and versions
    are one paper. 16 hexadecimal digits.
    """
    registered = _ARXIV_DOI.fullmatch(doi)
    arxiv_id = registered[1] if registered else arxiv_id
    if doi and not registered:
        identity = "doi:" + doi.casefold()
    elif arxiv_id:
        identity = "arxiv:" + _VERSION.sub("", arxiv_id.casefold())
    else:
        words = " ".join(unicodedata.normalize("NFKC", abstract).casefold().split())
        identity = "\n".join(filter(None, (words, plain_words(title), family_name(authors))))
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def same_paper_key(record: Record) -> str:
    """Equal for records of one paper that have no common DOI or arXiv id: the title's words
    and the first author's family name. Empty, which is no key, when either is missing or the
    title is one word, such as "Editorial", which many papers have."""
    title, family = plain_words(record.title), family_name(record.authors)
    return f"{title}|{family}" if " " in title and family else ""


_ARXIV_DOI = re.compile(r"10\.48550/arxiv\.(.+)", re.IGNORECASE)
_VERSION = re.compile(r"v\d+$")
GENERATION = re.compile(r"(?:jr|sr|[1-9](?:st|nd|rd|th)|i{1,3}|iv|vi{0,3})", re.IGNORECASE)
_TEX_COMMAND = re.compile(r"\\[A-Za-z]+\*?")


def plain_words(text: str) -> str:
    """Letters and digits in lower case, without accents; words parted by one space."""
    decomposed = unicodedata.normalize("NFKD", _TEX_COMMAND.sub(" ", text)).casefold()
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    return " ".join(re.findall(r"[^\W_]+", letters))


def family_name(authors: Sequence[str]) -> str:
    """The last word of the first author's family name, however the name is ordered.

    "Wilson, Lauren N.", "Lauren N. Wilson", "Wilson L.N." and "WILSON LN" are one; so are
    "Beethoven, Ludwig van" and "Ludwig van Beethoven".
    """
    if not authors:
        return ""
    family, comma, _ = authors[0].partition(",")
    split = family.split()
    words = [word for word in split if not GENERATION.fullmatch(word.strip("."))] or split
    if not comma:
        while len(words) > 1 and is_initials(words[-1]):
            words.pop()
    plain = [found for word in words if (found := plain_words(word))]
    return plain[-1].split()[-1] if plain else ""


def is_initials(word: str) -> bool:
    """Whether a word of a name is one to three initials: "J.R.", "LN"; "Li" and 王 are none."""
    letters = [char for char in word if char.isalpha()]
    return 0 < len(letters) <= 3 and word == word.upper() and not _is_syllabic(letters)


def _is_syllabic(letters: Sequence[str]) -> bool:
    """Whether these are characters of a script without case: 王 is no initial."""
    return any(char.upper() == char.lower() for char in letters)


# A name is spelt like one: SOREL, UniMatch, Water-Probe, ZO-PoG. TeX and Markdown around it
# ("\textit{InterLCM}", "**A-Bench**") do not belong to it.
_MARKUP = r"[*_$\\{}]*(?:text\w+\{|math\w+\{)?"
_NAME = (
    r"([A-Z]\w*[A-Z]\w*(?:-\w+)*|[A-Z][a-z]+[A-Z0-9]\w*(?:-\w+)*|[a-z]+[A-Z]\w*|"
    r"[A-Z]\w*(?:-[A-Z]\w*)+)(?![\w-])"
)
# Where abstracts introduce a name: "we propose SOREL", "called Water-Probe", "Universal
# Matching Networks (UniMatch)", "a new framework, GrokTransfer, that".
_INTRODUCTIONS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:call(?:ed)?|name[ds]?|termed|dubbed)(?: it| this \w+)? {_MARKUP}{_NAME}",
        r"\b(?:propos|introduc|present|develop|devis|design)\w* "
        rf"(?:the |an? |our |novel |new )*{_MARKUP}{_NAME}(?! [a-z]*(?:based|specific))",
        r"\b(?:propos|introduc|present|develop|devis|design)\w* [^.()]{0,120}"
        rf"[A-Z][^.()]{{3,60}} ?\({_MARKUP}{_NAME}[^\w\s]*\)",
        r"\b(?:propos|introduc|present|develop|devis|design)\w* [^.()]{0,120}"
        rf"(?:, |: |-- ?|— ?){_MARKUP}{_NAME}[*_$}}]*[,.:]",
    )
)
_COMMON_ACRONYMS = frozenset(
    "AI API BERT CNN CNNs CPU DNN DNNs GAN GANs GNN GNNs GPT GPU GPUs GT GTs ICLR LLM LLMs LM "
    "LMs LoRA LSTM MDP ML MLLM MLLMs MLP MLPs MLLMs NLP ODE ODEs PDE PDEs QA RL RLHF RNN RNNs "
    "ReLU SDE SGD SMC SOTA SSM SSMs SVD VAE VAEs VLM VLMs ViT ViTs 2D 3D".split()
)
_CLAIM = re.compile(
    r"\b(?:in this (?:paper|work|study)|we (?:propose|introduce|present|show|study|prove|develop|"
    r"investigate|find|explore)|this (?:paper|work|study)|here,? we)\b",
    re.IGNORECASE,
)
_LABEL_LENGTH = 72


def derived_label(abstract: str) -> str:
    """A short label for a record without a title.

    The name of the system or data set that the abstract introduces, if it introduces one,
    else the start of its main claim, cut at a word and ended by an ellipsis.
    """
    return _introduced_name(abstract) or _claim_start(abstract)


def _introduced_name(abstract: str) -> str:
    found = [
        (match.start(), match.group(1))
        for pattern in _INTRODUCTIONS
        for match in pattern.finditer(abstract)
        if match.group(1) not in _COMMON_ACRONYMS
    ]
    return min(found)[1] if found else ""


def _claim_start(abstract: str) -> str:
    claim = _CLAIM.search(abstract)
    text = " ".join(abstract[claim.start() if claim else 0 :].split())
    text = text[:1].upper() + text[1:]
    if len(text) <= _LABEL_LENGTH:
        return text
    return text[: _LABEL_LENGTH + 1].rsplit(" ", 1)[0].rstrip(",;:") + "…"
