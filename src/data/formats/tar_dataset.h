// What tars have in common, whether they were gone through or have an index: columns, and values out of
// members.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/formats/tar_values.h"

namespace millrace::data {

/// Columns are __key__ (text), one for each extension, and label (text: the last folder of the key) where
/// pictures lie in folders and no member says the class. In plain tars of class folders all pictures are the
/// column image.
class TarDataset : public Dataset {
 public:
  Value read(int64_t index, size_t column) const override;
  bool has(int64_t index, size_t column) const override;
  std::string name(int64_t index) const override;
  std::vector<std::string> class_names(size_t column) const override;
  std::span<const std::shared_ptr<const RandomAccessFile>> files() const override { return files_; }

 protected:
  struct TarColumn {
    enum class What { key, folder, any_picture, member } what = What::key;
    std::string extension = {}, part = {};
    uint32_t number = 0;  // of the extension, as the derived class counts them
  };
  TarDataset(const std::string& path, Files files);

  virtual std::string key(int64_t index) const = 0;
  virtual size_t file_of(int64_t index) const = 0;
  /// The content of a sample's member; nothing when it has no such member.
  virtual std::optional<Bytes> find(int64_t index, const TarColumn& column) const = 0;

  void add_column(std::string name, ColumnKind kind, TarColumn column);
  const TarColumn& tar_column(size_t column) const { return details_.at(column); }

  Files files_;
  /// Why the folders are no classes, as a whole message; empty when they are.
  std::string folder_fault_;

 private:
  /// The names of classes that are numbers, from the sidecar of packed shards.
  void find_classes();
  /// "train.tar: cat/1.jpg", for messages about the content.
  std::string member_name(int64_t index, const TarColumn& column) const;

  std::vector<TarColumn> details_;
  std::vector<std::string> classes_;
  std::string classes_fault_;  // why the sidecar cannot be read
};

}  // namespace millrace::data
