// Texts in memory, for tests of plans and feeds.
#pragma once

#include <memory>
#include <vector>

#include "data/encode/texts.h"

namespace millrace::testing {

/// Texts of these lengths; token i of all is i modulo `vocabulary`. With classes text t is of class t %
/// classes.
inline data::Texts make_texts(const std::vector<int64_t>& lengths, int64_t vocabulary = 1000,
                              int64_t classes = 0) {
  data::Texts texts;
  texts.path = "memory";
  texts.begins = {0};
  for (const int64_t length : lengths) {
    texts.indices.push_back(texts.count());
    if (classes > 0) texts.labels.push_back(texts.count() % classes);
    texts.begins.push_back(texts.begins.back() + length);
  }
  for (int64_t c = 0; c < classes; ++c) texts.classes.push_back(std::to_string(c));
  data::TokenWriter writer(vocabulary, INT64_MAX, "");
  for (int64_t i = 0; i < texts.begins.back(); ++i) {
    const auto id = static_cast<int32_t>(i % vocabulary);
    writer.add(std::span(&id, 1));
  }
  data::Tokenised all;
  writer.finish(all);
  texts.tokens = all.tokens;
  texts.bytes = 3 * texts.begins.back();
  return texts;
}

}  // namespace millrace::testing
