// The model of tables, which knows their columns (data/encode/table_encoder.h).
#pragma once

#include <cstdint>
#include <vector>

#include "nn/models/models.h"

namespace millrace::nn::models {

struct TableModel {
  int64_t numbers = 0;       // columns of floats
  std::vector<int64_t> ids;  // of each column of categories, how many ids
  int64_t classes = 2;
  int64_t width = 128, depth = 2;
  double dropout = 0;
};

/// Takes numbers f32 [batch, numbers], where there are any, and ids i64 [batch, ids.size()], where there are any; each category
/// has embeddings of half as many numbers as it has ids, 2 to 32. Gives logits [batch, classes].
Model table(const TableModel& options);

}  // namespace millrace::nn::models
