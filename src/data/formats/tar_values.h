// What the members of WebDataset samples hold, by their extensions, as webdataset's default decoders have it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// WebDataset's key and extension of a member: its file part is cut at the first dot, the extension in small
/// letters. False for dot files, files without extension and names like __meta__.
bool split_key(std::string_view name, std::string_view& key, std::string& extension);

/// Folder and file part of "a/b/c.jpg": {"a/b", "c.jpg"}.
std::pair<std::string_view, std::string_view> split_path(std::string_view name);

/// The kind of what an extension holds ("seg.png": what png does; "txt.gz": what txt does, packed); bytes for
/// unknown ones.
ColumnKind member_kind(std::string_view extension);
inline bool is_picture_extension(std::string_view extension) {
  return member_kind(extension) == ColumnKind::picture;
}

/// The kind of a column of such members: what the extension holds, but a real number where these contents, of
/// the first samples that have it, are JSON numbers that a double holds, or null (as pack and convert write
/// columns of real numbers).
ColumnKind member_kind(std::string_view extension, std::span<const Bytes> contents);

/// The columns of an extension: one of its name, but of .npz and .ten with several arrays one for each of
/// those that `content`, the first sample's, has: "npz.x", "npz.y".
std::vector<std::string> member_columns(const std::string& extension, const Bytes& content);
/// The extension and the array's name (or "") of such a column.
std::pair<std::string, std::string> split_column(std::string_view column);

/// The value of a member; `part` is the array's name in .npz and .ten ("" for the only one). InputError,
/// worded to follow the member's name, when the content is none of its extension, and for pickles.
Value decode_member(std::string_view extension, std::string_view part, const Bytes& content);
/// The same of a column of that kind.
Value decode_member(std::string_view extension, std::string_view part, const Bytes& content, ColumnKind kind);

}  // namespace millrace::data
