#include "backend/cpu/codegen/matmul.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace millrace::codegen {

int64_t Product::rows() const {
  const int64_t width = panel_vectors();
  const int64_t fit =
      std::clamp<int64_t>((registers - width - 1) / (width * parts()), 1, std::min<int64_t>(m, 16));
  const int64_t blocks = (m + fit - 1) / fit;
  return (m + blocks - 1) / blocks;
}

std::string Product::text(int64_t block_rows) const {
  return fmt::format("product {}x{} transpose_a {} lanes {} rows {} vectors {} of {} packed {}\n", k, n,
                     transpose_a ? m : 0, lanes, block_rows, block_vectors(), panel_vectors(), panels_packed);
}

namespace {

using llvm::Value;

class ProductEmitter {
 public:
  ProductEmitter(const Product& p, int64_t rows, llvm::Module& module, const std::string& name)
      : p_(p), rows_(rows), context_(module.getContext()), b_(context_) {
    llvm::Type* type64 = b_.getInt64Ty();
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), type64, type64, type64}, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    function_->addFnAttr("prefer-vector-width", "512");
    float_ = b_.getFloatTy();
    vector_ = llvm::FixedVectorType::get(float_, static_cast<unsigned>(p.lanes));
  }

  void run() {
    b_.SetInsertPoint(new_block("entry"));
    for (unsigned i = 0; i < 3; ++i)
      buffers_[i] =
          b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), function_->getArg(0), i));
    loop(function_->getArg(1), function_->getArg(2), [&](Value* outer) {
      Value* blocks = function_->getArg(3);
      Value* columns = b_.CreateUDiv(outer, blocks);
      Value* own = b_.CreateURem(outer, blocks);
      block_of_rows(b_.CreateMul(own, i64_(rows_)), columns);
    });
    b_.CreateRetVoid();
  }

 private:
  llvm::BasicBlock* new_block(const char* name) {
    return llvm::BasicBlock::Create(context_, name, function_);
  }
  Value* i64_(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }

  template <typename Inside>
  void loop(Value* begin, Value* end, Inside&& inside) {
    llvm::BasicBlock *before = b_.GetInsertBlock(), *body = new_block("loop"), *after = new_block("done");
    b_.CreateBr(body);
    b_.SetInsertPoint(body);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(begin, before);
    inside(i);
    Value* next = b_.CreateAdd(i, i64_(1));
    i->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpSLT(next, end), body, after);
    b_.SetInsertPoint(after);
  }

  template <typename First, typename Second>
  void either(bool always, Value* condition, First&& first, Second&& second) {
    if (always) return first();
    llvm::BasicBlock *yes = new_block("yes"), *no = new_block("no"), *after = new_block("after");
    b_.CreateCondBr(condition, yes, no);
    b_.SetInsertPoint(yes);
    first();
    b_.CreateBr(after);
    b_.SetInsertPoint(no);
    second();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  void block_of_rows(Value* row, Value* columns) {
    const int64_t count = p_.column_blocks(), width = p_.block_vectors(),
                  last = p_.vectors() - (count - 1) * width, tail = p_.n % p_.lanes;
    Value* column = b_.CreateMul(columns, i64_(p_.block_columns()));
    either(
        width == last && (tail == 0 || count == 1), b_.CreateICmpSLT(columns, i64_(count - 1)),
        [&] { block(row, column, width, count == 1 ? tail : 0); }, [&] { block(row, column, last, tail); });
  }

  /// The active lanes of the last vector.
  Value* mask(int64_t active) {
    std::vector<llvm::Constant*> lanes;
    for (int i = 0; i < p_.lanes; ++i) lanes.push_back(b_.getInt1(i < active));
    return llvm::ConstantVector::get(lanes);
  }

  Value* load(Value* at, bool masked, int64_t tail) {
    const llvm::Align align(4);
    if (!masked) return b_.CreateAlignedLoad(vector_, at, align);
    return b_.CreateMaskedLoad(vector_, at, align, mask(tail), llvm::Constant::getNullValue(vector_));
  }

  /// `width` vectors of each row of the result; of the last vector only `tail` lanes when that is not 0.
  /// Where sums are few, each is kept in several parts, of every so many k, that do not wait for each other.
  void block(Value* row, Value* column, int64_t width, int64_t tail) {
    const int64_t rows = rows_, row_step = p_.transpose_a ? 1 : p_.k, parts = p_.parts();
    Value* a = b_.CreateGEP(float_, buffers_[0], b_.CreateMul(row, i64_(row_step)));
    Value* right =
        b_.CreateGEP(float_, buffers_[1], p_.panels_packed ? b_.CreateMul(column, i64_(p_.k)) : column);
    llvm::BasicBlock *before = b_.GetInsertBlock(), *body = new_block("sum"), *after = new_block("store");
    b_.CreateBr(body);
    b_.SetInsertPoint(body);
    llvm::PHINode* k = b_.CreatePHI(b_.getInt64Ty(), 2);
    k->addIncoming(i64_(0), before);
    std::vector<llvm::PHINode*> begun;
    for (int64_t i = 0; i < parts * rows * width; ++i) {
      begun.push_back(b_.CreatePHI(vector_, 2));
      begun.back()->addIncoming(llvm::Constant::getNullValue(vector_), before);
    }
    std::vector<Value*> sums(begun.begin(), begun.end());
    const auto step = [&](Value* at, int64_t part) {
      multiply_add(a, right, at, width, tail, sums.begin() + part * rows * width);
    };
    for (int64_t part = 0; part < parts; ++part) step(b_.CreateAdd(k, i64_(part)), part);
    Value* next_k = b_.CreateAdd(k, i64_(parts));
    k->addIncoming(next_k, body);
    for (size_t i = 0; i < sums.size(); ++i) begun[i]->addIncoming(sums[i], body);
    b_.CreateCondBr(b_.CreateICmpSLT(next_k, i64_(p_.k / parts * parts)), body, after);
    b_.SetInsertPoint(after);
    for (int64_t rest = p_.k / parts * parts; rest < p_.k; ++rest) step(i64_(rest), rest % parts);
    for (int64_t half = parts / 2; half > 0; half /= 2)
      for (int64_t i = 0; i < half * rows * width; ++i)
        sums[i] = b_.CreateFAdd(sums[i], sums[i + half * rows * width]);
    Value* y = b_.CreateGEP(float_, buffers_[2], b_.CreateAdd(b_.CreateMul(row, i64_(p_.n)), column));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < width; ++v) {
        Value* at = b_.CreateGEP(float_, y, i64_(r * p_.n + v * p_.lanes));
        if (tail > 0 && v == width - 1)
          b_.CreateMaskedStore(sums[r * width + v], at, llvm::Align(4), mask(tail));
        else
          b_.CreateAlignedStore(sums[r * width + v], at, llvm::Align(4));
      }
  }

  /// Adds a's column k times the right side's row k to the sums of a block.
  void multiply_add(Value* a, Value* right, Value* k, int64_t width, int64_t tail,
                    std::vector<Value*>::iterator sums) {
    const int64_t row_step = p_.transpose_a ? 1 : p_.k, k_step = p_.transpose_a ? p_.m : 1;
    const int64_t right_step = p_.panels_packed ? p_.panel_columns() : p_.n;
    Value* a_k = b_.CreateGEP(float_, a, b_.CreateMul(k, i64_(k_step)));
    Value* right_k = b_.CreateGEP(float_, right, b_.CreateMul(k, i64_(right_step)));
    std::vector<Value*> columns;
    for (int64_t v = 0; v < width; ++v) {
      int64_t at = v * p_.lanes;
      if (p_.panels_packed) at += v / p_.panel_vectors() * (p_.k - 1) * p_.panel_columns();
      columns.push_back(load(b_.CreateGEP(float_, right_k, i64_(at)),
                             !p_.panels_packed && tail > 0 && v == width - 1, tail));
    }
    for (int64_t r = 0; r < rows_; ++r) {
      Value* one = b_.CreateLoad(float_, b_.CreateGEP(float_, a_k, i64_(r * row_step)));
      Value* spread = b_.CreateVectorSplat(static_cast<unsigned>(p_.lanes), one);
      for (int64_t v = 0; v < width; ++v, ++sums)
        *sums = b_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_}, {spread, columns[v], *sums});
    }
  }

  const Product& p_;
  const int64_t rows_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_;
  llvm::Type* float_;
  llvm::FixedVectorType* vector_;
  Value* buffers_[3] = {};
};

}  // namespace

void emit_product(const Product& product, int64_t block_rows, llvm::Module& module, const std::string& name) {
  ProductEmitter(product, block_rows, module, name).run();
}

}  // namespace millrace::codegen
