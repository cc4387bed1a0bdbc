// Changes that are made with a probability; shared by augmentations.
#pragma once

#include <cstring>

#include "data/augment/augment.h"
#include "data/augment/pass.h"

namespace millrace::data {

class Sometimes : public Augmentation {
 public:
  explicit Sometimes(double probability) : probability_(probability) {}
  void apply(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) const final {
    std::memcpy(out, in, extent.bytes());
    if (draw.random.uniform() < probability_) change(extent, out, draw);
  }
  virtual void change(const Extent& extent, uint8_t* planes, Draw& draw) const = 0;

 private:
  double probability_;
};

inline Setting p_setting(double usual) { return {"p", "how often, of 1", usual, 0, 1}; }

/// With the probability p of the settings, a change in place that draws nothing.
inline std::unique_ptr<Augmentation> change_sometimes(const Settings& settings,
                                                      void (*change)(const Extent&, uint8_t*)) {
  class Plain final : public Sometimes {
   public:
    Plain(double p, void (*made)(const Extent&, uint8_t*)) : Sometimes(p), change_(made) {}
    void change(const Extent& extent, uint8_t* planes, Draw& /*draw*/) const override {
      change_(extent, planes);
    }

   private:
    void (*change_)(const Extent&, uint8_t*);
  };
  return std::make_unique<Plain>(settings.number("p"), change);
}

/// With the probability p of the settings, each value becomes what the table has for it.
inline std::unique_ptr<Augmentation> look_up_sometimes(const Settings& settings, const Table& table) {
  class LookUp final : public PassAugmentation {
   public:
    LookUp(double p, const Table& table) : probability_(p), table_(table) {}
    bool collect(const Extent& /*extent*/, Draw& draw, Pass& pass) const override {
      if (draw.random.uniform() < probability_) pass.look_up(table_);
      return true;
    }

   private:
    double probability_;
    Table table_;
  };
  return std::make_unique<LookUp>(settings.number("p"), table);
}

/// Uniform in [a, b).
inline double between(Draw& draw, std::pair<double, double> range) {
  return range.first + (range.second - range.first) * draw.random.uniform();
}

}  // namespace millrace::data
