#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include <millrace/decoder.h>

#include "base/format.h"
#include "base/size_text.h"
#include "runtime/lower.h"
#include "session/executables.h"
#include "session/format.h"
#include "session/sizes.h"
#include "session/unchanged_file.h"
#include "target/device.h"

namespace millrace {
namespace {

constexpr int64_t kData = 5;  // inputs before the caches: tokens, positions, slots, pages, last

/// New tokens of a row that a program is made for: a step's one, short and long beginnings.
int64_t tokens_at_once(int64_t tokens) {
  for (const int64_t size : {1, 16})
    if (tokens <= size) return size;
  return 64;
}

int64_t pages_for(int64_t tokens) { return (tokens + decode_page - 1) / decode_page; }

}  // namespace

struct Decoder::Impl {
  struct Row {
    std::vector<int64_t> pages;
    int64_t length = 0;
  };
  /// What a row still has to be given.
  struct Rest {
    int64_t row, result;
    std::span<const int32_t> tokens;
  };

  std::shared_ptr<const DecodeModel> model;
  UnchangedFile file;
  int64_t longest = 0, pages_of_row = 0, pages = 0;
  std::vector<Array> caches;
  std::vector<Row> rows;
  std::vector<int64_t> free;  // pages; the next one last
  std::map<std::tuple<int64_t, int64_t, bool>, Program> programs;
  std::map<std::string, std::string> choices;

  Impl(std::shared_ptr<const DecodeModel> given, const DecoderOptions& options)
      : model(std::move(given)), file(model ? model->require_unchanged : nullptr) {
    if (!model || !model->graph) fail<InputError>("a decoder's model lacks its graph");
    (void)precision_on(device_named(model->compile.target).target(), model->compile);  // before any step
    constexpr int64_t most_rows = 1 << 20;
    if (options.rows < 1 || options.rows > most_rows)
      fail<InputError>("a decoder of {} rows: at least 1, at most {}", options.rows, most_rows);
    if (options.memory < 0) fail<InputError>("{} bytes of memory for keys and values", options.memory);
    longest = options.longest == 0 ? model->longest : options.longest;
    if (longest < 1 || longest > model->longest)
      fail<InputError>("sequences of {} tokens: the model takes from 1 to {}", longest, model->longest);
    pages_of_row = pages_for(longest);
    const std::vector<Type> of_one = cache_types({1, 1, 1, 1, false});
    int64_t page_bytes = 0;
    for (const Type& type : of_one) page_bytes += type.bytes();
    pages = options.rows * pages_of_row;
    if (options.memory > 0) pages = std::min(pages, options.memory / page_bytes);
    if (pages < 1)
      fail<InputError>("{} of memory for keys and values: {} tokens need {}", memory_text(options.memory),
                       decode_page, memory_text(page_bytes));
    for (Type type : of_one) {
      type.shape[0] = pages * decode_page;
      caches.emplace_back(type);
    }
    rows.resize(static_cast<size_t>(options.rows));
    for (int64_t page = pages; page-- > 0;) free.push_back(page);
  }

  std::vector<Type> cache_types(const DecodeShape& shape) const {
    const Graph graph = model->graph(shape);
    const size_t end = graph.inputs().size() - model->weights.size();
    std::vector<Type> types;
    for (size_t i = kData; i < end; ++i) types.push_back(graph.type(graph.inputs()[i]));
    return types;
  }

  const Row& row(int64_t number) const {
    if (number < 0 || number >= static_cast<int64_t>(rows.size()))
      fail<InputError>("row {}: the decoder has {} rows", number, rows.size());
    return rows[static_cast<size_t>(number)];
  }

  Program& program(int64_t count, int64_t tokens, bool every) {
    const auto key = std::make_tuple(count, tokens, every);
    if (const auto found = programs.find(key); found != programs.end()) return found->second;
    const std::lock_guard one(compiling());
    CompileOptions options = model->compile;
    for (const auto& choice : choices) options.choices.insert(choice);
    for (size_t i = 0; i < caches.size(); ++i)
      options.donations[static_cast<int>(i) + 1] = static_cast<int>(kData + static_cast<int64_t>(i));
    const Graph graph = model->graph({count, tokens, pages_of_row, pages, every});
    std::map<int, Array> arrays;
    int at = kData;
    for (const auto& list : {caches, model->weights})
      for (const Array& array : list) arrays.emplace(at++, array);
    Program made(Executable::compile(graph, options), arrays);
    choices.insert(made.choices().begin(), made.choices().end());
    return programs.emplace(key, std::move(made)).first->second;
  }

