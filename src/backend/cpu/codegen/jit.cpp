#include "backend/cpu/codegen/jit.h"

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "backend/cpu/codegen/object_cache.h"
#include "base/cpu.h"
#include "base/format.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

namespace millrace::codegen {
namespace {

namespace orc = llvm::orc;

template <typename T>
T check(llvm::Expected<T> value, const char* what) {
  if (!value) fail<InternalError>("LLVM could not {}: {}", what, llvm::toString(value.takeError()));
  return std::move(*value);
}

void check(llvm::Error error, const char* what) {
  if (error) fail<InternalError>("LLVM could not {}: {}", what, llvm::toString(std::move(error)));
}

/// What turns modules into objects. Setting up LLVM's hundred passes takes about a millisecond, a fifth of
/// what most nests take, so they are kept; `llc -compile-twice` runs the same ones again, too.
class ObjectCompiler {
 public:
  explicit ObjectCompiler(std::unique_ptr<llvm::TargetMachine> machine) : machine_(std::move(machine)) {
    llvm::MCContext* context = nullptr;
    if (machine_->addPassesToEmitMC(passes_, context, stream_))
      fail<InternalError>("LLVM cannot make objects for this machine");
  }

  const llvm::TargetMachine& machine() const { return *machine_; }

  std::string operator()(llvm::Module& module) {
    object_.clear();
    passes_.run(module);
    return std::string(object_.data(), object_.size());
  }

 private:
  std::unique_ptr<llvm::TargetMachine> machine_;
  llvm::SmallVector<char, 0> object_;
  llvm::raw_svector_ostream stream_{object_};
  llvm::legacy::PassManager passes_;
};

/// LLVM's compiler and linker for this machine; one in the process, never destroyed (kernels may outlive
/// static objects).
class Jit {
 public:
  static Jit& instance() {
    static Jit* const jit = new Jit;
    return *jit;
  }

  std::shared_ptr<const Code> compile(const std::string& text, const EmitFunction& emit_code);
  void forget_unused();
  CodeCounts counts() const { return {compiled_, from_disk_, from_memory_}; }

 private:
  Jit();
  std::unique_ptr<ObjectCompiler> take_compiler();
  std::string make_object(const std::string& text, const EmitFunction& emit_code, const std::string& name);
  std::shared_ptr<const Code> link(const std::string& object, const std::string& name);

  static constexpr size_t kMaxKept = 2048;  // kernels, of a few KB each, beyond which unused ones go

  std::unique_ptr<orc::LLJIT> lljit_;
  std::unique_ptr<orc::JITTargetMachineBuilder> builder_;
  std::string key_prefix_;
  std::atomic<int64_t> compiled_{0}, from_disk_{0}, from_memory_{0}, dylibs_{0};

  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<ObjectCompiler>> compilers_;
  std::map<std::string, std::shared_ptr<const Code>, std::less<>> kept_;  // by key
};

Jit::Jit() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  builder_ = std::make_unique<orc::JITTargetMachineBuilder>(
      check(orc::JITTargetMachineBuilder::detectHost(), "recognise this CPU"));
  for (const std::string& feature : std::vector<std::string>(builder_->getFeatures().getFeatures()))
    if (const std::string name = feature.substr(1); !cpu_cap_allows(name))
      builder_->getFeatures().AddFeature(name, false);
  builder_->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  builder_->setRelocationModel(llvm::Reloc::PIC_);
  builder_->setCodeModel(llvm::CodeModel::Small);
  builder_->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Standard;  // where `contract` says so
  key_prefix_ = fmt::format("codegen {} LLVM {} {} {}\n", code_sources(), LLVM_VERSION_STRING,
                            builder_->getCPU(), builder_->getFeatures().getString());
  lljit_ = check(orc::LLJITBuilder().setJITTargetMachineBuilder(*builder_).create(), "start its linker");

  // Compiled code calls the C library's functions: exp, pow, memset …
  lljit_->getMainJITDylib().addGenerator(check(
      orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(lljit_->getDataLayout().getGlobalPrefix()),
      "find the C library"));
}

std::unique_ptr<ObjectCompiler> Jit::take_compiler() {
  {
    std::lock_guard lock(mutex_);
    if (!compilers_.empty()) {
      auto compiler = std::move(compilers_.back());
      compilers_.pop_back();
      return compiler;
    }
  }
  return std::make_unique<ObjectCompiler>(check(builder_->createTargetMachine(), "make a target machine"));
}

std::string Jit::make_object(const std::string& text, const EmitFunction& emit_code,
                             const std::string& name) {
  std::unique_ptr<ObjectCompiler> compiler = take_compiler();
  llvm::LLVMContext context;
  llvm::Module module(name, context);
  module.setDataLayout(compiler->machine().createDataLayout());
  module.setTargetTriple(compiler->machine().getTargetTriple().str());
  emit_code(module, name);
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::verifyModule(module, &stream))
    fail<InternalError>("a nest gave invalid code: {}\n{}", problems, text);
  std::string object = (*compiler)(module);
  std::lock_guard lock(mutex_);
  compilers_.push_back(std::move(compiler));
  return object;
}

std::shared_ptr<const Code> Jit::link(const std::string& object, const std::string& name) {
  orc::ExecutionSession& session = lljit_->getExecutionSession();
  orc::JITDylib& library = session.createBareJITDylib(fmt::format("{}.{}", name, dylibs_++));
  // The library is the code's own and goes when the code does, also where linking fails.
  const std::shared_ptr<Code> code(new Code, [&session, &library](const Code* last) {
    delete last;
    llvm::consumeError(session.removeJITDylib(library));
  });
  library.addToLinkOrder(lljit_->getMainJITDylib());
  check(lljit_->addObjectFile(library, llvm::MemoryBuffer::getMemBufferCopy(object, name)), "link a nest");
  code->function = check(lljit_->lookup(library, name), "link a nest").toPtr<NestFunction>();
  return code;
}

std::shared_ptr<const Code> Jit::compile(const std::string& text, const EmitFunction& emit_code) {
  const std::string key = key_prefix_ + text;
  {
    std::lock_guard lock(mutex_);
    if (const auto at = kept_.find(key); at != kept_.end()) {
      ++from_memory_;
      return at->second;
    }
  }
  const std::string name = "nest_" + hash_name(key);
  std::shared_ptr<const Code> code;
  if (const auto object = find_object(key)) {
    try {
      code = link(*object, name);
      ++from_disk_;
    } catch (const InternalError&) {
      // Whole by its checksum but not what the linker takes: compiled again.
    }
  }
  if (!code) {
    const std::string object = make_object(text, emit_code, name);
    code = link(object, name);
    store_object(key, object);
    ++compiled_;
  }
  {
    std::lock_guard lock(mutex_);
    code = kept_.try_emplace(key, code).first->second;  // another thread may have been faster
    if (kept_.size() <= kMaxKept) return code;
  }
  forget_unused();
  return code;
}

void Jit::forget_unused() {
  std::lock_guard lock(mutex_);
  std::erase_if(kept_, [](const auto& each) { return each.second.use_count() == 1; });
}

}  // namespace

std::shared_ptr<const Code> compile(const std::string& text, const EmitFunction& emit_code) {
  return Jit::instance().compile(text, emit_code);
}

CodeCounts code_counts() { return Jit::instance().counts(); }

void forget_unused_code() { Jit::instance().forget_unused(); }

}  // namespace millrace::codegen
