#include "provenance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "inline_calls.hpp"
#include "opcodes.hpp"
#include "register_origins.hpp"
#include "tangram/base/at.hpp"

namespace tangram::ptx {
namespace {

constexpr auto kFromMemory = "the pointer was loaded from memory";
constexpr auto kFromNowhere = "nothing says what the address points into";

bool is_pointer_kind(const Base& base) {
  return base.kind == BaseKind::kParameter || base.kind == BaseKind::kTensorMap || base.kind == BaseKind::kVariable;
}

class Resolver {
 public:
  Resolver(const Module& module, const Function& body) : module_(module), body_(body), origins_(module, body) {
    confirm();
  }

  Provenance run() {
    for (std::size_t i = 0; i < body_.body.size(); ++i) add(static_cast<int>(i), body_.body[i]);
    return std::move(result_);
  }

 private:
  /// Parameters that are certainly pointers: an integer that is added to one is then no candidate beside it.
  void confirm() {
    for (int parameter = 0; parameter < body_.parameters; ++parameter) {
      if (body_.parameter(parameter).is_pointer) confirmed_.insert({BaseKind::kParameter, parameter, 0});
    }
    for (const Instruction& instruction : body_.body) {
      if (instruction.opcode == "cvta" && instruction.has("to") && instruction.operands.size() > 1) {
        confirm_single(origins_.of(instruction.operands[1]));
      }
      for (const MemoryUse& use : memory_uses(instruction)) confirm_single(origins_.of(*use.address));
    }
  }

  void confirm_single(const Origins& origins) {
    for (const Sum& sum : origins.sums()) {
      if (sum.size() == 1 && is_pointer_kind(sum.front())) confirmed_.insert(sum.front());
    }
  }

  void add(int number, const Instruction& instruction) {
    const OpcodeClass what = class_of(instruction);
    if (what == OpcodeClass::kCall) return add_call(instruction);
    if (what == OpcodeClass::kTexture) return pin(instruction, "the array behind a texture is not known");
    if (what == OpcodeClass::kSurface) return pin(instruction, "the array behind a surface is not known");
    if (what == OpcodeClass::kUnknown) return add_unknown(instruction);
    for (const MemoryUse& use : memory_uses(instruction)) add_use(number, instruction, use);
  }

  void pin(const Instruction& instruction, std::string why) {
    result_.pinned.push_back({instruction.place, fmt::format("{}: {}", instruction.text(), why)});
  }

  void add_call(const Instruction& call) {
    const CallParts parts = parts_of_call(call);
    if (parts.callee == nullptr || parts.callee->kind != OperandKind::kFunction) {
      return pin(call, "calls a function through a pointer");
    }
    const std::string& name = parts.callee->name;
    if (is_harmless_call(name) || name == "malloc") return;
    const Function* callee = module_.find(name);
    const bool has_body = callee != nullptr && callee->has_body;
    pin(call,
        fmt::format("calls {}, {}", name, has_body ? "which is recursive or too long" : "whose body is not here"));
  }

  void add_unknown(const Instruction& instruction) {
    const auto touches = [](const Operand& operand) { return operand.kind == OperandKind::kAddress; };
    if (std::ranges::any_of(instruction.operands, touches)) {
      pin(instruction, "an unknown instruction with an address");
    }
  }

  /// The bases that an address may have if it is this sum.
  [[nodiscard]] std::vector<Base> bases_of(const Sum& sum) const {
    std::vector<Base> pointers;
    bool is_on_chip = false;
    bool has_other = false;
    for (const Base& base : sum) {
      if (is_pointer_kind(base)) pointers.push_back(base);
      is_on_chip = is_on_chip || base.kind == BaseKind::kOnChip;
      has_other = has_other || base.kind == BaseKind::kLoaded || base.kind == BaseKind::kUnknown;
    }
    if (is_on_chip) return {};
    std::vector<Base> sure;
    std::ranges::copy_if(pointers, std::back_inserter(sure), [&](const Base& b) { return confirmed_.contains(b); });
    if (!sure.empty()) return sure;
    if (has_other || pointers.empty()) {
      const bool loaded = std::ranges::find(sum, BaseKind::kLoaded, &Base::kind) != sum.end();
      pointers.push_back({loaded ? BaseKind::kLoaded : BaseKind::kUnknown, -1, 0});
    }
    return pointers;
  }

  void add_use(int number, const Instruction& instruction, const MemoryUse& use) {
    Access access{number, use.effect, instruction.text(), instruction.place, use.width, {}, false};
    const Origins origins = origins_.of(*use.address);
    access.indirect = origins.data();
    std::set<Base> bases;
    for (const Sum& sum : origins.sums()) {
      for (const Base& base : bases_of(sum)) bases.insert(base);
    }
    if (origins.sums().empty()) bases.insert(Base{});
    if (use.space == Space::kGlobal && bases.empty()) bases.insert(Base{});
    for (const Base& base : bases) {
      if (!is_pointer_kind(base)) pin(instruction, base.kind == BaseKind::kLoaded ? kFromMemory : kFromNowhere);
    }
    access.bases.assign(bases.begin(), bases.end());
    if (!access.bases.empty()) result_.accesses.push_back(std::move(access));
  }

  const Module& module_;
  const Function& body_;
  RegisterOrigins origins_;
  std::set<Base> confirmed_;
  Provenance result_;
};

}  // namespace

Provenance provenance_of(const Module& module, const Function& body) { return Resolver(module, body).run(); }

}  // namespace tangram::ptx
