from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import planted
import pytest
from conftest import SAMPLE

from rag.verification import ENOUGH_SUPPORT, Verifier, carries_claim

ABSTRACTS = [record.abstract for record in planted.records(SAMPLE)]
RIGHTS = tuple(planted.right_pairs(ABSTRACTS))


def supports(sentence: str, *quotes: str, context: str = "") -> bool:
    return Verifier().verify(sentence, quotes, context).supported


def test_planted_mistakes_are_flagged() -> None:
    wrongs = list(planted.wrong_pairs([p for p in RIGHTS if p.kind == "itself"][::2], ABSTRACTS))
    verifier = Verifier()
    for kind in sorted({pair.kind for pair in wrongs}):
        of_kind = [pair for pair in wrongs if pair.kind == kind]
        flagged = sum(
            verifier.verify(p.sentence, p.quotes, p.abstract).support < ENOUGH_SUPPORT
            for p in of_kind
        )
        assert flagged >= 0.95 * len(of_kind), kind
    assert len(wrongs) >= 100
    assert len({pair.kind for pair in wrongs}) == 5


def test_what_a_quote_says_is_not_flagged_when_it_is_put_otherwise() -> None:
    verifier = Verifier()
    flagged = [p for p in RIGHTS if not verifier.verify(p.sentence, p.quotes, p.abstract).supported]
    assert len(flagged) <= 0.05 * len(RIGHTS)
    assert not [pair for pair in flagged if pair.kind == "itself"]


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("It saves 25% of memory.", r"It saves $25\%$ of memory."),
        ("It has 2864 images.", "It has 2,864 images."),
        ("It has 3.5 million rows.", "It has 3.5M rows."),
        ("It has about 3.5 million rows.", "It has 3,512,400 rows."),
        ("It is twice as fast.", r"It is 2$\times$ as fast."),
        ("It is 7x faster.", r"It is up-to 7$\times$ faster."),
        ("It keeps half of the weights.", "It keeps 50% of the weights."),
        ("It has two stages.", "It has 2 stages."),
        ("A 4-bit model runs.", "A 4 bit model runs."),
        ("The rate is under 50%.", r"The rate is $<50\%$."),
    ],
)
def test_numbers_agree_however_they_are_written(sentence: str, quote: str) -> None:
    assert supports(sentence, quote)


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("tau-bench tests agents.", r"$\tau$-bench tests agents."),
        ("τ-bench tests agents.", r"$\tau$-bench tests agents."),
        ("Agents such as GPT-4o fail on tasks.", "Agents (gpt-4o) fail on tasks."),
        ("C4n sparsity prunes weights.", r"$\mathbf{C}_4^n$ sparsity prunes weights."),
        ("It uses LLMs for tasks.", "It uses large language models for tasks."),
        ("Sequential Monte Carlo samples it.", "SMC samples it: Sequential Monte Carlo."),
        ("The Schrodinger bridge‐like flow works.", "The Schrödinger bridge-like flow works."),
    ],
)
def test_names_agree_however_they_are_written(sentence: str, quote: str) -> None:
    assert supports(sentence, quote)


def test_a_name_may_come_from_the_abstract_around_but_not_from_nowhere() -> None:
    quote = "The algorithm converges in 40 rounds on graphs."
    assert supports("SOREL converges in 40 rounds.", quote, context=f"We propose SOREL. {quote}")
    assert not supports("SOREL converges in 40 rounds.", quote, context=quote)


def test_a_number_may_not_come_from_the_abstract_around() -> None:
    quote = "The algorithm converges on graphs."
    assert not supports("It converges in 40 rounds.", quote, context=f"{quote} In 40 rounds.")


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("It works with no training.", "It is a training-free method that works."),
        ("It never needs labels.", "It works without labels."),
        ("It cannot go back in time.", "It has the inability to go back in time."),
        ("Not only speed but also quality improves.", "Speed and quality improve."),
        ("It avoids the loss of quality.", "It works without loss of quality."),
        ("It beats the baselines.", "It outperforms the baselines."),
        ("It lowers the error.", "It reduces the error."),
    ],
)
def test_negations_and_directions_may_be_put_otherwise(sentence: str, quote: str) -> None:
    assert supports(sentence, quote)


