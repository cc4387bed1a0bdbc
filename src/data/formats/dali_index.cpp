#include "data/formats/dali_index.h"

#include <algorithm>

#include "base/format.h"
#include "base/number_from.h"
#include "data/formats/tar_members.h"

namespace millrace::data {
namespace {

/// The next word of a line, which then begins behind it.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

uint64_t take_number(std::string_view& line) {
  const std::string_view word = take_word(line);
  const std::optional<uint64_t> value = number_from<uint64_t>(word);
  if (!value) fail<InputError>("is no index that can be read ('{}' is no number)", word.substr(0, 40));
  return *value;
}

[[noreturn]] void misfit(const DaliMember& member) {
  fail<InputError>("does not fit the tar: no member of {} bytes at {}", member.size, member.offset);
}

}  // namespace

std::string dali_index_path(const std::string& tar) {
  return (tar.ends_with(".tar") ? tar.substr(0, tar.size() - 4) : tar) + ".idx";
}

std::vector<std::vector<DaliMember>> parse_dali_index(std::string_view text, std::span<const uint8_t> tar) {
  const auto take_line = [&] {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
  };
  std::string_view head = take_line();
  const std::string_view version = take_word(head);
  if (version != "v1.1" && version != "v1.2") fail<InputError>("is no index of DALI's (v1.1 or v1.2)");
  const uint64_t count = take_number(head);
  std::vector<std::vector<DaliMember>> samples;
  while (!text.empty()) {
    std::string_view line = take_line();
    if (line.find_first_not_of(' ') == std::string_view::npos) continue;
    auto& sample = samples.emplace_back();
    while (line.find_first_not_of(' ') != std::string_view::npos) {
      DaliMember member;
      member.extension = take_word(line);
      member.offset = take_number(line);
      member.size = take_number(line);
      if (version == "v1.2") member.name = take_word(line);
      if (version == "v1.2" && member.name.empty())
        fail<InputError>("is no index that can be read (a name is missing)");
      if (member.offset < tar_block || member.offset % tar_block != 0 || member.offset > tar.size() ||
          member.size > tar.size() - member.offset)
        misfit(member);
      sample.push_back(member);
    }
  }
  if (samples.size() != count) fail<InputError>("is cut off: {} samples of {}", samples.size(), count);
  // Some of the headers; the others are looked at when they are read.
  for (size_t i = 0; i < samples.size(); i += 1 + samples.size() / 256)
    for (const DaliMember& member : samples[i])
      if (!is_tar_header(tar.subspan(member.offset - tar_block))) misfit(member);
  if (!samples.empty() && !samples.back().empty()) {
    const DaliMember& last = samples.back().back();
    const uint64_t end = std::min<uint64_t>(last.offset + last.size + tar_padding(last.size), tar.size());
    const auto rest = tar.subspan(end, std::min<uint64_t>(tar_block, tar.size() - end));
    if (!std::all_of(rest.begin(), rest.end(), [](uint8_t byte) { return byte == 0; }))
      fail<InputError>("does not fit the tar: there are more members behind the last");
  }
  return samples;
}

}  // namespace millrace::data
