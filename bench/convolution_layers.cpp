// GFLOP/s of the convolutions of ResNet-18 by our providers, layer by layer, beside oneDNN's own threading in
// the same run (whose weights are packed beforehand and never unpacked).
//
//   convolution_layers [train|infer|matmul|depthwise] [f32|bf16] [wall|cpu] [rounds]
//
// train: resnet18_cifar, batch 128, forward and both gradients; infer: resnet18, batch 1, constant weights;
// matmul: products of various networks; depthwise: those layers of MobileNetV2, batch 16, by kernels of ours,
// by oneDNN's, and what a copy of as many bytes takes. wall: all CPUs, time of the fastest round; cpu: one
// thread by its own CPU time, which a busy machine does not disturb.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <dnnl.hpp>
#include <fmt/core.h>
#include <functional>
#include <thread>

#include <millrace/operator.h>

#include "target/provider.h"

using namespace millrace;
using dnnl::memory;

extern "C" void omp_set_num_threads(int);

namespace {

struct Layer {
  std::string name;
  int64_t images, in, size, out, kernel, stride, pad;
  int count;  // how often the network has it
  int64_t out_size() const { return (size + 2 * pad - kernel) / stride + 1; }
  double gflop() const {
    return 2e-9 * static_cast<double>(images * in * out * kernel * kernel) *
           static_cast<double>(out_size() * out_size());
  }
};

const std::vector<Layer> cifar = {
    {"3-64, 32²", 128, 3, 32, 64, 3, 1, 1, 1},          {"64, 32²", 128, 64, 32, 64, 3, 1, 1, 4},
    {"64-128, 32² /2", 128, 64, 32, 128, 3, 2, 1, 1},   {"64-128, 1×1 /2", 128, 64, 32, 128, 1, 2, 0, 1},
    {"128, 16²", 128, 128, 16, 128, 3, 1, 1, 3},        {"128-256, 16² /2", 128, 128, 16, 256, 3, 2, 1, 1},
    {"128-256, 1×1 /2", 128, 128, 16, 256, 1, 2, 0, 1}, {"256, 8²", 128, 256, 8, 256, 3, 1, 1, 3},
    {"256-512, 8² /2", 128, 256, 8, 512, 3, 2, 1, 1},   {"256-512, 1×1 /2", 128, 256, 8, 512, 1, 2, 0, 1},
    {"512, 4²", 128, 512, 4, 512, 3, 1, 1, 3}};
const std::vector<Layer> imagenet = {
    {"3-64, 224² /2", 1, 3, 224, 64, 7, 2, 3, 1},     {"64, 56²", 1, 64, 56, 64, 3, 1, 1, 4},
    {"64-128, 56² /2", 1, 64, 56, 128, 3, 2, 1, 1},   {"64-128, 1×1 /2", 1, 64, 56, 128, 1, 2, 0, 1},
    {"128, 28²", 1, 128, 28, 128, 3, 1, 1, 3},        {"128-256, 28² /2", 1, 128, 28, 256, 3, 2, 1, 1},
    {"128-256, 1×1 /2", 1, 128, 28, 256, 1, 2, 0, 1}, {"256, 14²", 1, 256, 14, 256, 3, 1, 1, 3},
    {"256-512, 14² /2", 1, 256, 14, 512, 3, 2, 1, 1}, {"256-512, 1×1 /2", 1, 256, 14, 512, 1, 2, 0, 1},
    {"512, 7²", 1, 512, 7, 512, 3, 1, 1, 3}};

/// Of mobilenet_v2: `in` channels, each by itself.
const std::vector<Layer> depthwise = {
    {"32, 112²", 16, 32, 112, 32, 3, 1, 1, 1},     {"96, 112² /2", 16, 96, 112, 96, 3, 2, 1, 1},
    {"144, 56²", 16, 144, 56, 144, 3, 1, 1, 1},    {"144, 56² /2", 16, 144, 56, 144, 3, 2, 1, 1},
    {"192, 28²", 16, 192, 28, 192, 3, 1, 1, 2},    {"192, 28² /2", 16, 192, 28, 192, 3, 2, 1, 1},
    {"384, 14²", 16, 384, 14, 384, 3, 1, 1, 4},    {"576, 14²", 16, 576, 14, 576, 3, 1, 1, 2},
    {"576, 14² /2", 16, 576, 14, 576, 3, 2, 1, 1}, {"960, 7²", 16, 960, 7, 960, 3, 1, 1, 3}};

Array filled(const Type& type) {
  Array array(type);
  for (int64_t i = 0; i < array.count(); ++i) {
    const float value = static_cast<float>(i * 7919 % 1000) / 1000 - 0.5F;
    if (type.dtype == f32)
      array.as<float>()[i] = value;
    else
      array.as<uint16_t>()[i] = float_to_bf16(value);
  }
  return array;
}

const std::unique_ptr<Provider>& onednn_provider() {
  static const std::unique_ptr<Provider> provider = cpu::providers().at("onednn").make();
  return provider;
}

/// Our kernel with its buffers; none when the provider does not take the layer.
struct Ours {
  Graph graph;
  std::unique_ptr<Kernel> kernel;
  std::vector<Array> operands;
  Array result, scratch;
  std::unique_ptr<ThreadPool> pool;

