"""Texts from the outside: tokenizers against Hugging Face's package, trainings on texts, and the page about
them."""
import json
import random
import re
import shlex
import shutil
import unicodedata

import numpy as np
import onnxruntime
import pytest
from conftest import ROOT, write_texts
from test_docs import blocks, commands
from test_train import assert_same_run
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SPECIAL = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>", "</s>"]
BYTES = [f"<0x{b:02X}>" for b in range(256)]
# As Llama 3 and GPT-4 cut texts.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@pytest.fixture(scope="module")
def corpus(data):
    """Lines of Shakespeare and short messages."""
    play = (data / "text/tinyshakespeare.txt").read_text().split("\n")
    messages = [line.split("\t", 1)[1] for line in (data / "text/sms-spam.tsv").read_text().split("\n")[1:] if "\t" in line]
    return play[:6000] + messages


@pytest.fixture(scope="module")
def lines(corpus, tmp_path_factory):
    """Texts to compare on, odd ones too, and a file of them."""
    draw = random.Random(1)
    odd = [c for c in range(1, 0x30000) if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) != "Cn"]
    pieces = [" ", "  ", "\t", "\n", "\r\n", "a", "B", "é", "e\u0301", "1", "Ⅷ", "½", "'s", "'ll", "...", "_", "-", "中", "\u00a0",
              "\u200d", "😀", "ß", "İ", "ﬁ", "한", "<s>", "[MASK]", "\x00", "\x1f", "\x7f", "\u0085", "\u2028", "<mask>", "Ça"]
    texts = draw.sample(corpus, 1000) + ["", " ", "  ", "\t", "\n\n", "a", "\x00", "it's they'll we'Re", "'s 's"]
    for _ in range(1000):
        texts.append("".join(draw.choice([chr(draw.choice(odd)), draw.choice(pieces)]) for _ in range(draw.randint(0, 20))))
    texts += [draw.choice(corpus) + end for end in ("", " ", "\t", " [MASK] ", "[MASK]", "<mask>  x") for _ in range(20)]
    path = tmp_path_factory.mktemp("lines") / "lines.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return texts, path


def bpe(corpus, normalizer=None, words=None, frame=None, decoder=None, special=SPECIAL, train={}, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer:
        tokenizer.normalizer = normalizer
    if words:
        tokenizer.pre_tokenizer = words
    letters = pre_tokenizers.ByteLevel.alphabet() if "ByteLevel" in repr(words) else []
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=special, initial_alphabet=letters, show_progress=False, **train)
    tokenizer.train_from_iterator(corpus, trainer)
    if frame:
        tokenizer.post_processor = frame(tokenizer)
    if decoder:
        tokenizer.decoder = decoder
    return tokenizer


def wordpiece(corpus, normalizer, words, frame=None, **model):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", **model))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, words
    tokenizer.train_from_iterator(corpus, trainers.WordPieceTrainer(vocab_size=900, special_tokens=SPECIAL, show_progress=False))
    tokenizer.decoder = decoders.WordPiece()
    if frame:
        tokenizer.post_processor = frame(tokenizer)
    return tokenizer


def template(t):
    ids = [(name, t.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    return processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids)


def truncated(corpus, **how):
    tokenizer = wordpiece(corpus, normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), template)
    tokenizer.enable_truncation(9, **how)
    return tokenizer


def with_added(corpus):
    tokenizer = wordpiece(corpus, normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), template)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("thou", single_word=True), AddedToken("Ça", normalized=True), AddedToken("ab"), AddedToken("abc", rstrip=True)])
    return tokenizer


