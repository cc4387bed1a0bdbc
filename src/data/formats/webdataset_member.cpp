#include "data/formats/webdataset_member.h"

#include <cmath>

#include "base/format.h"
#include "data/codecs/arrays/npy.h"
#include "data/codecs/pictures/netpbm.h"
#include "data/formats/content.h"
#include "data/formats/tar_values.h"

namespace millrace::data {

std::string member_extension(const Column& column, const std::string& usual, const std::string& where) {
  const auto& [name, kind] = column;
  const bool says = member_kind(name) == kind && (kind != ColumnKind::json || !name.ends_with("mp")) &&
                    (kind != ColumnKind::array || name.ends_with("npy"));
  if (says && kind != ColumnKind::picture) return name;
  const char* ending = kind == ColumnKind::integer                            ? "cls"
                       : kind == ColumnKind::text                             ? "txt"
                       : kind == ColumnKind::array                            ? "npy"
                       : kind == ColumnKind::bytes                            ? "bin"
                       : kind == ColumnKind::json || kind == ColumnKind::real ? "json"
                                                                              : usual.c_str();
  if (says && (usual.empty() || name == usual || name.ends_with("." + usual) ||
               (usual == "jpg" && name.ends_with("jpeg"))))
    return name;
  if (*ending == '\0') fail<InputError>("{}: the column '{}' holds content of no known kind", where, name);
  const bool usual_name = (name == "image" && kind == ColumnKind::picture) ||
                          (name == "audio" && kind == ColumnKind::audio) ||
                          (name == "label" && kind == ColumnKind::integer);
  if (usual_name || (says && name.find('.') == std::string::npos)) return ending;
  return fmt::format("{}.{}", name, ending);
}

ShardMember member_of(const Column& column, const Value& value, std::vector<uint8_t>& made,
                      const std::string& where) {
  const auto text = [&](const std::string& content) {
    made.assign(content.begin(), content.end());
    return ShardMember{member_extension(column, "", where), made};
  };
  if (const auto* number = std::get_if<int64_t>(&value)) return text(std::to_string(*number));
  if (const auto* number = std::get_if<double>(&value)) {
    if (!std::isfinite(*number))
      fail<InputError>("{} has {} in {}, which JSON cannot say; leave the value out", where, *number,
                       column.name);
    return text(fmt::format("{}", *number));
  }
  if (const auto* string = std::get_if<std::string>(&value)) return text(*string);
  if (const auto* array = std::get_if<Array>(&value)) {
    made = encode_npy(*array);
    return {member_extension(column, "", where), made};
  }
  if (const auto* pixels = std::get_if<Pixels>(&value)) {
    const auto view = pixels->bytes.view();
    made = encode_netpbm({pixels->height, pixels->width, pixels->channels, {view.begin(), view.end()}});
    return {member_extension(column, pixels->channels == 1 ? "pgm" : "ppm", where), made};
  }
  const Bytes& bytes = std::get<Bytes>(value);
  const std::string usual = column.kind == ColumnKind::bytes ? "" : content_extension(bytes.view());
  return {member_extension(column, usual, where), bytes.view()};
}

}  // namespace millrace::data
