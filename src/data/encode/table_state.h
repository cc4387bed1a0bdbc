// What a TableEncoder knows, for those who learn it and use it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

#include "base/text_hash.h"
#include "data/encode/table_layout.h"

namespace millrace::data {

/// Ids of texts.
using TextIds = TextMap<int64_t>;

struct TableState {
  std::vector<TableDense> dense;
  std::vector<TableCategory> categories;
  int64_t hash_ids = 0;
  std::vector<TableColumn> decisions;  // what learning decided
  // Made from the above.
  std::vector<TextIds> ids;  // of each category
  // Of those learnt from texts, by the number that a text is, as formats with numbers write it: of "1.0",
  // "1".
  std::vector<TextIds> number_ids;

  void index();
};

/// One of missing_texts().
bool is_missing_text(std::string_view text);
/// 1 for "yes", "true", "t" … in any letters, 0 for "no", "false" …; -1 for all else.
int yes_or_no(std::string_view text);

/// A code as a column of numbers has it: of "07" and "7.0", "7"; other texts as they are.
std::string code_text(std::string_view text);

/// Of dates that are whole numbers, as Parquet and Arrow have them.
constexpr double microseconds_a_day = 86400e6;

/// Whether it counts as one: finite, and no larger than a float can be.
bool is_number(double value);

}  // namespace millrace::data
