#include "data/tools/pack/pack_source.h"

namespace millrace::data {

PackSource::PackSource(const Dataset& set) : set_(set), labels_(set) {
  const auto key = key_column(set), label = set.class_column();
  if (label && Contents::in(set, ColumnKind::picture))
    pictures_.emplace(set, ColumnKind::picture);
  else
    labels_ = Labels();
  for (size_t c = 0; c < set.columns().size(); ++c) {
    const bool apart = pictures_ && (c == label || c == pictures_->columns()[0]);
    if (c == key || apart) continue;
    extra_.push_back(c);
    extra_columns_.push_back(set.columns()[c]);
  }
}

StoredPicture PackSource::picture(int64_t index) const {
  return pictures_ ? stored_picture(pictures_->read(index)) : StoredPicture();
}

Value PackSource::extra(int64_t index, size_t column) const {
  const size_t at = extra_.at(column);
  return pictures_ && pictures_->column(index) == at ? Value() : set_.read(index, at);
}

}  // namespace millrace::data
