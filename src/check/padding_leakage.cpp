// What only fills rows up may change nothing.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "check/rows.h"

namespace millrace::check {
namespace {

/// Of each given array where it is only padding (u8 of its shape, or without memory).
struct Padding {
  std::vector<Array> masks;
  int64_t elements = 0;
};

bool counts_as_padding(const Array& mask, int64_t i) { return mask.at(i) != 0; }

/// Of a task: an array "segments" has 0 where there is no text; so have the others of its input and shape.
Padding padding_of_task(Context& context, const std::vector<Array>& given) {
  Padding padding;
  padding.masks.resize(given.size());
  const Subject& s = context.subject();
  constexpr std::string_view name = "segments";
  for (size_t k = 0; k < given.size(); ++k) {
    const std::string& own = s.inputs[s.given[k]].name;
    if (!own.ends_with(name)) continue;
    const std::string prefix = own.substr(0, own.size() - name.size());
    for (size_t other = 0; other < given.size(); ++other) {
      const std::string& field = s.inputs[s.given[other]].name;
      if (other == k || !field.starts_with(prefix) || given[other].shape() != given[k].shape()) continue;
      Array mask(u8, given[k].shape());
      for (int64_t i = 0; i < mask.count(); ++i)
        if (given[k].at(i) == 0) {
          mask.set_int(i, 1);
          ++padding.elements;
        }
      padding.masks[other] = mask;
    }
  }
  return padding;
}

Padding padding_of_subject(const Subject& s, const std::vector<Array>& given) {
  Padding padding;
  padding.masks = s.padding;
  padding.masks.resize(given.size());
  for (size_t k = 0; k < given.size(); ++k) {
    const Array& mask = padding.masks[k];
    if (mask.empty()) continue;
    if (mask.shape() != given[k].shape())
      fail<InputError>("padding of '{}' is {}, the array {}", s.inputs[s.given[k]].name, mask.shape().str(),
                       given[k].shape().str());
    for (int64_t i = 0; i < mask.count(); ++i) padding.elements += counts_as_padding(mask, i);
  }
  return padding;
}

/// Padding filled with values from elsewhere in the array.
std::vector<Array> filled_up(const std::vector<Array>& given, const Padding& padding) {
  std::vector<Array> changed = given;
  for (size_t k = 0; k < given.size(); ++k) {
    const Array& mask = padding.masks[k];
    if (mask.empty()) continue;
    Array array = given[k].clone();
    const int64_t count = array.count();
    int64_t from = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (!counts_as_padding(mask, i)) continue;
      for (int64_t tried = 0; tried < count; ++tried) {
        from = (from + 1) % count;
        if (!counts_as_padding(mask, from) && given[k].at(from) != given[k].at(i)) break;
      }
      if (array.dtype().is_float())
        array.set(i, given[k].at(from));
      else
        array.set_int(i, given[k].int_at(from));
    }
    changed[k] = array;
  }
  return changed;
}

/// Is row `r`, place `p` padding in an array with places?
bool place_is_padding(const Padding& padding, int64_t r, int64_t p, int64_t places) {
  return std::any_of(padding.masks.begin(), padding.masks.end(), [&](const Array& mask) {
    return !mask.empty() && mask.shape().rank() == 2 && mask.shape()[1].size() == places &&
           counts_as_padding(mask, r * places + p);
  });
}

/// The most that an output of what is no padding changed, as a share of their size.
double change_of_real(const Array& before, const Array& now, const Padding& padding, int64_t rows) {
  if (!has_rows(before, rows)) return 0;
  const bool places = before.shape().rank() == 3;
  const int64_t width = places ? before.shape()[2].size() : before.count() / rows,
                length = places ? before.shape()[1].size() : 1;
  const double size = std::max(rms(before), 1e-6);
  double most = 0;
  const auto x = before.as<float>(), y = now.as<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t p = 0; p < length; ++p) {
      if (places && place_is_padding(padding, r, p, length)) continue;
      for (int64_t i = 0; i < width; ++i) {
        const auto k = static_cast<size_t>((r * length + p) * width + i);
        most = std::max(most, std::abs(static_cast<double>(x[k]) - y[k]) / size);
      }
    }
  return most;
}

/// By how much other targets in padded places move the loss, as a share of it: of subjects, whose loss may be
/// any function.
double change_of_loss(Context& context, const Padding& padding) {
  const Subject& s = context.subject();
  std::vector<Array> batch = context.batch();
  std::vector<Array> targets;
  Padding of_targets;
  for (const size_t at : s.targets) {
    const auto mask = std::find_if(padding.masks.begin(), padding.masks.end(), [&](const Array& m) {
      return !m.empty() && m.shape() == batch[at].shape();
    });
    targets.push_back(batch[at]);
    of_targets.masks.push_back(mask == padding.masks.end() ? Array() : *mask);
  }
  const std::vector<Array> changed = filled_up(targets, of_targets);
  optim::EvalStep step(context.model(), s.inputs, [&](nn::Module& model, std::span<const Tensor> in) {
    return std::vector<optim::NamedTensor>{{"loss", s.loss(model, in).loss}};
  });
  const double before = step.run(batch)[0].at(0);
  for (size_t i = 0; i < changed.size(); ++i) batch[s.targets[i]] = changed[i];
  return std::abs(step.run(batch)[0].at(0) - before) / std::max(std::abs(before), 1e-6);
}

Finding run_padding_leakage(Context& context) {
  constexpr size_t batches = 8;
  std::vector<Array> given = context.given(context.batch());
  Padding padding;
  for (size_t i = 0; i < (context.task() ? batches : 1) && padding.elements == 0; ++i) {
    given = context.given(context.batch(i));
    padding = context.task() ? padding_of_task(context, given) : padding_of_subject(context.subject(), given);
  }
  if (padding.elements == 0) return not_for("rows are not padded");
  widen_weights(context);
  const std::vector<Array> before = context.outputs(given);
  const std::vector<Array> now = context.outputs(filled_up(given, padding));
  double most = 0;
  for (size_t k = 0; k < before.size(); ++k)
    most = std::max(most, change_of_real(before[k], now[k], padding, context.rows()));
  Finding finding =
      most > 1e-4
          ? failed(fmt::format("other values in {} padded places change outputs by up to {} of their "
                               "size",
                               padding.elements, short_number(most)),
                   "mask padding: in attention, in means and maxima over places, in recurrent states; "
                   "or the same text gives another result in a longer batch")
          : passed(fmt::format("{} padded places filled with something else: no output moved",
                               padding.elements));
  if (!context.task())
    if (const double change = change_of_loss(context, padding); change > 1e-5)
      finding = worse(
          finding,
          failed(fmt::format("other targets in padded places change the loss by {}", share_text(change)),
                 "leave padded places out of the loss: weigh them 0 and divide by how many "
                 "count, or the loss says how much is padded"));
  return with_numbers(finding, {{"padded", padding.elements}, {"change", most}});
}

}  // namespace

MILLRACE_CHECK_KIND(padding_leakage){
    .name = "padding-leakage",
    .doc = "padding is filled with something else: no output of real places may change",
    .matters = "a model that reads padding gives other results for the same sample in a longer batch",
    .place = 275,
    .run = run_padding_leakage,
};

}  // namespace millrace::check
