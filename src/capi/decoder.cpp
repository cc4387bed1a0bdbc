// Decoding in millrace.h, by the decoder of C++.
#include <algorithm>
#include <vector>

#include <millrace/decoder.h>
#include <millrace/millrace.h>

#include "capi/guarded.h"

using namespace millrace;
using namespace millrace::capi;

struct millrace_decoder {
  Decoder decoder;
};

millrace_status millrace_decoder_load(const char* path, const millrace_decoder_options* options,
                                      millrace_decoder** decoder) {
  return loaded(path, options, decoder, "decoder", [&](const millrace_decoder_options& given) {
    DecoderOptions wanted;
    if (given.precision) wanted.precision = given.precision;
    if (given.rows != 0) wanted.rows = given.rows;
    wanted.longest = given.longest;
    wanted.memory = given.memory;
    return new millrace_decoder{Decoder::load(path, wanted)};
  });
}

void millrace_decoder_free(millrace_decoder* decoder) { delete decoder; }

millrace_status millrace_decoder_sizes(const millrace_decoder* decoder, millrace_decoder_size* sizes) {
  return guarded([&] {
    require(decoder, "decoder");
    require(sizes, "sizes");
    const Decoder& own = decoder->decoder;
    *sizes = {own.rows(), own.longest(), own.capacity(), own.vocabulary()};
  });
}

millrace_status millrace_decoder_step(millrace_decoder* decoder, const millrace_new_tokens* rows,
                                      int32_t count, float* logits) {
  return guarded([&] {
    require(decoder, "decoder");
    require(logits, "logits");
    require(rows || count <= 0, "rows");
    std::vector<NewTokens> given;
    for (int32_t i = 0; i < count; ++i) {
      require(rows[i].tokens || rows[i].count == 0, "tokens");
      if (rows[i].count < 0) fail<ArgumentError>("{} tokens of row {}", rows[i].count, rows[i].row);
      given.push_back({rows[i].row, {rows[i].tokens, static_cast<size_t>(rows[i].count)}});
    }
    const Array made = decoder->decoder.step(given);
    std::ranges::copy(made.as<float>(), logits);
  });
}

millrace_status millrace_decoder_length(const millrace_decoder* decoder, int64_t row, int64_t* length) {
  return guarded([&] {
    require(decoder, "decoder");
    require(length, "length");
    *length = decoder->decoder.length(row);
  });
}

millrace_status millrace_decoder_clear(millrace_decoder* decoder, int64_t row) {
  return guarded([&] {
    require(decoder, "decoder");
    decoder->decoder.clear(row);
  });
}

millrace_status millrace_sample(const float* logits, int64_t vocabulary, const int32_t* before, int64_t count,
                                const millrace_sample_options* options, uint64_t stream, uint64_t place,
                                int32_t* token) {
  return guarded([&] {
    require(logits, "logits");
    require(token, "token");
    require(before || count == 0, "before");
    if (vocabulary < 1 || count < 0) fail<ArgumentError>("{} logits, {} tokens before", vocabulary, count);
    const millrace_sample_options given = options_of(options);
    SampleOptions wanted{.temperature = given.temperature, .top_k = given.top_k, .seed = given.seed};
    if (given.top_p != 0) wanted.top_p = given.top_p;
    if (given.repetition != 0) wanted.repetition = given.repetition;
    check_sample_options(wanted);
    *token = sample_token({logits, static_cast<size_t>(vocabulary)}, {before, static_cast<size_t>(count)},
                          wanted, stream, place);
  });
}
