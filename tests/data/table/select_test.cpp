#include "data/table/select.h"

#include <doctest/doctest.h>
#include <set>

#include "support/labelled.h"
#include "support/pictures.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;

TEST_CASE("a sample of a source is spread over it and keeps its classes") {
  const testing::TempFolder folder;
  for (const char* name : {"cat", "dog", "owl"})
    for (int i = 0; i < 4; ++i)
      testing::put_file(folder / name / (std::to_string(i) + ".jpg"), testing::make_jpeg(4, 4, 1, 1));
  const std::shared_ptr<const Dataset> whole = testing::open_labelled(folder.path().string());
  const testing::LabelledPictures part(sample_of(whole, 6));
  CHECK(part.count() == 6);
  CHECK(part.classes() == Labels(*whole).names());
  CHECK(part.path() == whole->path());
  std::set<std::string> names;
  for (int64_t i = 0; i < 6; ++i) {
    names.insert(part.name(i));
    CHECK(part.label(i) == i / 2);
    CHECK(part.picture(i).bytes.size() > 0);
  }
  CHECK(names.size() == 6);
  CHECK(sample_of(whole, 12) == whole);
  CHECK(sample_of(whole, 100) == whole);
}