  Ours(const std::string& op, const Type& a, const Type& b, const Attributes& attributes, bool constant,
       int threads, const Provider& provider = *onednn_provider())
      : operands{filled(a), filled(b)}, pool(std::make_unique<ThreadPool>(threads)) {
    const Value left = graph.input("a", a),
                right = constant ? graph.constant(operands[1]) : graph.input("b", b);
    const Node& node = graph.node(graph.add(op, {left, right}, attributes));
    if (provider.why_not(graph, node)) return;
    const LayoutWish wish = provider.layouts(graph, node);
    kernel = provider.build({graph, node, {*wish.operands[0], *wish.operands[1]}, {*wish.results[0]}});
    result = Array(node.types[0]);
    scratch = Array(u8, Shape(std::vector<int64_t>{kernel->scratch_bytes()}));
  }
  void run() {
    void* in[] = {operands[0].data(), operands[1].data()};
    void* out[] = {result.data()};
    kernel->run(in, out, scratch.data(), *pool);
  }
};

/// A oneDNN primitive for the whole layer, with its own threading.
struct Own {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
  std::vector<Array> buffers;
  int threads;

  void argument(int name, const memory::desc& desc) {
    buffers.push_back(filled({f32, {static_cast<int64_t>(desc.get_size() + 3) / 4}}));
    arguments[name] = memory(desc, engine, buffers.back().data());
  }

