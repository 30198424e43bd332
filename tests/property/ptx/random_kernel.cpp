#include "random_kernel.hpp"

#include <fmt/format.h>

#include <array>

#include "support/random.hpp"

namespace tangram::testing {
namespace {

/// Emits statements; registers are numbered as they come.
class Writer {
 public:
  explicit Writer(std::mt19937_64& random) : random_(random) {}

  RandomKernel write() {
    launch();
    prologue();
    const int statements = pick(random_, 1, 3);
    for (int i = 0; i < statements; ++i) statement(2);
    line("ret;");
    kernel_.text = header() + body_ + "}\n";
    return std::move(kernel_);
  }

 private:
  bool chance(int percent) { return pick(random_, 1, 100) <= percent; }
  void line(const std::string& text) { body_ += "\t" + text + "\n"; }
  std::string r() { return fmt::format("%r{}", next_++); }
  std::string rd() { return fmt::format("%rd{}", next_++); }
  std::string p() { return fmt::format("%p{}", next_++); }
  std::string label() { return fmt::format("L{}", next_++); }

  void launch() {
    constexpr std::array<std::int64_t, 7> kThreads = {1, 3, 4, 8, 10, 16, 20};
    auto& launch = kernel_.launch;
    launch.entry = "k";
    launch.grid = {pick(random_, 1, 4), chance(20) ? pick(random_, 2, 3) : 1, 1};
    launch.block = {kThreads[static_cast<std::size_t>(pick(random_, 0, 6))], chance(20) ? pick(random_, 2, 3) : 1, 1};
    for (int i = 0; i < kBuffers; ++i) {
      launch.arguments.emplace_back(ptx::BufferArgument{fmt::format("b{}", i), kBufferBytes, kPointerOffset});
    }
    launch.arguments.emplace_back(std::int64_t{pick(random_, 0, 50)});
    launch.arguments.emplace_back(std::int64_t{pick(random_, 1, 6)});
  }

  static std::string header() {
    return ".version 8.5\n.target sm_80\n.address_size 64\n.visible .entry k(\n\t.param .u64 k0,\n\t.param .u64 k1,\n"
           "\t.param .u64 k2,\n\t.param .u32 n,\n\t.param .u32 m\n)\n{\n\t.reg .pred %p<900>;\n\t.reg .b16 %rs<900>;\n"
           "\t.reg .b32 %r<900>;\n\t.reg .b64 %rd<900>;\n";
  }

  void prologue() {
    for (int i = 0; i < kBuffers; ++i) {
      pointers_[static_cast<std::size_t>(i)] = rd();
      line(fmt::format("ld.param.u64 {}, [k{}];", pointers_[static_cast<std::size_t>(i)], i));
      if (chance(50)) {
        const std::string global = rd();
        line(fmt::format("cvta.to.global.u64 {}, {};", global, pointers_[static_cast<std::size_t>(i)]));
        pointers_[static_cast<std::size_t>(i)] = global;
      }
    }
    n_ = special("ld.param.u32 {}, [n];");
    m_ = special("ld.param.u32 {}, [m];");
    tid_ = special("mov.u32 {}, %tid.x;");
    ctaid_ = special("mov.u32 {}, %ctaid.x;");
    tid_y_ = special("mov.u32 {}, %tid.y;");
    ctaid_y_ = special("mov.u32 {}, %ctaid.y;");
    const std::string ntid = special("mov.u32 {}, %ntid.x;");
    const std::string nctaid = special("mov.u32 {}, %nctaid.x;");
    linear_ = r();
    line(fmt::format("mad.lo.s32 {}, {}, {}, {};", linear_, ctaid_, ntid, tid_));
    total_ = r();
    line(fmt::format("mul.lo.s32 {}, {}, {};", total_, ntid, nctaid));
  }

  std::string special(const std::string& form) {
    const std::string reg = r();
    line(fmt::format(fmt::runtime(form), reg));
    return reg;
  }

  // Indices