P, N, D = pre_tokenizers, normalizers, decoders
TOKENIZERS = {
    "gpt2": lambda c: bpe(c, None, P.ByteLevel(add_prefix_space=False), lambda t: processors.ByteLevel(trim_offsets=False), D.ByteLevel()),
    "roberta": lambda c: bpe(c, None, P.ByteLevel(add_prefix_space=True),
                             lambda t: processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>"))), D.ByteLevel()),
    "llama3": lambda c: bpe(c, None, P.Sequence([P.Split(Regex(SPLIT), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)]),
                            template, D.ByteLevel(), ignore_merges=True),
    "llama2": lambda c: bpe(c, N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")]), None, None,
                            D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]), ["[UNK]", "<s>", "</s>", *BYTES],
                            unk_token="[UNK]", fuse_unk=True, byte_fallback=True),
    "first": lambda c: bpe(c, N.NFKC(), P.Metaspace(prepend_scheme="first"), None, D.Metaspace(prepend_scheme="first"), unk_token="[UNK]"),
    "always": lambda c: bpe(c, N.Sequence([N.NFD(), N.StripAccents(), N.Lowercase(), N.Strip()]), P.Metaspace(), None, D.Metaspace(),
                            unk_token="[UNK]", fuse_unk=True),
    "never": lambda c: bpe(c, N.NFC(), P.Metaspace(prepend_scheme="never", split=False), None, D.Metaspace(prepend_scheme="never"), unk_token="[UNK]"),
    "suffix": lambda c: bpe(c, N.NFKD(), P.Whitespace(), None, D.BPEDecoder(), train={"end_of_word_suffix": "</w>"}, unk_token="[UNK]",
                            end_of_word_suffix="</w>"),
    "prefix": lambda c: bpe(c, None, P.Sequence([P.WhitespaceSplit(), P.Digits(individual_digits=True), P.Punctuation("merged_with_previous")]),
                            train={"continuing_subword_prefix": "##"}, unk_token="[UNK]", continuing_subword_prefix="##"),
    "cut": lambda c: bpe(c, None, P.Sequence([P.Digits(individual_digits=False), P.Punctuation("contiguous"), P.CharDelimiterSplit(" ")])),
    **{b: lambda c, b=b: bpe(c, None, P.Split(Regex(r"\s|\d"), b), unk_token="[UNK]")
       for b in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")},
    "text": lambda c: bpe(c, None, P.Split(" ", "merged_with_next"), unk_token="[UNK]"),
    "inverted": lambda c: bpe(c, None, P.Split(Regex(r"\w+|[^\w\s]+"), "removed", invert=True), unk_token="[UNK]"),
    "replaced": lambda c: bpe(c, N.Sequence([N.Replace(Regex(r"\s{2,}"), " "), N.Replace("a", "o")]), P.Whitespace(), unk_token="[UNK]"),
    "bert": lambda c: wordpiece(c, N.BertNormalizer(), P.BertPreTokenizer(), template),
    "bert_cased": lambda c: wordpiece(c, N.BertNormalizer(lowercase=False), P.BertPreTokenizer(),
                                      lambda t: processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))),
    "bert_strip": lambda c: wordpiece(c, N.BertNormalizer(lowercase=False, strip_accents=True, clean_text=False, handle_chinese_chars=False),
                                      P.Whitespace()),
    "short_words": lambda c: wordpiece(c, N.Lowercase(), P.WhitespaceSplit(), max_input_chars_per_word=5),
    "truncated": lambda c: truncated(c),
    "truncated_left": lambda c: truncated(c, direction="left"),
    "added": with_added,
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_ids_and_texts_are_those_of_hugging_face(millrace, corpus, lines, tmp_path, name):
    texts, path = lines
    judge = TOKENIZERS[name](corpus)
    judge.save(str(tmp_path / "tokenizer.json"))
    for special in (False, True):
        if not special and judge.truncation:  # a longest length goes with what stands around a text
            continue
        options = ["--special"] if special else []
        found = json.loads(millrace("data", "tokens", path, "--tokenizer", tmp_path, "-n", len(texts), "--json", *options).stdout)
        ids = [row["ids"] for row in found["head"]]
        expected = [encoding.ids for encoding in judge.encode_batch(texts, add_special_tokens=special)]
        assert len(ids) == len(texts) and sum(map(len, ids)) == found["tokens"] > 10_000
        wrong = [(text, a, b) for text, a, b in zip(texts, ids, expected) if a != b]
        assert not wrong, (len(wrong), wrong[:3])
        assert [row["text"] for row in found["head"]] == judge.decode_batch(ids, skip_special_tokens=True)


