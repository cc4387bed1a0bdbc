#include "data/codecs/text/tokenizer.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <thread>

#include <millrace/error.h>

using namespace millrace;
using namespace millrace::data;
using nlohmann::json;

namespace {

using Ids = std::vector<int32_t>;

/// BPE of letters and three merges.
json small() {
  return json::parse(R"({
    "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2, "c": 3, "ab": 4, "abc": 5, "aa": 6},
              "merges": ["a b", ["ab", "c"], "a a"]}})");
}

std::shared_ptr<const Tokenizer> make(const json& file) {
  return parse_tokenizer_json(file.dump(), "t.json");
}

std::shared_ptr<const Tokenizer> with(const char* key, const char* value) {
  json file = small();
  file[key] = json::parse(value);
  return make(file);
}

}  // namespace

TEST_CASE("bytes are their own ids") {
  const auto bytes = byte_tokenizer();
  const std::string text = "a\xff\xc3\xa9\0\n";
  CHECK(bytes->encode(text) == Ids{'a', 255, 0xc3, 0xa9});
  CHECK(bytes->decode(bytes->encode(text), true) == text);
  CHECK(bytes->size() == 256);
}

TEST_CASE("BPE merges the lowest rank first, the first of equals") {
  const auto bpe = make(small());
  CHECK(bpe->encode("abc") == Ids{5});
  CHECK(bpe->encode("aabc") == Ids{1, 5});
  CHECK(bpe->encode("aaa") == Ids{6, 1});
  CHECK(bpe->encode("aaab") == Ids{6, 4});
  CHECK(bpe->encode("x") == Ids{0});
  CHECK(bpe->encode("xyab") == Ids{0, 0, 4});
  CHECK(bpe->encode("").empty());
  CHECK(bpe->token(5) == "abc");
  CHECK(bpe->token(99).empty());
  CHECK(bpe->id("ab") == 4);
  json fused = small();
  fused["model"]["fuse_unk"] = true;
  CHECK(make(fused)->encode("xyab") == Ids{0, 4});
}

TEST_CASE("long words take time in proportion to their length") {
  // Without a pre-tokeniser a whole text is one word: with a quadratic merge this would take minutes.
  const auto bpe = make(small());
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += "aabc"[i % 4];
  const Ids ids = bpe->encode(text);
  CHECK(ids.size() == 500'000);
  CHECK(bpe->encode(std::string(1'000'000, 'a')).size() == 500'000);
}

TEST_CASE("ill-formed bytes are taken as U+FFFD") {
  json file = small();
  file["model"]["vocab"]["\xef\xbf\xbd"] = 7;
  const auto bpe = make(file);
  CHECK(bpe->encode("a\xff"
                    "b") == Ids{1, 7, 2});
  CHECK(bpe->encode("a\xe4\xb8"
                    "b") == Ids{1, 7, 2});             // the beginning of a character is one
  CHECK(bpe->encode("\xed\xa0\x80") == Ids{7, 7, 7});  // a surrogate is not
}

TEST_CASE("many threads get what one gets") {
  const auto bpe = with("pre_tokenizer", R"({"type": "Whitespace"})");
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i)
    texts.push_back(std::string(static_cast<size_t>(i % 17), "abc"[i % 3]) + " aabc b" + std::to_string(i));
  std::vector<Ids> expected;
  for (const std::string& text : texts) expected.push_back(make(small())->encode(text));
  expected.clear();
  for (const std::string& text : texts) expected.push_back(bpe->encode(text));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (size_t i = 0; i < texts.size(); ++i) wrong += bpe->encode(texts[i]) != expected[i];
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("added tokens are found before all else, the longest one, and their neighbours as they say") {
  const auto bpe = with("added_tokens", R"([
    {"id": 7, "content": "<m>", "lstrip": true, "rstrip": false, "special": true, "normalized": false},
    {"id": 8, "content": "<mm>", "special": false, "normalized": false},
    {"id": 9, "content": "abab", "single_word": true}])");
  CHECK(bpe->size() == 10);
  CHECK(bpe->encode("ab <m>ab") == Ids{4, 7, 4});
  CHECK(bpe->encode("<mm><m>") == Ids{8, 7});
  CHECK(bpe->encode("abab") == Ids{9});
  CHECK(bpe->encode("abababc") == Ids{4, 4, 5});
  CHECK(bpe->decode(Ids{4, 7, 8}, true) == "ab <mm>");
  CHECK(bpe->decode(Ids{4, 7, 8}, false) == "ab <m> <mm>");
}

TEST_CASE("a template stands around a text only where it is asked for, within the longest length") {
  json file = small();
  file["post_processor"] = json::parse(
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "c", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
          {"SpecialToken": {"id": "b", "type_id": 0}}], "special_tokens": {"c": {"id": "c", "ids": [3]}, "b": {"id": "b", "ids": [2]}}})");
  CHECK(make(file)->encode("aa") == Ids{3, 6, 2});
  CHECK(make(file)->encode("aa", false) == Ids{6});
  file["truncation"] =
      json::parse(R"({"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Left"})");
  CHECK(make(file)->encode("abxaa") == Ids{3, 0, 6, 2});
  CHECK(make(file)->encode("abxaa", false) == Ids{4, 0, 6});
  file["truncation"]["direction"] = "Right";
  CHECK(make(file)->encode("abxaa") == Ids{3, 4, 0, 2});
  file["truncation"]["max_length"] = 1;
  CHECK_THROWS_WITH_AS(make(file), doctest::Contains("t.json: truncation.max_length: must be from 2"),
                       InputError);
}