  /// A digit of a value that is never negative.
  std::string digit(const std::string& value) {
    const std::string result = r();
    const int bits = pick(random_, 1, 4);
    switch (pick(random_, 0, 3)) {
      case 0: line(fmt::format("shr.u32 {}, {}, {};", result, value, bits)); break;
      case 1: line(fmt::format("and.b32 {}, {}, {};", result, value, (1 << bits) - 1)); break;
      case 2: line(fmt::format("div.u32 {}, {}, {};", result, value, pick(random_, 2, 9))); break;
      default: line(fmt::format("rem.u32 {}, {}, {};", result, value, pick(random_, 2, 9))); break;
    }
    return result;
  }

  std::string atom() {
    switch (pick(random_, 0, 9)) {
      case 0: return tid_;
      case 1: return ctaid_;
      case 2: return tid_y_;
      case 3: return ctaid_y_;
      case 4: return digit(linear_);
      case 5:
        if (!counters_.empty())
          return counters_[static_cast<std::size_t>(pick(random_, 0, static_cast<int>(counters_.size()) - 1))];
        return linear_;
      default: return linear_;
    }
  }

  /// 32 bits: atom * factor + constant, perhaps plus another.
  std::string index() {
    const std::string first = atom();
    std::string result = r();
    const int factor = pick(random_, 1, 5);
    switch (pick(random_, 0, 3)) {
      case 0: line(fmt::format("mul.lo.s32 {}, {}, {};", result, first, factor)); break;
      case 1: line(fmt::format("shl.b32 {}, {}, {};", result, first, pick(random_, 0, 2))); break;
      case 2: line(fmt::format("mad.lo.s32 {}, {}, {}, {};", result, first, factor, pick(random_, -9, 9))); break;
      default: line(fmt::format("add.s32 {}, {}, {};", result, first, pick(random_, -5, 20))); break;
    }
    if (!counters_.empty() && chance(60)) {
      const std::string other = r();
      line(fmt::format("mad.lo.s32 {}, {}, {}, {};", other, counters_.back(), pick(random_, 1, 9), result));
      result = other;
    } else if (chance(25)) {
      const std::string other = r();
      line(fmt::format("mad.lo.s32 {}, {}, {}, {};", other, chance(50) ? tid_y_ : ctaid_y_, pick(random_, 1, 40),
                       result));
      result = other;
    }
    if (chance(6)) {
      kernel_.is_affine = false;
      const std::string other = r();
      line(fmt::format("{}.s32 {}, {}, {};", chance(50) ? "min" : "max", other, result, pick(random_, 1, 30)));
      result = other;
    }
    if (chance(6)) {  // in some threads it is moved
      kernel_.is_affine = false;
      const std::string predicate = condition();
      line(fmt::format("@{} add.s32 {}, {}, {};", predicate, result, result, pick(random_, 1, 12)));
    }
    if (chance(10)) {  // bits that may or may not be free
      kernel_.is_affine = false;
      const std::string other = r();
      const char* opcode = chance(50) ? "or" : "xor";
      line(fmt::format("{}.b32 {}, {}, {};", opcode, other, linear_, 1 << pick(random_, 0, 6)));
      result = other;
    }
    if (chance(12)) return gathered();
    return result;
  }

  /// A number that was loaded: buffers hold numbers below 16 at every word.
  std::string gathered() {
    kernel_.is_affine = false;
    const std::string offset = rd();
    const std::string address = rd();
    const std::string loaded = r();
    line(fmt::format("mul.wide.u32 {}, {}, 4;", offset, linear_));
    line(fmt::format("add.s64 {}, {}, {};", address, pointers_[1], offset));
    line(fmt::format("ld.global.b32 {}, [{}];", loaded, address));
    if (chance(50)) return loaded;
    const std::string masked = r();
    line(fmt::format("and.b32 {}, {}, 7;", masked, loaded));
    return masked;
  }

  // Accesses

  std::string pointer() {
    const auto any = [&] { return pointers_[static_cast<std::size_t>(pick(random_, 0, kBuffers - 1))]; };
    if (!chance(12)) return any();
    const std::string chosen = rd();
    const std::string predicate = p();
    if (chance(60)) {
      kernel_.is_affine = false;
      line(fmt::format("setp.lt.s32 {}, {}, {};", predicate, tid_, pick(random_, 1, 12)));
    } else {
      line(fmt::format("setp.gt.s32 {}, {}, {};", predicate, m_, pick(random_, 1, 6)));
    }
    const std::string one = any();
    line(fmt::format("selp.b64 {}, {}, {}, {};", chosen, one, any(), predicate));
    return chosen;
  }

