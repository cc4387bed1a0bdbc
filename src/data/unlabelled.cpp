#include "data/unlabelled.h"

#include "base/file.h"
#include "base/format.h"
#include "data/formats/tar_members.h"

namespace millrace::data {
namespace {

class UnlabelledTar final : public Source {
 public:
  explicit UnlabelledTar(const std::string& path) : file_(path) {
    path_ = path;
    classes_ = {""};
    for_each_tar_member(path, file_.bytes(), [&](const TarMember& member) {
      if (member.regular && is_picture_name(member.name)) members_.push_back(member);
      return true;
    });
    if (members_.empty()) fail<InputError>("{}: has no pictures; wanted are {} files", path, picture_kinds());
  }
  int64_t count() const override { return static_cast<int64_t>(members_.size()); }
  int64_t label(int64_t) const override { return 0; }
  std::string name(int64_t index) const override {
    return fmt::format("{}:{}", path_, members_.at(static_cast<size_t>(index)).name);
  }
  Sample read(int64_t index) const override {
    const TarMember& member = members_.at(static_cast<size_t>(index));
    Sample sample;
    sample.bytes = file_.bytes().subspan(member.offset, member.size);
    return sample;
  }

 private:
  MappedFile file_;
  std::vector<TarMember> members_;
};

}  // namespace

std::unique_ptr<Source> open_unlabelled_tar(const std::string& path) {
  return std::make_unique<UnlabelledTar>(path);
}

}  // namespace millrace::data
