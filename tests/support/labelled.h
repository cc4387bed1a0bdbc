// Pictures with their classes, as packing and statistics open them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/codecs/pictures/stored_picture.h"
#include "data/formats/open_dataset.h"
#include "data/table/contents.h"
#include "data/table/labels.h"
#include "data/table/select.h"
#include "data/table/view.h"

namespace millrace::testing {

/// labelled() pictures with short ways to what tests look at.
class LabelledPictures : public data::View {
 public:
  explicit LabelledPictures(std::shared_ptr<const data::Dataset> set)
      : View(std::move(set)), labels_(whole()), pictures_(whole(), data::ColumnKind::picture) {}
  const std::vector<std::string>& classes() const { return labels_.names(); }
  int64_t label(int64_t index) const { return labels_[index]; }
  data::StoredPicture picture(int64_t index) const { return data::stored_picture(pictures_.read(index)); }

 private:
  data::Labels labels_;
  data::Contents pictures_;
};

inline std::shared_ptr<const LabelledPictures> labelled(std::shared_ptr<const data::Dataset> set) {
  return std::make_shared<LabelledPictures>(data::labelled(std::move(set), data::ColumnKind::picture));
}

/// `where`: only samples that this is true for.
inline std::shared_ptr<const LabelledPictures> open_labelled(const std::string& path,
                                                             const std::string& where = "") {
  const std::shared_ptr<const data::Dataset> columns = data::open_dataset(path);
  auto set = data::labelled(columns, data::ColumnKind::picture);
  if (!where.empty()) set = data::select(std::move(set), data::chosen(*columns, data::Query::parse(where)));
  return std::make_shared<LabelledPictures>(std::move(set));
}

}  // namespace millrace::testing