@pytest.mark.parametrize(
    ("sentence", "quote", "fault"),
    [
        (
            "It saves 45% of memory.",
            "It saves 25% of memory.",
            "the number 45% is not in the quote",
        ),
        ("It has three stages.", "It has two stages.", "“three”"),
        ("HyperFace prunes weights.", "Wanda prunes weights.", "the name HyperFace"),
        ("It does not need labels.", "It needs labels.", "does not say “not”"),
        ("The selection is compute-optimal.", "The selection is never compute-optimal.", "“not”"),
        (
            "It increases the error rate.",
            "It reduces the error rate.",
            "“reduces”, not “increases”",
        ),
        ("It is slower than baselines.", "It is faster than baselines.", "“faster”"),
        ("It works above 50% noise.", "It works below 50% noise.", "bounds 50"),
        ("The agents are consistent.", "The agents are inconsistent.", "“inconsistent”"),
    ],
)
def test_a_fault_says_what_is_wrong(sentence: str, quote: str, fault: str) -> None:
    verdict = Verifier().verify(sentence, [quote])
    assert fault in "; ".join(verdict.faults)
    assert verdict.support < ENOUGH_SUPPORT


def test_words_are_weighed_by_how_rare_they_are() -> None:
    text, quote = "Bottleneck rewiring helps models.", "Rewiring the bottleneck is done."
    rare = {"bottleneck": 9.0, "rewir": 9.0}
    weighed = Verifier(idf=lambda stem: rare.get(stem, 1.0)).verify(text, [quote])
    assert weighed.support > Verifier().verify(text, [quote]).support


def test_the_embedding_is_asked_only_where_words_leave_doubt_and_once() -> None:
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> np.ndarray:
        asked.extend(texts)
        return np.tile(np.array([1.0, 0.0], dtype=np.float32), (len(texts), 1))

    quote = "Cheap selectors of training data win over strong ones."
    verifier = Verifier(embed=embed, vectors={quote: np.array([1.0, 0.0], dtype=np.float32)})
    assert verifier.verify("Cheap selectors of data win.", [quote]).supported
    assert verifier.verify("Paris lies on a river.", [quote]).support == 0.0
    assert asked == []
    doubtful = "Cheap alternatives dominate in selecting."
    assert verifier.verify(doubtful, [quote]).supported
    assert verifier.verify(doubtful, [quote]).supported
    assert asked == [doubtful]


@pytest.mark.parametrize(
    ("sentence", "supported", "compared"),
    [
        ("A-Bench 采样了 16 个文生图模型生成的 2,864 张图像。", True, True),
        ("A-Bench 采样了 16 个文生图模型生成的 2,964 张图像。", False, True),
        ("HyperFace 采样了 16 个文生图模型。", False, True),
        ("图像由人工标注。", True, False),
        ("A-Bench enthält 2.864 Bilder, die von 16 Modellen erzeugt sind.", True, True),
        ("A-Bench contient 2 964 images générées par les modèles.", False, True),
    ],
)
def test_another_language_is_compared_by_numbers_and_names(
    sentence: str, supported: bool, compared: bool
) -> None:
    quote = "A-Bench samples 2,864 AIGIs from 16 text-to-image models."
    verdict = Verifier().verify(sentence, [quote])
    assert (verdict.supported, verdict.compared) == (supported, compared)


def test_nothing_is_supported_by_nothing() -> None:
    assert Verifier().verify("It works.", []).support == 0.0


@pytest.mark.parametrize(
    ("sentence", "claims"),
    [("Here are the papers:", False), ("Yes.", False), ("It converges.", True), ("一样。", True)],
)
def test_what_carries_a_claim(sentence: str, claims: bool) -> None:
    assert carries_claim(sentence) is claims
