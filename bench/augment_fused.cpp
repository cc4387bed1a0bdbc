// Crop, flip and colours of a batch on one thread: the loader's loops beside the same chain as one compiled
// Program, in turns.
//
//   augment_fused [SIZE [BATCH]]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fmt/core.h>
#include <functional>
#include <random>
#include <vector>

#include <millrace/program.h>

#include "base/thread_pool.h"
#include "data/augment/colours.h"
#include "data/augment/pass.h"
#include "ops/build.h"

using namespace millrace;

namespace {

constexpr int padding = 4;

struct Change {
  int32_t down, right, mirrored;
  float brightness, contrast, saturation;
};

struct Chain {
  bool moved, colours, contrast;
};

/// The same in the graph's operators, uint8 to uint8, with the arithmetic of Pillow.
class Fused {
 public:
  Fused(int64_t batch, int64_t size, Chain chain) : b_(graph_), batch_(batch), size_(size) {
    const Value pictures = graph_.input("pictures", {u8, {batch * 3 * size * size}});
    const Value down = number("down", i32), right = number("right", i32), mirrored = number("mirrored", i32);
    const Value brightness = number("brightness", f32), contrast = number("contrast", f32),
                saturation = number("saturation", f32);
    Value column = axis(3);
    column = b_.select(b_.binary("equal", mirrored, b_.fill(mirrored, 0)), column,
                       b_.sub(b_.fill(column, static_cast<double>(size) - 1), column));
    const Value row = reflected(b_.add(axis(2), down));
    column = reflected(b_.add(column, right));
    const double line = static_cast<double>(size);
    Value at = b_.add(b_.mul(b_.add(b_.mul(axis(0), 3), axis(1)), line), row);
    at = b_.add(b_.mul(at, line), column);
    Value x = chain.moved ? graph_.add("gather", {pictures, at}, {{"axis", int64_t{0}}})
                          : b_.reshape(pictures, {batch, 3, size, size});
    if (chain.colours) {
      x = b_.cast(x, f32);
      x = whole(b_.mul(x, brightness));
      if (chain.contrast) {
        const Value sum = b_.sum(luma(x), {1, 2, 3}, true);
        x = blend(b_.unary("floor", b_.add(b_.div(sum, line * line), 0.5)), x, contrast);
      }
      x = blend(luma(x), x, saturation);
      x = b_.cast(x, u8);
    }
    graph_.set_outputs({x});
  }
  Program compile() { return Program::compile(graph_); }

 private:
  Value number(const char* name, DType dtype) { return graph_.input(name, {dtype, {batch_, 1, 1, 1}}); }
  Value axis(int64_t which) {
    return graph_.add("iota", {},
                      {{"shape", Shape{batch_, 3, size_, size_}}, {"axis", which}, {"dtype", i32}});
  }
  Value reflected(Value i) {
    const double last = static_cast<double>(size_) - 1;
    const Value up = b_.unary("abs", i);
    return b_.sub(b_.fill(up, last), b_.unary("abs", b_.sub(b_.fill(up, last), up)));
  }
  Value whole(Value x) {
    return b_.unary("floor", graph_.add("clamp", {x}, {{"low", 0.0}, {"high", 255.0}}));
  }
  Value channel(Value x, int64_t c) {
    return graph_.add("slice", {x},
                      {{"starts", std::vector<int64_t>{0, c, 0, 0}},
                       {"ends", std::vector<int64_t>{batch_, c + 1, size_, size_}}});
  }
  /// Below 2^24: floats are exact.
  Value luma(Value x) {
    const Value sum = b_.add(b_.add(b_.mul(channel(x, 0), 19595), b_.mul(channel(x, 1), 38470)),
                             b_.add(b_.mul(channel(x, 2), 7471), 32768));
    return b_.unary("floor", b_.mul(sum, 1.0 / 65536));
  }
  Value blend(Value other, Value x, Value factor) {
    return whole(b_.add(b_.mul(b_.sub(x, other), factor), other));
  }

  Graph graph_;
  ops::Build b_;
  int64_t batch_, size_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

double seconds(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void measure(int64_t size, int64_t batch, Chain chain, const char* name) {
  const data::Extent extent{3, static_cast<int>(size), static_cast<int>(size)};
  std::mt19937 random(1);
  std::vector<uint8_t> in(extent.bytes() * static_cast<size_t>(batch)), loops(in.size());
  for (size_t i = 0; i < in.size(); ++i)  // smooth, as pictures are
    in[i] = static_cast<uint8_t>(128 + 100 * std::sin(static_cast<double>(i) * 0.01) + random() % 20);
  std::vector<Change> changes(static_cast<size_t>(batch));
  for (Change& c : changes) {
    const auto factor = [&] { return 0.6F + static_cast<float>(random() % 1000) * 0.0008F; };
    const auto move = [&] { return static_cast<int32_t>(random() % (2 * padding + 1)) - padding; };
    c = {move(), move(), static_cast<int32_t>(random() & 1), factor(), factor(), factor()};
  }
  Program program = Fused(batch, size, chain).compile();
  std::copy(in.begin(), in.end(), program.input(0).as<uint8_t>().begin());
  for (size_t i = 0; i < changes.size(); ++i) {
    program.input(1).as<int32_t>()[i] = changes[i].down;
    program.input(2).as<int32_t>()[i] = changes[i].right;
    program.input(3).as<int32_t>()[i] = changes[i].mirrored;
    program.input(4).as<float>()[i] = changes[i].brightness;
    program.input(5).as<float>()[i] = changes[i].contrast;
    program.input(6).as<float>()[i] = changes[i].saturation;
  }
  const auto by_loops = [&] {
    for (size_t i = 0; i < changes.size(); ++i) {
      const Change& c = changes[i];
      uint8_t* const out = &loops[i * extent.bytes()];
      const uint8_t* const from = &in[i * extent.bytes()];
      if (chain.moved) {
        data::Pass pass;
        pass.window(c.down, c.right, data::Border::reflect);
        if (c.mirrored != 0) pass.mirror();
        pass.run(extent, from, out);
      } else {
        std::copy_n(from, extent.bytes(), out);
      }
      if (!chain.colours) continue;
      data::look_up(data::brightness_table(c.brightness), out, extent.bytes());
      if (chain.contrast) data::look_up(data::contrast_table(extent, out, c.contrast), out, extent.bytes());
      data::saturation(extent, out, c.saturation);
    }
  };
  std::vector<double> times[2];
  for (int round = 0; round < 41; ++round) {
    times[0].push_back(seconds(by_loops));
    times[1].push_back(seconds([&] { program.run(); }));
  }
  const auto fused = program.output(0).as<const uint8_t>();
  int64_t different = 0;
  for (size_t i = 0; i < loops.size(); ++i) different += loops[i] != fused[i];
  const double each = 1e6 / static_cast<double>(batch);
  fmt::print("{0}x{0} {1}: loops {2:.2f} µs a picture, compiled {3:.2f} µs, {4} of {5} bytes differ\n", size,
             name, median(times[0]) * each, median(times[1]) * each, different, loops.size());
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t size = argc > 1 ? std::atoll(argv[1]) : 32, batch = argc > 2 ? std::atoll(argv[2]) : 64;
  ThreadPool::set_default_threads(1);
  measure(size, batch, {true, false, false}, "crop, flip");
  measure(size, batch, {false, true, false}, "brightness, saturation");
  measure(size, batch, {true, true, false}, "crop, flip, brightness, saturation");
  measure(size, batch, {true, true, true}, "crop, flip, brightness, contrast, saturation");
  return 0;
}