TEST_CASE("what is not supported or makes no sense is refused by name") {
  const auto refuse = [](const std::string& text, const char* why) {
    CHECK_THROWS_WITH_AS(parse_tokenizer_json(text, "t.json"), doctest::Contains(why), InputError);
  };
  refuse("{", "t.json: is no JSON");
  refuse("[]", "must be an object");
  refuse("{}", "'model' is missing");
  refuse(R"({"model": {"type": "Unigram", "vocab": []}})", "the model 'Unigram' is not supported");
  refuse(R"({"model": {"type": "BPE", "vocab": {"a": 99999999}, "merges": []}})", "must be from 0 to");
  refuse(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]}})",
         "'aa' is not in the vocabulary");
  refuse(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["aa"]}})", "two tokens with a blank");
  refuse(R"({"model": {"type": "BPE", "vocab": {}, "merges": []}})", "the vocabulary is empty");
  refuse(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1}})", "dropout");
  refuse(R"({"model": {"type": "WordPiece", "vocab": {"a": 0}}})",
         "the unk_token '[UNK]' is not in the vocabulary");
  const auto refuse_part = [](const char* key, const char* value, const char* why) {
    CHECK_THROWS_WITH_AS(with(key, value), doctest::Contains(why), InputError);
  };
  refuse_part("normalizer", R"({"type": "Nmt"})",
              "t.json: normalizer: the normalizer 'Nmt' is not supported");
  refuse_part("normalizer", R"({"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""})",
              "is no regular expression");
  refuse_part("pre_tokenizer", R"({"type": "UnicodeScripts"})", "the pre-tokenizer 'UnicodeScripts'");
  refuse_part("pre_tokenizer",
              R"({"type": "Split", "pattern": {"Regex": "\\Gx"}, "behavior": "Removed", "invert": false})",
              "\\G");
  refuse_part("pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [{"type": "Digits"}]})",
              "pretokenizers[0]: 'individual_digits' is missing");
  refuse_part("decoder", R"({"type": "CTC"})", "the decoder 'CTC'");
  refuse_part("post_processor", R"({"type": "BertProcessing", "sep": ["x", 77], "cls": ["a", 1]})",
              "no token has the id 77");
  std::string deep = R"({"type": "NFC"})";
  for (int i = 0; i < 20; ++i) deep = R"({"type": "Sequence", "normalizers": [)" + deep + "]}";
  refuse_part("normalizer", deep.c_str(), "nesting");
  CHECK_THROWS_WITH_AS(open_tokenizer("/nowhere.json"), doctest::Contains("there is no tokenizer"),
                       InputError);
}

TEST_CASE("an expression that takes for ever is an error") {
  const auto bpe =
      with("pre_tokenizer",
           R"({"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": false})");
  CHECK_THROWS_WITH_AS(bpe->encode(std::string(40, 'a') + "!"), doctest::Contains("cannot be searched for"),
                       InputError);
}

TEST_CASE("parts that make ever more of a text are stopped") {
  std::string twice = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})", many = twice;
  for (int i = 0; i < 60; ++i) many += ", " + twice;
  const auto replaced =
      with("normalizer", (R"({"type": "Sequence", "normalizers": [)" + many + "]}").c_str());
  CHECK_THROWS_WITH_AS(replaced->encode("a"), doctest::Contains("times as many"), InputError);
  std::string bytes = R"({"type": "ByteLevel", "add_prefix_space": false})", levels = bytes;
  for (int i = 0; i < 60; ++i) levels += ", " + bytes;
  const auto cut =
      with("pre_tokenizer", (R"({"type": "Sequence", "pretokenizers": [)" + levels + "]}").c_str());
  CHECK_THROWS_WITH_AS(cut->encode("\xc3\xa9"), doctest::Contains("times as many"), InputError);
}

TEST_CASE("a vocab.txt is BERT's tokeniser") {
  const auto bert =
      parse_vocabulary("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhe\n##llo\nworld\n,\n", "vocab.txt");
  CHECK(bert->encode("H\xc3\xa9llo, [MASK] world xyz") == Ids{2, 5, 6, 8, 4, 7, 1, 3});
  CHECK(bert->decode(Ids{2, 5, 6, 8, 7, 3}, true) == "hello, world");
  CHECK_THROWS_WITH_AS(parse_vocabulary("a\nb\n", "v.txt"), doctest::Contains("[UNK] is missing"),
                       InputError);
  CHECK_THROWS_WITH_AS(parse_vocabulary("a\na\n", "v.txt"), doctest::Contains("line 2 has 'a' again"),
                       InputError);
}