  void check(std::span<const NewTokens> given) const {
    if (given.empty()) fail<InputError>("a step of no rows");
    std::vector<char> named(rows.size(), 0);
    int64_t wanted = 0;
    for (const NewTokens& add : given) {
      const Row& own = row(add.row);
      if (std::exchange(named[static_cast<size_t>(add.row)], 1))
        fail<InputError>("row {} is named twice", add.row);
      if (add.tokens.empty()) fail<InputError>("row {} gets no tokens: leave it out of the step", add.row);
      for (const int32_t token : add.tokens)
        if (token < 0 || token >= model->vocabulary)
          fail<InputError>("row {}: there is no token {}: the model knows {}", add.row, token,
                           model->vocabulary);
      const int64_t length = own.length + static_cast<int64_t>(add.tokens.size());
      if (length > longest)
        fail<InputError>(
            "row {} would have {} tokens, and {} is the most: clear it and begin with its last ones", add.row,
            length, longest);
      wanted += pages_for(length) - static_cast<int64_t>(own.pages.size());
    }
    if (wanted > static_cast<int64_t>(free.size()))
      fail<InputError>(
          "{} more tokens' keys and values need {} pages, and {} of {} are free: clear rows, or give the "
          "decoder "
          "more memory",
          wanted * decode_page, wanted, free.size(), pages);
  }

  void grow(std::span<const NewTokens> given) {
    for (const NewTokens& add : given) {
      Row& row = rows[static_cast<size_t>(add.row)];
      const int64_t length = row.length + static_cast<int64_t>(add.tokens.size());
      while (static_cast<int64_t>(row.pages.size()) < pages_for(length)) {
        row.pages.push_back(free.back());
        free.pop_back();
      }
    }
  }

  /// What makes rows longer. After an error they are as long as before.
  template <typename Work>
  void extend(std::span<const NewTokens> given, Work&& work) {
    check(given);
    std::vector<int64_t> before;
    for (const NewTokens& add : given) before.push_back(row(add.row).length);
    try {
      grow(given);
      work();
    } catch (...) {
      for (size_t i = 0; i < given.size(); ++i) {
        Row& row = rows[static_cast<size_t>(given[i].row)];
        row.length = before[i];
        for (; static_cast<int64_t>(row.pages.size()) > pages_for(row.length); row.pages.pop_back())
          free.push_back(row.pages.back());
      }
      throw;
    }
  }

