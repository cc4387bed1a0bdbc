// Where a run comes from: by which program, command, machine and data it was begun and gone on with. A line
// of origin.jsonl in its folder each time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/tools/fingerprint.h"
#include "train/run_folder.h"

namespace millrace::train {

struct Origin {
  std::string time;                  // UTC, as "2026-01-31T12:00:00Z"
  int64_t step = 0;                  // that it began after
  std::vector<std::string> command;  // of the program, with its arguments
  std::string folder;                // it was called in
  std::string version;               // of Millrace
  std::string program;               // xxh3_128 of the executable file
  std::string cpu, system;           // "AMD EPYC …", "Linux 6.1"
  int64_t threads = 0;
  int64_t seed = 0;
  /// By what they are for: "train", "test". Of streams, which can be read but once, no digest is known.
  struct Data {
    std::string role;
    data::Fingerprint print;
  };
  std::vector<Data> data;

  /// Of that role; null where there is none.
  const data::Fingerprint* find(const std::string& role) const;
};

/// Of this process, now.
Origin origin_now(int64_t step, int64_t seed);
/// As it stands in a line.
std::string origin_json(const Origin& origin);
/// Appends a line. IoError.
void write_origin(const RunFolder& run, const Origin& origin);
/// All lines, the first is the run's beginning; none of a run that an older Millrace made. InputError names a
/// line that is none.
std::vector<Origin> read_origins(const RunFolder& run);
/// The same of a file's text; `name` stands for it in messages. A last line that is cut off is left out.
std::vector<Origin> parse_origins(std::string_view text, const std::string& name);

}  // namespace millrace::train
