// Many texts go on together: rows of a decoder that each has one of them, until it ends and the next begins.
#include <algorithm>
#include <chrono>

#include "base/format.h"
#include "base/seconds_since.h"
#include "task/generate.h"

namespace millrace::task {
namespace {

using Clock = std::chrono::steady_clock;

/// A text that has a row.
struct Going {
  size_t text;
  int64_t row, reserved;     // tokens that it may take, in whole pages
  std::vector<int32_t> ids;  // with its beginning
  size_t own;                // tokens of the beginning
  std::string decoded;       // what came behind it, where somebody looks for a stop
};

class Generation {
 public:
  Generation(Decoder& decoder, const TextTokens& tokens, std::span<const std::string> texts,
             const GenerateOptions& options, GenerateTimes& times,
             const std::function<void(size_t, int32_t)>& on_token)
      : decoder_(decoder),
        tokens_(tokens),
        texts_(texts),
        options_(options),
        times_(times),
        on_token_(on_token),
        results_(texts.size()),
        left_(decoder.capacity()) {
    check_sample_options(options.sample);
    if (options.tokens < 1) fail<InputError>("{} tokens: a text goes on by 1 at least", options.tokens);
    for (int64_t row = decoder.rows(); row-- > 0;) {
      decoder.clear(row);
      rows_.push_back(row);
    }
  }

  std::vector<Generated> run() {
    while (next_ < texts_.size() || !going_.empty()) {
      begin_more();
      step();
    }
    return std::move(results_);
  }

 private:
  std::vector<int32_t> ids_of(size_t text) const {
    std::vector<int32_t> ids = texts_[text].empty() ? tokens_.beginning() : tokens_.encode(texts_[text]);
    if (ids.empty()) fail<InputError>("an empty text: there is nothing to go on from");
    return ids;
  }

  /// Gives free rows the next texts, as long as all may become as long as they want to.
  void begin_more() {
    std::vector<Going> fresh;
    while (next_ < texts_.size() && !rows_.empty()) {
      Going text{next_, rows_.back(), 0, ids_of(next_), 0, {}};
      text.own = text.ids.size();
      const int64_t most = std::min(decoder_.longest(), static_cast<int64_t>(text.own) + options_.tokens);
      text.reserved = (most + decode_page - 1) / decode_page * decode_page;
      if (text.reserved > left_ && !(going_.empty() && fresh.empty())) break;
      left_ -= text.reserved;
      rows_.pop_back();
      ++next_;
      fresh.push_back(std::move(text));
    }
    if (fresh.empty()) return;
    const auto begin = Clock::now();
    std::vector<NewTokens> rows;
    for (const Going& text : fresh) {
      // Of a beginning that is longer than a row its end counts.
      rows.push_back({text.row, std::span(text.ids).last(std::min(text.own, longest_beginning()))});
      times_.prompt_tokens += static_cast<int64_t>(rows.back().tokens.size());
    }
    const Array logits = decoder_.step(rows);
    times_.prompt_seconds += seconds_since(begin);
    take(fresh, logits);
    for (Going& text : fresh) going_.push_back(std::move(text));
  }

  size_t longest_beginning() const { return static_cast<size_t>(decoder_.longest()); }

  /// The last token of each text into the model, the next one out of it.
  void step() {
    if (going_.empty()) return;
    const auto begin = Clock::now();
    std::vector<NewTokens> rows;
    for (Going& text : going_) {
      size_t count = 1;
      if (decoder_.length(text.row) == decoder_.longest()) {
        decoder_.clear(text.row);
        count = std::min(text.ids.size(), static_cast<size_t>(std::max<int64_t>(1, decoder_.longest() / 2)));
      }
      rows.push_back({text.row, std::span(text.ids).last(count)});
    }
    const Array logits = decoder_.step(rows);
    ++times_.steps;
    take(going_, logits);
    times_.seconds += seconds_since(begin);
  }

  /// Chooses a token for each; texts that end give their rows back.
  void take(std::vector<Going>& texts, const Array& logits) {
    for (size_t i = 0; i < texts.size(); ++i) {
      Going& text = texts[i];
      const size_t place = text.ids.size() - text.own;
      const int32_t id = sample_token(decoder_.row(logits, static_cast<int64_t>(i)), text.ids,
                                      options_.sample, text.text, place);
      ++times_.tokens;
      if (ends(text, id)) finish(text);
    }
    std::erase_if(texts, [](const Going& text) { return text.row < 0; });
  }

  /// Adds the token. Whether it was the last one.
  bool ends(Going& text, int32_t id) {
    Generated& result = results_[text.text];
    if (id == tokens_.end()) {
      result.end = Generated::End::end;
      return true;
    }
    text.ids.push_back(id);
    if (on_token_) on_token_(text.text, id);
    if (!options_.stop.empty()) {
      text.decoded += tokens_.decode({&id, 1});
      // Pieces of words may be decoded otherwise together.
      if (text.decoded.find(options_.stop) != std::string::npos) {
        result.end = Generated::End::stop;
        return true;
      }
    }
    return static_cast<int64_t>(text.ids.size() - text.own) >= options_.tokens;
  }

  void finish(Going& text) {
    Generated& result = results_[text.text];
    result.tokens.assign(text.ids.begin() + static_cast<std::ptrdiff_t>(text.own), text.ids.end());
    result.text = tokens_.decode(result.tokens);
    if (result.end == Generated::End::stop)
      result.text = result.text.substr(0, result.text.find(options_.stop));
    decoder_.clear(text.row);
    rows_.push_back(text.row);
    left_ += text.reserved;
    text.row = -1;
  }

  Decoder& decoder_;
  const TextTokens& tokens_;
  std::span<const std::string> texts_;
  const GenerateOptions& options_;
  GenerateTimes& times_;
  const std::function<void(size_t, int32_t)>& on_token_;
  std::vector<Generated> results_;
  std::vector<Going> going_;
  std::vector<int64_t> rows_;  // free ones; the next one last
  int64_t left_;               // tokens that are not reserved
  size_t next_ = 0;
};

}  // namespace

std::vector<Generated> generate(Decoder& decoder, const TextTokens& tokens,
                                std::span<const std::string> texts, const GenerateOptions& options,
                                GenerateTimes& times,
                                const std::function<void(size_t text, int32_t token)>& on_token) {
  return Generation(decoder, tokens, texts, options, times, on_token).run();
}

}  // namespace millrace::task