def test_a_vocab_txt_is_berts_tokenizer(millrace, corpus, lines, tmp_path):
    texts, path = lines
    judge = wordpiece(corpus, N.BertNormalizer(), P.BertPreTokenizer(), template)
    names = sorted(judge.get_vocab(), key=judge.get_vocab().get)
    (tmp_path / "vocab.txt").write_text("".join(name + "\n" for name in names))
    found = json.loads(millrace("data", "tokens", path, "--tokenizer", tmp_path / "vocab.txt", "-n", len(texts), "--json", "--special").stdout)
    plain = [i for i, text in enumerate(texts) if "<s>" not in text]  # added to the judge's, a word here
    expected = judge.encode_batch(texts)
    assert [found["head"][i]["ids"] for i in plain] == [expected[i].ids for i in plain]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """corpus.txt and messages.tsv as docs/text.md has them, and its recipes."""
    folder = tmp_path_factory.mktemp("texts")
    write_texts(folder)
    for name, text in zip(("corpus", "messages"), blocks("docs/text.md", "toml")):
        (folder / f"{name}.toml").write_text(text)
    return folder


def test_commands_of_the_page_of_texts_run_in_their_order(millrace, desk):
    lines = commands("docs/text.md")
    assert len(lines) >= 7
    for line in lines:
        assert millrace(*shlex.split(line)[1:], cwd=desk).stdout, line
    found = json.loads(millrace("eval", "runs/spam", "--json", cwd=desk).stdout)
    assert 100 < found["targets"] < 260 and found["accuracy"] > 0.95


MODES = {
    "windows": ("corpus.toml", []),
    "packed": ("corpus.toml", ["input.sequences=packed"]),
    "spans": ("corpus.toml", ["input.masked=0.2 3", "model.kind=encoder", "model.dropout=0.1", "eval.metrics=[accuracy, perplexity]"]),
    "buckets": ("messages.toml", ["input.sequences=buckets 3", "train.accumulate=2", "model.dropout=0.1", "train.precision=fp16"]),
}


@pytest.mark.parametrize("mode", MODES)
def test_a_resumed_run_equals_the_uninterrupted_one(millrace, desk, tmp_path, mode):
    recipe, changes = MODES[mode]
    small = ["input.length=64", "model.width=16", "model.depth=1", "train.batch=8", "train.steps=24", "train.checkpoint_steps=5",
             "train.keep_checkpoints=50"]
    millrace("train", recipe, *small, *changes, "--out", tmp_path / "whole", cwd=desk)
    shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    for checkpoint in (tmp_path / "stopped/checkpoints").iterdir():
        if int(re.search(r"\d+", checkpoint.name)[0]) > 15:
            checkpoint.unlink()
    (tmp_path / "stopped/model.onnx").unlink()
    assert "going on from step 15 of 24" in millrace("train", tmp_path / "stopped", "--resume", "--threads", 1, cwd=desk).stdout
    assert_same_run(tmp_path / "whole", tmp_path / "stopped")


def test_texts_larger_than_memory_train_the_same(millrace, desk, tmp_path):
    small = ["input.length=64", "model.width=16", "model.depth=1", "train.batch=8", "train.steps=12"]
    environment = {"MILLRACE_CACHE": str(tmp_path / "cache")}
    files = tmp_path / "cache/tokens"
    for recipe in ("corpus.toml", "messages.toml"):
        losses, kept = [], []
        for name, change in (("memory", []), ("made", ["data.cache_mb=0"]), ("found", ["data.cache_mb=0"]), ("limit", ["data.memory=50MB"])):
            run = tmp_path / f"{recipe}-{name}"
            out = millrace("train", recipe, *small, *change, "--out", run, cwd=desk, env=environment).stdout
            assert name == "limit" or ("lie in" in out) == (name != "memory"), out
            losses.append([(m.get("loss"), m.get("test/log-loss")) for m in map(json.loads, (run / "metrics.jsonl").read_text().splitlines())])
            kept.append({(path.name, path.stat().st_mtime_ns) for path in files.iterdir()} if files.exists() else set())
        assert losses[0] == losses[1] == losses[2] == losses[3]
        assert kept[1] and kept[1] == kept[2]  # what was made is taken as it is


