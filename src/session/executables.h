// What a session has in memory: executables by sizes, their programs, and how much all of it may be.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <millrace/session.h>

#include "runtime/arena.h"

namespace millrace {

/// What one caller runs.
struct Context {
  Program program;
  std::vector<Array> filled;  // of each input: memory for arrays that are filled up, made when first needed
  std::vector<char> lent;     // of each output: it is bound to the caller's array
  std::vector<Array> no_inputs, no_outputs;  // of their types, without memory: what is bound between two runs
};

/// Compilations of sessions and decoders come one after the other: they time kernels.
std::mutex& compiling();

class Executables {
  struct Sized;

 public:
  /// `most`: sets of sizes, 0: as many as take little memory; `memory`: bytes, 0: as many as it takes.
  /// InputError when the model's weights alone need more.
  Executables(SessionModel model, int most, int64_t memory);

  const SessionModel& model() const { return model_; }

  /// A context for as long as this lives.
  class Lease {
   public:
    Lease(Executables& from, std::shared_ptr<Sized> sized, std::unique_ptr<Context> context);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Context& operator*() { return *context_; }

   private:
    Executables& from_;
    std::shared_ptr<Sized> sized_;
    std::unique_ptr<Context> context_;
  };
  /// Compiles for these sizes where that is yet to be done. InputError where they cannot be, or need more
  /// memory than there may be. Waits for others' runs where only then there is memory.
  Lease take(const Bindings& sizes);
  void prepare(const Bindings& sizes);

  std::map<std::string, std::string> choices() const;
  Session::Counts counts();

 private:
  /// Bytes by addresses.
  using Memory = std::map<const void*, int64_t>;
  /// What there is for one set of sizes.
  struct Sized {
    explicit Sized(Bindings which) : sizes(std::move(which)) {}
    const Bindings sizes;
    std::mutex mutex;  // of what follows; held while it is compiled
    std::condition_variable freed;
    std::shared_ptr<const Executable> executable;
    std::vector<std::unique_ptr<Context>> idle;  // the one used last is the last one
    // With Executables::mutex_ held:
    Memory constants;
    int64_t program_bytes = 0;  // with its arena where programs do not take turns with these
    int64_t arena_bytes = 0, plan_bytes = 0;
    int programs = 0;
  };

  std::shared_ptr<Sized> find(const Bindings& sizes);
  void compile(const std::shared_ptr<Sized>& sized);
  void admit(const std::shared_ptr<Sized>& sized, const Executable& executable);
  bool admit_program(Sized& sized);
  std::unique_ptr<Context> make(const Sized& sized) const;
  bool keeps_too_many() const;
  void drop_arenas();
  int64_t live_bytes(Memory memory) const;
  void refuse(const Sized& sized, int64_t constants, int64_t plan, int64_t program) const;
  void give_back(std::shared_ptr<Sized> sized, std::unique_ptr<Context> context);
  void let_go(std::shared_ptr<Sized> sized);

  const SessionModel model_;
  const size_t most_;
  const int64_t memory_;
  const std::shared_ptr<Arenas> arenas_;    // in turns unless memory is limited: then each is counted
  mutable std::mutex mutex_;                // of all that follows
  std::condition_variable freed_;           // something that was dropped runs no more
  std::list<std::shared_ptr<Sized>> kept_;  // the one used last first
  std::vector<std::weak_ptr<Sized>> live_;  // these, and those that somebody still runs
  std::map<std::string, std::string> choices_;
  int64_t compiled_ = 0;
};

}  // namespace millrace
