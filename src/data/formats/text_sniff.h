// What kind of text a file holds whose name does not say it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace millrace::data {

/// So much of a file is enough to know it.
constexpr size_t sniffed_text = 1 << 16;

/// The name of the format: "jsonl" where a line begins a JSON object, "csv" where all rows have equally many
/// fields, two or more, and it is no prose with commas; with `lines` "text" for other texts. Null for none.
/// `whole`: the head is all of it.
const char* text_format(std::string_view head, bool whole, bool lines);

/// UTF-8, or another code of bytes, but nothing that only machines write.
bool is_written(std::string_view head);

/// Are these rows whose fields tabs delimit: two or more, all with as many tabs? Nobody writes so but tables.
bool is_delimited_by_tabs(std::string_view head, bool whole);

/// Is the first line names of columns, two or more, among them all of these or several? Then what is behind
/// it are rows, be there none, or such as have other numbers of fields.
bool begins_with_names(std::string_view head, std::span<const std::string> columns);

}  // namespace millrace::data