def test_other_texts_or_another_tokenizer_are_noticed_when_resuming(millrace, desk, tmp_path):
    for name in ("corpus.txt", "corpus.toml"):
        shutil.copy(desk / name, tmp_path)
    judge = bpe((desk / "corpus.txt").read_text().split("\n"), None, P.ByteLevel(add_prefix_space=False), None, D.ByteLevel())
    judge.save(str(tmp_path / "tokenizer.json"))
    small = ["train.steps=2", "input.tokenizer=tokenizer.json", "input.length=32", "train.batch=4"]
    millrace("train", "corpus.toml", *small, "--out", "run", cwd=tmp_path)
    corpus = (tmp_path / "corpus.txt").read_text()
    (tmp_path / "corpus.txt").write_text(corpus.replace("king", "wing", 1))
    assert "its content is not what the run was begun with" in millrace("train", "run", "--resume", cwd=tmp_path, code=1).stderr
    (tmp_path / "corpus.txt").write_text(corpus)
    millrace("eval", "run", cwd=tmp_path)
    (tmp_path / "tokenizer.json").write_text((tmp_path / "tokenizer.json").read_text().replace('"dropout"', ' "dropout"'))
    assert "is not the tokenizer that the run was begun with" in millrace("eval", "run", cwd=tmp_path, code=1).stderr


def test_bits_per_byte_do_not_depend_on_the_tokenizer(millrace, desk, tmp_path):
    """An untrained model with zero steps of information: log-loss is log(vocabulary), whatever a token stands
    for."""
    out = millrace("train", "corpus.toml", "train.steps=1", "train.optimizer.lr=0", "--out", tmp_path / "run", "--json", cwd=desk).stdout
    test = json.loads(out)["test"]
    assert test["perplexity"] == pytest.approx(np.exp(test["log-loss"]))
    assert test["bits-per-byte"] == pytest.approx(test["log-loss"] / np.log(2))
    assert test["log-loss"] == pytest.approx(np.log(256), abs=0.5)


def test_files_of_texts_are_predicted_as_evaluation_sees_them(millrace, desk, tmp_path):
    small = ["train.steps=20", "input.length=48", "data.test_share=0", "data.test=messages.tsv", "model.width=16"]
    run = tmp_path / "run"
    millrace("train", "messages.toml", *small, "--out", run, cwd=desk)
    evaluated = json.loads(millrace("eval", run, "--json", cwd=desk).stdout)
    rows = [json.loads(line) for line in millrace("predict", run, "messages.tsv", "--json", cwd=desk).stdout.splitlines()]
    lines = (desk / "messages.tsv").read_text().splitlines()[1:]
    truth = [["ham", "spam"].index(line.split("\t")[0]) for line in lines]
    logits = np.array([row["logits"] for row in rows])
    losses = np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1)) + logits.max(1) - logits[np.arange(len(truth)), truth]
    assert np.mean(losses) == pytest.approx(evaluated["log-loss"], rel=1e-12)
    # Lines of a plain file, and several kinds of arguments.
    (tmp_path / "lines.txt").write_text("".join(line.split("\t")[1] + "\n" for line in lines))
    plain = millrace("predict", run, tmp_path / "lines.txt", "you have won", "--json", cwd=desk).stdout.splitlines()
    assert [json.loads(line)["logits"] for line in plain[:-1]] == [row["logits"] for row in rows]
    assert json.loads(plain[-1])["input"] == "you have won"
    failed = millrace("predict", run, "nowhere.tsv", "you have won", cwd=desk, code=1)
    assert "nowhere.tsv: no such file" in failed.stderr and failed.stdout.startswith("you have won: ")


def test_a_model_of_the_next_token_says_what_comes_next(millrace, desk, tmp_path):
    run = tmp_path / "run"
    millrace("train", "corpus.toml", "train.steps=5", "model.width=16", "model.depth=1", "--out", run, cwd=desk)
    first = json.loads(millrace("predict", run, "the king", "--json", "--top", 256, cwd=desk).stdout)
    assert sum(token["probability"] for token in first["next"]) == pytest.approx(1)
    assert sorted(token["id"] for token in first["next"]) == list(range(256))
    line = millrace("predict", run, "the king", "--tokens", 5, cwd=desk).stdout
    assert line.startswith("the king" + first["next"][0]["token"])
    assert json.loads(millrace("predict", run, "the king", "--json", "--tokens", 5, cwd=desk).stdout)["continuation"] == line[8:-1]
    assert "measures how well a file is predicted" in millrace("predict", run, "corpus.txt", cwd=desk, code=1).stderr
    assert "an empty text" in millrace("predict", run, "", cwd=desk, code=1).stderr