  /// As many of the rests' tokens as one program takes, in rows of it; `done` gets the logits of those that
  /// end here.
  template <typename Done>
  void pass(std::vector<Rest>& rests, bool every, Done&& done) {
    size_t most = 0;
    for (const Rest& rest : rests) most = std::max(most, rest.tokens.size());
    const int64_t tokens = tokens_at_once(static_cast<int64_t>(most));
    const int64_t count = next_size(static_cast<int64_t>(rests.size()));
    Program& program = this->program(count, tokens, every);
    const auto in = [&](int i) { return program.input(i).as<int64_t>(); };
    const std::span<int64_t> ids = in(0), positions = in(1), slots = in(2), tables = in(3), last = in(4);
    std::fill(ids.begin(), ids.end(), 0);
    std::fill(positions.begin(), positions.end(), -1);
    std::fill(slots.begin(), slots.end(), -1);
    std::fill(tables.begin(), tables.end(), -1);
    std::fill(last.begin(), last.end(), 0);
    for (size_t r = 0; r < rests.size(); ++r) {
      Rest& rest = rests[r];
      Row& row = rows[static_cast<size_t>(rest.row)];
      const size_t own = std::min(rest.tokens.size(), static_cast<size_t>(tokens));
      for (size_t t = 0; t < own; ++t, ++row.length) {
        const size_t at = r * static_cast<size_t>(tokens) + t;
        ids[at] = rest.tokens[t];
        positions[at] = row.length;
        slots[at] =
            row.pages[static_cast<size_t>(row.length / decode_page)] * decode_page + row.length % decode_page;
      }
      std::copy(row.pages.begin(), row.pages.end(),
                tables.begin() + static_cast<std::ptrdiff_t>(r) * pages_of_row);
      last[r] = static_cast<int64_t>(r) * tokens + static_cast<int64_t>(own) - 1;
    }
    program.run();
    file.require();
    const auto logits = std::as_const(program.output(0)).as<float>();
    for (size_t r = 0; r < rests.size(); ++r) {
      Rest& rest = rests[r];
      const size_t own = std::min(rest.tokens.size(), static_cast<size_t>(tokens));
      rest.tokens = rest.tokens.subspan(own);
      const size_t width = static_cast<size_t>(model->vocabulary) * (every ? static_cast<size_t>(tokens) : 1);
      done(rest, logits.subspan(r * width, width), own);
    }
    std::erase_if(rests, [](const Rest& rest) { return rest.tokens.empty(); });
  }
};

Decoder::Decoder(std::shared_ptr<const DecodeModel> model, const DecoderOptions& options)
    : impl_(std::make_unique<Impl>(std::move(model), options)) {}

Decoder Decoder::load(const std::filesystem::path& path, const DecoderOptions& options) {
  const ModelFormat* const format = model_format_of(path);
  if (!format)
    fail<InputError>("{}: is no model that can be decoded: name a run folder or an ONNX model",
                     path.string());
  if (!format->decode) fail<InputError>("{}: {} is not decoded token by token", path.string(), format->doc);
  return Decoder(std::make_shared<const DecodeModel>(format->decode(path, options)), options);
}

Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

Array Decoder::step(std::span<const NewTokens> rows) {
  Array result;
  impl_->extend(rows, [&] {
    result = Array(f32, {static_cast<int64_t>(rows.size()), vocabulary()});
    const std::span<float> to = result.as<float>();
    std::vector<Impl::Rest> rests;
    for (const NewTokens& add : rows)
      rests.push_back({add.row, static_cast<int64_t>(rests.size()), add.tokens});
    while (!rests.empty())
      impl_->pass(rests, false, [&](const Impl::Rest& rest, std::span<const float> logits, size_t) {
        if (rest.tokens.empty())
          std::copy(logits.begin(), logits.end(), to.begin() + rest.result * vocabulary());
      });
  });
  return result;
}

Array Decoder::every(const NewTokens& row) {
  Array result;
  impl_->extend({&row, 1}, [&] {
    result = Array(f32, {static_cast<int64_t>(row.tokens.size()), vocabulary()});
    auto at = result.as<float>().begin();
    std::vector<Impl::Rest> rests = {{row.row, 0, row.tokens}};
    while (!rests.empty())
      impl_->pass(rests, true, [&](const Impl::Rest&, std::span<const float> logits, size_t tokens) {
        at = std::copy_n(logits.begin(), static_cast<int64_t>(tokens) * vocabulary(), at);
      });
  });
  return result;
}

std::span<const float> Decoder::row(const Array& logits, int64_t i) const {
  const auto width = static_cast<size_t>(vocabulary());
  return logits.as<float>().subspan(static_cast<size_t>(i) * width, width);
}

int64_t Decoder::rows() const { return static_cast<int64_t>(impl_->rows.size()); }
int64_t Decoder::longest() const { return impl_->longest; }
int64_t Decoder::capacity() const { return impl_->pages * decode_page; }
int64_t Decoder::vocabulary() const { return impl_->model->vocabulary; }
int64_t Decoder::length(int64_t row) const { return impl_->row(row).length; }

void Decoder::clear(int64_t row) {
  (void)impl_->row(row);
  Impl::Row& own = impl_->rows[static_cast<size_t>(row)];
  impl_->free.insert(impl_->free.end(), own.pages.rbegin(), own.pages.rend());
  own = {};
}

int64_t Decoder::cache_bytes() const {
  int64_t bytes = 0;
  for (const Array& cache : impl_->caches) bytes += cache.bytes();
  return bytes;
}

int64_t Decoder::weight_bytes() const {
  int64_t bytes = 0;
  for (const Array& weight : impl_->model->weights) bytes += weight.bytes();
  return bytes;
}

const Program& Decoder::program(int64_t rows) { return impl_->program(next_size(rows), 1, false); }

}  // namespace millrace
