#include <doctest/doctest.h>
#include <string>

#include <millrace/decoder.h>
#include <millrace/millrace.h>

namespace {

std::string why() { return millrace_error_message(); }

}  // namespace

TEST_CASE("a program in C is told what is wrong with a decoder's call, not stopped") {
  millrace_decoder* decoder = nullptr;
  CHECK(millrace_decoder_load(nullptr, nullptr, &decoder) == MILLRACE_BAD_ARGUMENT);
  CHECK(why() == "'path' is a null pointer");
  CHECK(millrace_decoder_load("none.onnx", nullptr, nullptr) == MILLRACE_BAD_ARGUMENT);
  CHECK(millrace_decoder_load("none.onnx", nullptr, &decoder) != MILLRACE_OK);
  CHECK(why().find("none.onnx") != std::string::npos);
  CHECK(decoder == nullptr);
  const millrace_decoder_options unsized{};
  CHECK(millrace_decoder_load("none.onnx", &unsized, &decoder) == MILLRACE_BAD_ARGUMENT);
  CHECK(why() == "the options' size is 0; set it to the sizeof of their type");
  millrace_decoder_size sizes;
  float logits;
  int64_t length;
  CHECK(millrace_decoder_sizes(nullptr, &sizes) == MILLRACE_BAD_ARGUMENT);
  CHECK(millrace_decoder_step(nullptr, nullptr, 0, &logits) == MILLRACE_BAD_ARGUMENT);
  CHECK(millrace_decoder_length(nullptr, 0, &length) == MILLRACE_BAD_ARGUMENT);
  CHECK(millrace_decoder_clear(nullptr, 0) == MILLRACE_BAD_ARGUMENT);
  millrace_decoder_free(nullptr);
}

TEST_CASE("a program in C chooses tokens as the decoder of C++ does") {
  const float logits[] = {0, 3, 2.9F, -1};
  int32_t token = -1;
  CHECK(millrace_sample(logits, 4, nullptr, 0, nullptr, 0, 0, &token) == MILLRACE_OK);
  CHECK(token == 1);
  millrace_sample_options options{};
  options.size = sizeof options;
  options.repetition = 2;
  const int32_t there[] = {1};
  CHECK(millrace_sample(logits, 4, there, 1, &options, 0, 0, &token) == MILLRACE_OK);
  CHECK(token == 2);
  options = {sizeof options, 1, 2, 0, 0, 7};  // one of the two most probable
  bool first = false, second = false;
  for (uint64_t place = 0; place < 40; ++place) {
    REQUIRE(millrace_sample(logits, 4, nullptr, 0, &options, 0, place, &token) == MILLRACE_OK);
    int32_t again = -1;
    CHECK(millrace_sample(logits, 4, nullptr, 0, &options, 0, place, &again) == MILLRACE_OK);
    CHECK(again == token);
    first = first || token == 1;
    second = second || token == 2;
    CHECK((token == 1 || token == 2));
  }
  CHECK((first && second));
  const float many[] = {0, 1, 0.9F, 0.5F, 0.2F, 1.1F, -1, 0.7F};
  for (uint64_t i = 0; i < 60; ++i) {  // each option makes a difference to some of these
    options = {sizeof options, 0.8, static_cast<int64_t>(i % 7), i % 3 == 0 ? 0 : 0.6, 1.5, i % 5};
    REQUIRE(millrace_sample(many, 8, there, 1, &options, i % 4, i % 11, &token) == MILLRACE_OK);
    const millrace::SampleOptions same{0.8, options.top_k, i % 3 == 0 ? 1 : 0.6, 1.5, options.seed};
    CHECK(token == millrace::sample_token(many, there, same, i % 4, i % 11));
  }
  options.temperature = -1;
  CHECK(millrace_sample(logits, 4, nullptr, 0, &options, 0, 0, &token) == MILLRACE_INPUT_ERROR);
  CHECK(millrace_sample(logits, 0, nullptr, 0, nullptr, 0, 0, &token) == MILLRACE_BAD_ARGUMENT);
  CHECK(millrace_sample(nullptr, 4, nullptr, 0, nullptr, 0, 0, &token) == MILLRACE_BAD_ARGUMENT);
  CHECK(millrace_sample(logits, 4, nullptr, 1, nullptr, 0, 0, &token) == MILLRACE_BAD_ARGUMENT);
}