@pytest.mark.parametrize("model", ["model.depth=1", "model={kind=bag, width=8, ngrams=5, ngram_rows=1000}"])
def test_an_exported_model_of_texts_gives_the_same_in_onnx_runtime(millrace, desk, tmp_path, model):
    millrace("train", "messages.toml", model, "train.steps=30", "input.length=48", "--out", tmp_path / "run", cwd=desk)
    text = "the king of no land win a prize"
    mine = json.loads(millrace("predict", tmp_path / "run", text, "--json", cwd=desk).stdout)
    session = onnxruntime.InferenceSession(tmp_path / "run/model.onnx")
    tokens = np.zeros((1, 48), np.int64)
    tokens[0, : len(text)] = list(text.encode())
    segments = (np.arange(48) < len(text)).astype(np.int64)[None]
    theirs = session.run(None, {"tokens": tokens, "segments": segments})[0][0]
    np.testing.assert_allclose(mine["logits"], theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_recurrent_models_see_no_padding(millrace, desk, tmp_path, kind):
    """Rows give the same whatever stands in their padding, and however long that is: ONNX Runtime gets 256,
    the program less."""
    run = tmp_path / kind
    model = f"model={{kind={kind}, width=16, embedding=8, bidirectional=true}}"
    metrics = json.loads(millrace("train", "messages.toml", model, "train.steps=30", "train.batch=16", "--out", run, "--json", cwd=desk).stdout)
    assert 0 < metrics["test"]["log-loss"] < 1
    texts = ["the king sings", "no land never sleeps win a prize"]
    session = onnxruntime.InferenceSession(run / "model.onnx")
    logits = []
    for padding in (65, 90):
        tokens, segments = np.full((2, 256), padding), np.zeros((2, 256), np.int64)
        for i, text in enumerate(texts):
            tokens[i, :len(text)], segments[i, :len(text)] = list(text.encode()), 1
        logits.append(session.run(["logits"], {"tokens": tokens, "segments": segments})[0])
    np.testing.assert_allclose(logits[0], logits[1], atol=1e-6)
    rows = [json.loads(line) for line in millrace("predict", run, *texts, "--json", cwd=desk).stdout.splitlines()]
    for row, own in zip(rows, logits[0]):
        np.testing.assert_allclose(row["logits"], own, atol=1e-5)


def test_texts_that_a_model_writes_are_judged(millrace, desk, tmp_path):
    small = ["input.length=32", "model.width=16", "model.depth=1", "train.batch=8", "train.steps=12", "eval.generated=6"]
    millrace("train", "corpus.toml", *small, "eval.metrics=[log-loss, bleu, chrf, rouge-l, wer, cer]", "--out", tmp_path / "run", cwd=desk)
    first, second = (json.loads(millrace("eval", tmp_path / "run", "--json", cwd=desk).stdout) for _ in range(2))
    assert {k: v for k, v in first.items() if k != "seconds"} == {k: v for k, v in second.items() if k != "seconds"}
    assert 0 <= first["bleu"] <= first["chrf"] < 60 and 0 <= first["rouge-l"] < 1 and 0.3 < first["cer"] < 3
    (tmp_path / "a.txt").write_text("the cat sat on a mat today\nno\n")
    (tmp_path / "b.txt").write_text("the cat sat on the mat\nyes\n")
    found = json.loads(millrace("eval", tmp_path / "a.txt", "--references", tmp_path / "b.txt", "--json").stdout)
    assert found["wer"] == pytest.approx(3 / 7) and found["rouge-1"] == pytest.approx(5 / 13)
    same = json.loads(millrace("eval", tmp_path / "b.txt", "--references", tmp_path / "b.txt", "--json").stdout)
    assert same["bleu"] == pytest.approx(100) and same["chrf"] == pytest.approx(100) and same["wer"] == same["cer"] == 0
    (tmp_path / "c.txt").write_text("one\n")
    assert "has 1 lines" in millrace("eval", tmp_path / "c.txt", "--references", tmp_path / "b.txt", code=1).stderr


def test_examples_of_texts_learn(millrace, data, tmp_path):
    environment = {"MILLRACE_DATA": str(data)}
    spam = json.loads(millrace("train", "examples/sms-spam.toml", "train.epochs=1", "--out", tmp_path / "spam", "--json", env=environment).stdout)
    assert spam["test"]["accuracy"] > 0.95  # 87 % are ham
    (tmp_path / "draft.toml").write_text(millrace("init", data / "text/sms-spam.tsv").stdout)
    draft = json.loads(millrace("train", tmp_path / "draft.toml", "--out", tmp_path / "draft", "--json").stdout)
    assert draft["test"]["accuracy"] > 0.98
    runs = json.loads(millrace("train", "examples/sms-ngrams.toml", "--out", tmp_path / "runs", "--json", env=environment).stdout)
    assert runs["test"]["f1"] > 0.95
    play = json.loads(millrace("train", "examples/shakespeare.toml", "train.steps=100", "train.batch=8", "model.depth=2", "--out", tmp_path / "play", "--json",
                               env=environment).stdout)
    assert play["test"]["bits-per-byte"] < 4.7  # 4.82 is what the letters' frequencies alone give
    pairs = json.loads(millrace("train", "examples/shakespeare-bpe.toml", "train.steps=220", "train.batch=8", "model.depth=1", "--out", tmp_path / "pairs", "--json",
                                env=environment).stdout)
    assert pairs["test"]["bits-per-byte"] < 3.35  # 3.43 is what the pairs' frequencies alone give


def test_recipes_of_texts_that_make_no_sense_are_refused(millrace, desk):
    def error(recipe, *changes):
        return millrace("explain", recipe, *changes, cwd=desk, code=1).stderr

    letters = ROOT / "examples/letters.toml"
    assert "input.augment means nothing to input.kind = 'tokens'" in error("corpus.toml", "input.augment=[flip]")
    assert "input.sequences means nothing to input.kind = 'picture'" in error(letters, "input.sequences=packed")
    assert "'bits-per-byte' does not apply to output, of kind class" in error(letters, "eval.metrics=[bits-per-byte]")
    assert "'bites'" in error("corpus.toml", "input.tokenizer=bites")
    assert "input.masked" in error("corpus.toml", "model.kind=encoder")
    assert "predicts the next token" in error("messages.toml", "model.kind=gpt")
    assert '"padded"' in error("messages.toml", "input.sequences=packed")
    assert "both say what to test on" in error("corpus.toml", "data.test=corpus.txt")
    assert '"buckets 4"' in error("messages.toml", "input.sequences=bags 3")
    assert "lengths must ascend" in error("messages.toml", "input.sequences=buckets 64 32 256")
    assert "the longest bucket must be" in error("messages.toml", "input.sequences=buckets 32 64")
    assert "batch of" in error("corpus.toml", "input.length=4096")
    assert "column 'nothing'" in error("messages.toml", "input.column=nothing")
    assert "does not go with input" in error("corpus.toml", "model={kind=resnet18}")
    assert "cannot be divided among" in error("corpus.toml", "model.heads=3")
    assert "label" in error("messages.toml", "data.sample_weight=label")
    assert "weights are numbers" in error("corpus.toml", "data.sample_weight=text")
    streamed = ("data.stream=true", "data.order=sequential", "data.epoch_samples=100")
    assert "of a stream nothing can be kept to test on" in error("messages.toml", *streamed)
    assert 'input.sequences = "padded"' in error("messages.toml", *streamed, "data.test_share=0", "data.test=messages.tsv", "input.sequences=buckets 4")
    assert 'input.sequences = "padded"' in error("corpus.toml", *streamed, "data.test_share=0", "data.train=messages.tsv", "input.sequences=packed", "input.column=message", "eval.metrics=[]")
    masked = ("model.kind=encoder", "input.masked=0.15 3", "input.length=1")
    assert "nothing can be masked" in error("corpus.toml", *masked, "eval.metrics=[log-loss]")
    assert "gives classes, it cannot predict tokens" in error("corpus.toml", "model={kind=lstm}", "input.sequences=packed")
    assert "takes rows without padding only" in error("corpus.toml", "model={kind=gpt_mini}", "input.sequences=packed")
    assert "eval.metrics: bleu is of models that predict the next token" in error("corpus.toml", *masked[:2], "input.length=64", "eval.metrics=[bleu]")
    assert "data.tokenizer is now input.tokenizer" in error("corpus.toml", "data.tokenizer=byte")


def test_rows_of_texts_are_shown_as_words(millrace, desk):
    shown = millrace("data", "show", "corpus.toml", "-n", 3, cwd=desk).stdout
    line = max((desk / "corpus.txt").read_text().splitlines(), key=len)[:20]
    assert any(word in shown for word in ("king", "never", line))
    shown = millrace("data", "show", "messages.toml", "-n", 32, "--step", 3, cwd=desk).stdout
    assert "ham" in shown and "spam" in shown and "win a prize" in shown
