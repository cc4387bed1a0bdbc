// The formats that are known; each is a file here with MILLRACE_FORMAT(name){…}.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/format.h>

#include "base/registry.h"
#include "data/table/index.h"

namespace millrace::data {

#define MILLRACE_FORMAT(NAME)        \
  extern const Format format_##NAME; \
  const Format format_##NAME

/// Format::open and Format::create of classes that are made of what these are given; files that say
/// themselves what they hold need no options.
template <typename T>
std::unique_ptr<Dataset> open_as(const std::string& path, Files files, const OpenOptions& /*none*/) {
  return std::make_unique<T>(path, std::move(files));
}
template <typename T>
std::unique_ptr<DatasetWriter> create_as(const std::string& path, const std::vector<Column>& columns) {
  return std::make_unique<T>(path, columns);
}

/// All formats with columns, in the order in which a file is tried. (That of folders is for what
/// open_dataset() finds to be one.)
Registry<Format>& formats();
/// The first format that could be that of the file, by its content and its name without ".gz" and the like;
/// where none is sure, rows of delimited text and JSON lines are known by their content alone. Null when it
/// is none's, or when what it holds would have to be unpacked to know.
const Format* format_of(const RandomAccessFile& file);

/// What the ending of a file to be written calls its format, in any case: "parquet" of "out.parquet", "csv"
/// of "OUT.TSV"; of other endings these themselves, which may be no format's name, and "" without one. ".txt"
/// is a format's where `lines` of text may be meant, which predictions are not.
std::string format_by_ending(const std::string& path, bool lines = false);

/// Tars by their indices (tar_indexed.cpp).
std::unique_ptr<Dataset> open_indexed_tars(const std::string& path, Files files,
                                           std::vector<std::shared_ptr<const Index>> indices);

}  // namespace millrace::data