  Own(const std::string& op, const Layer& l, DType dtype, bool inference, int thread_count)
      : threads(thread_count) {
    omp_set_num_threads(threads);
    const auto type = dtype == f32 ? memory::data_type::f32 : memory::data_type::bf16;
    const memory::desc x({l.images, l.in, l.size, l.size}, type, memory::format_tag::nhwc),
        y({l.images, l.out, l.out_size(), l.out_size()}, type, memory::format_tag::nhwc),
        w({l.out, l.in, l.kernel, l.kernel}, type, memory::format_tag::any),
        dw({l.out, l.in, l.kernel, l.kernel}, memory::data_type::f32, memory::format_tag::any);
    const memory::dims stride{l.stride, l.stride}, pad{l.pad, l.pad};
    const auto direct = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(
        engine, inference ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training, direct, x,
        w, y, stride, pad, pad);
    if (op == "conv2d") {
      primitive = dnnl::convolution_forward(forward);
      argument(DNNL_ARG_SRC, x);
      argument(DNNL_ARG_WEIGHTS, forward.weights_desc());
      argument(DNNL_ARG_DST, y);
    } else if (op == "conv2d_input_grad") {
      const dnnl::convolution_backward_data::primitive_desc back(engine, direct, x, w, y, stride, pad, pad,
                                                                 forward);
      primitive = dnnl::convolution_backward_data(back);
      argument(DNNL_ARG_DIFF_SRC, x);
      argument(DNNL_ARG_WEIGHTS, back.weights_desc());
      argument(DNNL_ARG_DIFF_DST, y);
    } else {
      const dnnl::convolution_backward_weights::primitive_desc back(engine, direct, x, dw, y, stride, pad,
                                                                    pad, forward);
      primitive = dnnl::convolution_backward_weights(back);
      argument(DNNL_ARG_SRC, x);
      argument(DNNL_ARG_DIFF_WEIGHTS, back.diff_weights_desc());
      argument(DNNL_ARG_DIFF_DST, y);
    }
  }
  void run() {
    omp_set_num_threads(threads);
    primitive.execute(stream, arguments);
  }
};

bool cpu_time = false;

double now() {
  timespec t{};
  clock_gettime(cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// The fastest of a few calls.
double timed(const std::function<void()>& run, int calls) {
  double best = HUGE_VAL;
  for (int i = 0; i < calls; ++i) {
    const double start = now();
    run();
    best = std::min(best, now() - start);
  }
  return best;
}

struct Total {
  double gflop = 0, ours = 0, own = 0;
};

void measure(const std::string& op, const Layer& l, DType dtype, bool constant, int threads, int rounds,
             Total& total) {
  const Type x{dtype, {l.images, l.in, l.size, l.size}}, w{dtype, {l.out, l.in, l.kernel, l.kernel}},
      y{dtype, {l.images, l.out, l.out_size(), l.out_size()}};
  Attributes attributes{{"pads", std::vector<int64_t>(4, l.pad)},
                        {"strides", std::vector<int64_t>(2, l.stride)}};
  if (op == "conv2d_input_grad") attributes.set("input_shape", x.shape);
  if (op == "conv2d_weight_grad") attributes.set("weight_shape", w.shape);
  Ours ours(op, op == "conv2d_input_grad" ? y : x, op == "conv2d_weight_grad" ? y : w, attributes, constant,
            threads);
  const auto winograd_provider = cpu::providers().at("winograd").make();
  Ours winograd(op, op == "conv2d_input_grad" ? y : x, op == "conv2d_weight_grad" ? y : w, attributes,
                constant, threads, *winograd_provider);
  Own own(op, l, dtype, constant, threads);
  const int calls = l.gflop() > 1 ? 2 : 10;
  double our_time = HUGE_VAL, own_time = HUGE_VAL, winograd_time = HUGE_VAL;
  for (int round = 0; round < rounds; ++round) {
    our_time = std::min(our_time, timed([&] { ours.run(); }, calls + 1));
    own_time = std::min(own_time, timed([&] { own.run(); }, calls + 1));
    if (winograd.kernel) winograd_time = std::min(winograd_time, timed([&] { winograd.run(); }, calls + 1));
    if (!cpu_time)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // oneDNN's threads stop spinning
  }
  fmt::print("{:<6}{:<17}{:>2}× {:>8.0f} µs {:>7.1f} GFLOP/s, own {:>7.1f}, {:.2f}  {}\n",
             op == "conv2d"              ? "y"
             : op == "conv2d_input_grad" ? "dx"
                                         : "dw",
             l.name, l.count, our_time * 1e6, l.gflop() / our_time, l.gflop() / own_time, own_time / our_time,
             ours.kernel->description());
  if (winograd.kernel)
    fmt::print("      {:<20} {:>8.0f} µs, {:.2f} of the direct way's speed  {}\n", "by Winograd",
               winograd_time * 1e6, our_time / winograd_time, winograd.kernel->description());
  std::fflush(stdout);
  total.gflop += l.count * l.gflop();
  total.ours += l.count * std::min(our_time, winograd_time);
  total.own += l.count * own_time;
}

void measure_products(DType dtype, int threads, int rounds) {
  struct {
    int64_t batch, m, k, n;
    bool ta, tb;
  } const products[] = {{1, 256, 14, 128, false, false},  {1, 256, 128, 64, false, false},
                        {1, 1, 845, 512, false, false},   {1, 128, 768, 768, false, false},
                        {1, 128, 768, 3072, false, true}, {1, 2048, 768, 768, false, true},
                        {1, 768, 2048, 768, true, false}, {96, 128, 64, 128, false, true}};
  for (const auto& p : products)
    for (const bool constant : {false, true}) {
      const auto shape = [&](int64_t rows, int64_t columns) {
        return p.batch == 1 ? Shape{rows, columns} : Shape{p.batch, rows, columns};
      };
      Ours ours("matmul", {dtype, p.ta ? shape(p.k, p.m) : shape(p.m, p.k)},
                {dtype, p.tb ? shape(p.n, p.k) : shape(p.k, p.n)},
                {{"transpose_a", p.ta}, {"transpose_b", p.tb}}, constant, threads);
      double best = HUGE_VAL;
      for (int round = 0; round < rounds; ++round) best = std::min(best, timed([&] { ours.run(); }, 50));
      fmt::print("{}×{}×{}×{}{}{} {:>8.1f} µs {:>7.1f} GFLOP/s  {}\n", p.batch, p.m, p.k, p.n,
                 p.ta ? " ta" : "", p.tb ? " tb" : "", best * 1e6,
                 2e-9 * static_cast<double>(p.batch * p.m * p.k * p.n) / best, ours.kernel->description());
    }
}

/// Of as many bytes as x and y have, in parts for the threads.
double copy_time(Array& from, Array& to, ThreadPool& pool, int calls) {
  const int64_t bytes = (from.bytes() + to.bytes()) / 2, parts = 16;
  Array a(u8, Shape(std::vector<int64_t>{bytes})), b(u8, Shape(std::vector<int64_t>{bytes}));
  return timed(
      [&] {
        pool.parallel(parts, [&](int64_t i) {
          const int64_t begin = bytes * i / parts, end = bytes * (i + 1) / parts;
          std::memcpy(static_cast<char*>(b.data()) + begin, static_cast<char*>(a.data()) + begin,
                      static_cast<size_t>(end - begin));
        });
      },
      calls);
}

void measure_depthwise(DType dtype, int threads, int rounds) {
  const auto provider = cpu::providers().at("depthwise").make();
  for (const std::string op : {"conv2d", "conv2d_input_grad", "conv2d_weight_grad"}) {
    double all_ours = 0, all_onednn = 0, all_copy = 0;
    for (const Layer& l : depthwise) {
      const Type x{dtype, {l.images, l.in, l.size, l.size}}, w{dtype, {l.in, 1, l.kernel, l.kernel}},
          y{dtype, {l.images, l.in, l.out_size(), l.out_size()}};
      Attributes attributes{{"pads", std::vector<int64_t>(4, l.pad)},
                            {"strides", std::vector<int64_t>(2, l.stride)},
                            {"groups", l.in}};
      if (op == "conv2d_input_grad") attributes.set("input_shape", x.shape);
      if (op == "conv2d_weight_grad") attributes.set("weight_shape", w.shape);
      const Type &a = op == "conv2d_input_grad" ? y : x, &b = op == "conv2d_weight_grad" ? y : w;
      Ours ours(op, a, b, attributes, false, threads, *provider),
          onednn(op, a, b, attributes, false, threads);
      Array in = filled(x), out = filled(y);
      double our_time = HUGE_VAL, onednn_time = HUGE_VAL, copy = HUGE_VAL;
      for (int round = 0; round < rounds; ++round) {
        our_time = std::min(our_time, timed([&] { ours.run(); }, 3));
        onednn_time = std::min(onednn_time, timed([&] { onednn.run(); }, 3));
        copy = std::min(copy, copy_time(in, out, *ours.pool, 3));
      }
      fmt::print(
          "{:<19}{:<13}{:>2}× {:>7.0f} µs, {:>5.1f} GB/s, {:.2f} of a copy; oneDNN {:>7.0f} µs, {:.2f}×  "
          "{}\n",
          op, l.name, l.count, our_time * 1e6,
          static_cast<double>(in.bytes() + out.bytes()) / our_time * 1e-9, copy / our_time, onednn_time * 1e6,
          onednn_time / our_time, onednn.kernel->description());
      std::fflush(stdout);
      all_ours += l.count * our_time;
      all_onednn += l.count * onednn_time;
      all_copy += l.count * copy;
    }
    fmt::print("total {}: {:.2f} ms, {:.2f} of a copy; oneDNN {:.2f} ms, {:.2f}×\n", op, all_ours * 1e3,
               all_copy / all_ours, all_onednn * 1e3, all_onednn / all_ours);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "train";
  const DType dtype = argc > 2 ? DType::parse(argv[2]) : f32;
  cpu_time = argc > 3 && std::string(argv[3]) == "cpu";
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
  const int threads = cpu_time ? 1 : available_cpus();
  if (what == "matmul") {
    measure_products(dtype, threads, rounds);
    return 0;
  }
  if (what == "depthwise") {
    measure_depthwise(dtype, threads, rounds);
    return 0;
  }
  const bool train = what == "train";
  for (const std::string op : {"conv2d", "conv2d_input_grad", "conv2d_weight_grad"}) {
    if (!train && op != "conv2d") continue;
    Total total;
    for (const Layer& l : train ? cifar : imagenet)
      if (op != "conv2d_input_grad" || l.in != 3) measure(op, l, dtype, !train, threads, rounds, total);
    fmt::print("total {}: {:.1f} ms, {:.1f} GFLOP/s, own {:.1f}: {:.2f}\n", op, total.ours * 1e3,
               total.gflop / total.ours, total.gflop / total.own, total.own / total.ours);
  }
}