  std::string address(int width) {
    const std::string offset = rd();
    const std::string result = rd();
    const std::string index = this->index();
    if (chance(50)) {
      line(fmt::format("mul.wide.s32 {}, {}, {};", offset, index, width));
    } else {
      const std::string wide = rd();
      line(fmt::format("cvt.s64.s32 {}, {};", wide, index));
      line(fmt::format("mul.lo.s64 {}, {}, {};", offset, wide, width));
    }
    const bool moves = !moving_.empty() && chance(50);
    line(fmt::format("add.s64 {}, {}, {};", result, moves ? moving_.back() : pointer(), offset));
    return result;
  }

  std::string guard() {
    if (!chance(30)) return "";
    return fmt::format("@{}{} ", chance(30) ? "!" : "", condition());
  }

  std::string condition() {
    constexpr std::array<const char*, 5> kRelations = {"lt", "le", "gt", "ge", "lt"};
    const std::string predicate = p();
    const std::string value = chance(70) ? linear_ : atom();
    const std::string limit = chance(50) ? n_ : std::to_string(pick(random_, 0, 50));
    const int relation = pick(random_, 0, 11);
    const std::string name = relation == 11   ? "eq"
                             : relation == 10 ? "ne"
                                              : kRelations[static_cast<std::size_t>(relation % 5)];
    line(fmt::format("setp.{}.{} {}, {}, {};", name, chance(20) ? "u32" : "s32", predicate, value, limit));
    if (!chance(15)) return predicate;
    const std::string other = p();
    const std::string both = p();
    line(fmt::format("setp.lt.s32 {}, {}, {};", other, tid_y_, pick(random_, 1, 3)));
    line(fmt::format("and.pred {}, {}, {};", both, predicate, other));
    return both;
  }

  void access() {
    constexpr std::array<int, 6> kWidths = {4, 4, 4, 8, 16, 2};
    const int width = kWidths[static_cast<std::size_t>(pick(random_, 0, 5))];
    const std::string address = this->address(width);
    const std::string where =
        fmt::format("[{}{}]", address, chance(30) ? fmt::format("+{}", width * pick(random_, 1, 5)) : "");
    const std::string guard = this->guard();
    const int kind = pick(random_, 0, 9);
    const std::string a = r();
    if (kind <= 1 && width == 4) {
      line(kind == 0 ? fmt::format("{}red.global.add.u32 {}, 1;", guard, where)
                     : fmt::format("{}atom.global.add.u32 {}, {}, 1;", guard, a, where));
    } else if (width == 16) {
      const std::string list = fmt::format("{{{}, {}, {}, {}}}", r(), r(), r(), r());
      line(kind <= 5 ? fmt::format("{}ld.global.v4.b32 {}, {};", guard, list, where)
                     : fmt::format("{}st.global.v4.b32 {}, {};", guard, where, list));
    } else if (width == 8) {
      const std::string wide = rd();
      line(kind <= 5 ? fmt::format("{}ld.global.b64 {}, {};", guard, wide, where)
                     : fmt::format("{}st.global.b64 {}, {};", guard, where, wide));
    } else {
      const std::string type = width == 2 ? "b16" : "b32";
      const std::string value = width == 2 ? fmt::format("%rs{}", next_++) : a;
      line(kind <= 5 ? fmt::format("{}ld.global.{} {}, {};", guard, type, value, where)
                     : fmt::format("{}st.global.{} {}, {};", guard, type, where, value));
    }
  }

  // Control

  void statement(int depth) {
    const int kind = pick(random_, 0, 9);
    if (depth == 0 || kind <= 3) return access();
    if (kind == 4) return early_exit();
    if (kind <= 6) return branch(depth);
    if (kind == 7) return while_loop(depth);
    if (kind == 8) return do_loop(depth);
    stride_loop(depth);
  }

