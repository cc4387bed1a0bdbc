#include "ir/bind.h"

#include "base/format.h"

namespace millrace {

void bind_dimensions(const std::string& name, const Type& wanted, const Array& array, Bindings& bindings) {
  const Shape &shape = wanted.shape, &given = array.shape();
  bool fits = array.dtype() == wanted.dtype && shape.rank() == given.rank();
  for (int d = 0; fits && d < shape.rank(); ++d) {
    const int64_t size = given[d].size();
    if (shape[d].is_static()) {
      fits = shape[d] == size;
    } else {
      if (shape[d].names().size() != 1 || shape[d].factor() != 1)
        fail<TypeError>("input '{}' has shape {}: an input's dimensions are numbers or names", name,
                        shape.str());
      const std::string& dimension = shape[d].names()[0];
      if (const int64_t known = bindings.try_emplace(dimension, size).first->second; known != size)
        fail<TypeError>("input '{}' is {}: '{}' is {} there, and {} elsewhere", name, array.type().str(),
                        dimension, size, known);
    }
  }
  if (!fits) fail<TypeError>("input '{}' is {}, the model takes {}", name, array.type().str(), wanted.str());
}

}  // namespace millrace
