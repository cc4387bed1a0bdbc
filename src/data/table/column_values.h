// Values of columns as texts.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <millrace/dataset.h>

namespace millrace::data {

/// A number as a category is called: "7", "0.5".
std::string category_text(const ColumnValues& values, size_t i);

/// What is wrong with a value of a column; "" where it is of the column's kind, or missing.
std::string value_fault(const Value& value, const Column& column);

/// The kind of a column that has both: of numbers, some of which are whole, or of texts, some of which look
/// like numbers; the first where one is of neither.
ColumnKind kind_of_both(ColumnKind a, ColumnKind b);
/// A number as a column of that kind has it: a whole one among others, or as a category is called.
Value as_kind(Value value, ColumnKind kind);

/// `count` values of a kind, all there: what put_values() fills. Memory that is there is used again.
void start_values(ColumnValues& values, ColumnKind kind, size_t count);
/// Values of another column of that kind, each from the first place to the second; contents are shared.
void put_values(const ColumnValues& from, std::span<const std::pair<size_t, size_t>> places,
                ColumnValues& to);

}  // namespace millrace::data