  void body(int depth) {
    const int statements = pick(random_, 1, 2);
    for (int i = 0; i < statements; ++i) statement(depth - 1);
  }

  void early_exit() {
    const std::string predicate = condition();
    const std::string end = label();
    line(fmt::format("@!{} bra {};", predicate, end));
    line("ret;");
    body_ += end + ":\n";
  }

  void branch(int depth) {
    const std::string end = label();
    const std::string predicate = condition();
    if (chance(40)) {
      const std::string otherwise = label();
      line(fmt::format("@{} bra {};", predicate, otherwise));
      body(depth);
      line(fmt::format("bra.uni {};", end));
      body_ += otherwise + ":\n";
      body(depth);
    } else {
      line(fmt::format("@{} bra {};", predicate, end));
      body(depth);
    }
    body_ += end + ":\n";
  }

  void while_loop(int depth) {
    const std::string counter = r();
    const std::string predicate = p();
    const std::string head = label();
    const std::string end = label();
    line(fmt::format("mov.u32 {}, {};", counter, pick(random_, 0, 2)));
    body_ += head + ":\n";
    line(fmt::format("setp.ge.s32 {}, {}, {};", predicate, counter,
                     chance(60) ? m_ : std::to_string(pick(random_, 1, 6))));
    line(fmt::format("@{} bra {};", predicate, end));
    counters_.push_back(counter);
    body(depth);
    if (chance(15)) {  // left early by some threads
      kernel_.is_affine = false;
      line(fmt::format("@{} bra {};", condition(), end));
    }
    if (chance(20)) body(depth);
    counters_.pop_back();
    line(fmt::format("add.s32 {}, {}, {};", counter, counter, pick(random_, 1, 2)));
    line(fmt::format("bra.uni {};", head));
    body_ += end + ":\n";
  }

  /// As compilers write loops: the test behind the body, the counter going up or down to zero.
  void do_loop(int depth) {
    const std::string counter = r();
    const std::string predicate = p();
    const std::string head = label();
    const int trips = pick(random_, 1, 6);
    const bool down = chance(40);
    line(fmt::format("mov.u32 {}, {};", counter, down ? trips : 0));
    const std::string moving = rd();
    line(fmt::format("add.s64 {}, {}, {};", moving, pointer(), 16 * pick(random_, 0, 3)));
    body_ += head + ":\n";
    counters_.push_back(counter);
    moving_.push_back(moving);
    body(depth);
    counters_.pop_back();
    moving_.pop_back();
    line(fmt::format("add.s64 {}, {}, {};", moving, moving, 16 * pick(random_, -1, 4)));
    line(fmt::format("add.s32 {}, {}, {};", counter, counter, down ? -1 : 1));
    line(fmt::format("setp.{}.s32 {}, {}, {};",
                     chance(50) ? "ne"
                     : down     ? "gt"
                                : "lt",
                     predicate, counter, down ? 0 : trips));
    line(fmt::format("@{} bra {};", predicate, head));
  }

  void stride_loop(int depth) {
    const std::string counter = r();
    const std::string predicate = p();
    const std::string head = label();
    const std::string end = label();
    line(fmt::format("mov.u32 {}, {};", counter, linear_));
    body_ += head + ":\n";
    line(fmt::format("setp.ge.s32 {}, {}, {};", predicate, counter, n_));
    line(fmt::format("@{} bra {};", predicate, end));
    counters_.push_back(counter);
    body(depth);
    counters_.pop_back();
    line(fmt::format("add.s32 {}, {}, {};", counter, counter, total_));
    line(fmt::format("bra.uni {};", head));
    body_ += end + ":\n";
  }

  std::mt19937_64& random_;
  RandomKernel kernel_;
  std::string body_;
  int next_ = 0;
  std::array<std::string, kBuffers> pointers_;
  std::vector<std::string> counters_;
  std::vector<std::string> moving_;  ///< pointers that step with a loop
  std::string n_, m_, tid_, ctaid_, tid_y_, ctaid_y_, linear_, total_;
};

}  // namespace

RandomKernel random_kernel(std::mt19937_64& random) { return Writer(random).write(); }

}  // namespace tangram::testing
