// Sessions of a model: what they keep in memory for several batch sizes, and two of them at the same time.
// `sessions MODEL memory|share [NAME=SIZE …]`
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <millrace/session.h>

using namespace millrace;

namespace {

using Clock = std::chrono::steady_clock;

/// Of the process, memory that is no file's, in MB.
double own_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kilobytes = 0; word == "RssAnon:" && status >> kilobytes) return kilobytes * 1024 / 1e6;
  return 0;
}

/// Zeros; `batch` for the first name that nobody has given a size.
std::vector<Array> inputs_of(const Session& session, Bindings sizes, int64_t batch) {
  std::vector<Array> inputs;
  for (const SessionValue& input : session.inputs()) {
    for (const Dim& dim : input.type.shape)
      for (const std::string& name : dim.names()) sizes.emplace(name, batch);
    inputs.emplace_back(input.type.dtype, input.type.shape.specialise(sizes));
  }
  return inputs;
}

/// Runs a second on each of some threads at the same time.
std::vector<double> runs_per_second(const std::vector<const Session*>& sessions,
                                    const std::vector<Array>& inputs) {
  std::vector<double> rates(sessions.size());
  std::vector<std::thread> threads;
  for (size_t t = 0; t < sessions.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2; ++i) (void)sessions[t]->run(inputs);
      const auto begin = Clock::now();
      double seconds = 0;
      int runs = 0;
      do {
        (void)sessions[t]->run(inputs);
        ++runs;
        seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      } while (seconds < 2);
      rates[t] = runs / seconds;
    });
  for (std::thread& thread : threads) thread.join();
  return rates;
}

void show_memory(const std::string& path, const Bindings& sizes) {
  std::printf("at first %.1f MB\n", own_megabytes());
  std::optional<Session> session(Session::load(path));
  std::printf("loaded %.1f MB\n", own_megabytes());
  for (const int64_t batch : {1, 2, 4, 8, 16}) {
    (void)session->run(inputs_of(*session, sizes, batch));
    const Session::Counts counts = session->counts();
    std::printf("batch %2d: %.1f MB; weights %.1f MB, all that is kept %.1f MB\n", static_cast<int>(batch),
                own_megabytes(), static_cast<double>(counts.weights) / 1e6,
                static_cast<double>(counts.bytes) / 1e6);
  }
  session.reset();
  std::printf("unloaded %.1f MB\n", own_megabytes());
}

void show_share(const std::string& path, const Bindings& sizes) {
  const Session one = Session::load(path), two = Session::load(path);
  const std::vector<Array> inputs = inputs_of(one, sizes, 1);
  std::vector<double> shares;
  for (int round = 0; round < 5; ++round) {
    const double alone = runs_per_second({&one}, inputs)[0];
    const std::vector<double> both = runs_per_second({&one, &two}, inputs);
    std::printf("alone %.1f/s, together %.1f/s and %.1f/s: %.3f and %.3f\n", alone, both[0], both[1],
                both[0] / alone, both[1] / alone);
    shares.push_back(std::min(both[0], both[1]) / alone);
  }
  std::sort(shares.begin(), shares.end());
  std::printf("the smaller share, median of rounds: %.3f\n", shares[2]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::printf("sessions MODEL memory|share [NAME=SIZE …]\n"), 1;
  Bindings sizes;
  for (int i = 3; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t at = text.find('=');
    if (at != std::string::npos) sizes[text.substr(0, at)] = std::atoll(text.c_str() + at + 1);
  }
  std::string(argv[2]) == "memory" ? show_memory(argv[1], sizes) : show_share(argv[1], sizes);
}
