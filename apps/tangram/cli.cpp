#include "cli.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "command_help.hpp"

namespace tangram::app {

namespace {

using Parsed = Expected<std::variant<Invocation, HelpText>>;

/// Writes the value of one option into CLI11's grammar, by the type of its target.
class OptionAdder {
 public:
  OptionAdder(CLI::App& app, const Option& option)
      : app_(app),
        option_(option),
        flags_(fmt::format("{}--{}", option.short_name.empty() ? "" : fmt::format("-{},", option.short_name),
                           option.name)) {}

  void operator()(bool* target) const { app_.add_flag(flags_, *target); }
  void operator()(std::string* target) const { app_.add_option(flags_, *target); }
  void operator()(std::int64_t* target) const { app_.add_option(flags_, *target); }
  void operator()(std::vector<std::string>* target) const {
    CLI::Option* added = app_.add_option(flags_, *target)->allow_extra_args(false);
    if (option_.list) added->delimiter(',');
  }
  void operator()(const Option::Function& function) const {
    if (option_.value.empty()) {
      app_.add_flag_callback(flags_, [function] { function("true"); });
      return;
    }
    CLI::Option* added = app_.add_option_function<std::string>(flags_, function);
    option_.list ? added->join(',') : added->take_last();
  }

 private:
  CLI::App& app_;
  const Option& option_;
  std::string flags_;
};

class Parser {
 public:
  Parser() : root_("", "tangram") {
    root_.set_help_flag("-h,--help");
    root_.add_flag("--version", version_);
    root_.require_subcommand(0, 1);
    root_.allow_extras();
    for (const Command& command : commands()) add(bind(command));
  }

  Parsed parse(int argc, const char* const* argv) {
    try {
      root_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return HelpText{parsed() ? command_help(*parsed()->command) : program_help()};
    } catch (const CLI::ArgumentMismatch& error) {
      // "--top: 1 required K missing", "--output: At Most 1 required but received 2"
      const std::string text = error.what();
      const std::string option = text.substr(0, text.find(':'));
      const bool repeated = text.find("At Most") != std::string::npos;
      return repeated ? wrong("repeated-option", fmt::format("{} is given more than once", option))
                      : wrong("missing-value", fmt::format("{} needs a value", option));
    } catch (const CLI::ParseError& error) {
      return wrong("usage", error.what());
    }
    return interpret();
  }

 private:
  void add(Invocation invocation) {
    CLI::App* sub = root_.add_subcommand(invocation.command->name);
    sub->set_help_flag("-h,--help");
    sub->allow_extras();
    for (const Argument& argument : invocation.parameters.arguments) {
      std::visit([&](auto* target) { sub->add_option(argument.name, *target); }, argument.target);
    }
    for (const Option& option : invocation.parameters.options) {
      if (option.name != "help") std::visit(OptionAdder(*sub, option), option.target);
    }
    invocations_.push_back(std::move(invocation));
  }

  /// The command that was given, if one was.
  const Invocation* parsed() const {
    const auto given = root_.get_subcommands();
    if (given.empty()) return nullptr;
    return &*std::ranges::find(invocations_, given.front()->get_name(),
                               [](const Invocation& invocation) { return invocation.command->name; });
  }

  const CLI::App& grammar_of(const Invocation& invocation) const {
    return *root_.get_subcommand(invocation.command->name);
  }

  Parsed interpret() const {
    const Invocation* invocation = parsed();
    if (invocation == nullptr) return without_command();
    if (const auto before = root_.remaining(); !before.empty()) return unknown_before_command(before.front());
    for (const auto complaint : {&Parser::extras, &Parser::missing, &Parser::empty}) {
      if (auto found = (this->*complaint)(*invocation)) return fail(std::move(*found));
    }
    return *invocation;
  }

  Parsed without_command() const {
    if (version_) return bind(*find_command("version"));
    const std::vector<std::string> words = root_.remaining();
    return words.empty() ? wrong("missing-command", "no command given") : unknown_before_command(words.front());
  }

  Parsed unknown_before_command(const std::string& word) const {
    if (word.starts_with('-')) {
      return fail(usage_mistake("unknown-option", fmt::format("{} may not precede the command", word),
                                "options follow the command, as in tangram plan --json"));
    }
    const std::vector<std::string> names = command_names();
    return fail(usage_mistake("unknown-command", fmt::format("unknown command \"{}\"", word),
                              suggestion(word, names, listing("commands", names))));
  }

  /// The first word that no option or argument took.
  std::optional<Diagnostics> extras(const Invocation& invocation) const {
    const std::vector<std::string> words = grammar_of(invocation).remaining();
    if (words.empty()) return std::nullopt;
    const auto option =
        std::ranges::find_if(words, [](const std::string& word) { return word.size() >= 2 && word.front() == '-'; });
    if (option != words.end()) return unknown_option(invocation, option->substr(0, option->find('=')));
    return usage_mistake("extra-argument",
                         fmt::format("{} takes no further argument \"{}\"", invocation.command->name, words.front()),
                         hint_to_help());
  }

  Diagnostics unknown_option(const Invocation& invocation, const std::string& name) const {
    std::vector<std::string> known;
    for (const Option& option : invocation.parameters.options) known.push_back("--" + option.name);
    return usage_mistake("unknown-option", fmt::format("{} has no option {}", invocation.command->name, name),
                         suggestion(name, known, hint_to_help()));
  }

  /// All arguments that are not there, each with what it is.
  std::optional<Diagnostics> missing(const Invocation& invocation) const {
    if (invocation.common->show_origin) return std::nullopt;
    std::vector<std::string> missing;
    for (const Argument& argument : invocation.parameters.arguments) {
      if (argument.required && !argument.given())
        missing.push_back(fmt::format("{} ({})", argument.name, argument.help));
    }
    if (missing.empty()) return std::nullopt;
    return usage_mistake("missing-argument",
                         fmt::format("{} needs {}", invocation.command->name, fmt::join(missing, " and ")),
                         hint_to_help());
  }

  /// `-o ''` comes from a script whose variable is not set.
  std::optional<Diagnostics> empty(const Invocation& invocation) const {
    for (const Option& option : invocation.parameters.options) {
      if (option.value.empty()) continue;
      const auto values = grammar_of(invocation).get_option("--" + option.name)->results();
      if (std::ranges::none_of(values, &std::string::empty)) continue;
      return usage_mistake("missing-value", fmt::format("--{} is empty", option.name),
                           "give it a value, or leave the option out");
    }
    return std::nullopt;
  }

  Parsed wrong(std::string code, std::string message) const {
    return fail(usage_mistake(std::move(code), std::move(message), hint_to_help()));
  }

  std::string hint_to_help() const {
    return parsed() ? fmt::format("tangram {} --help", parsed()->command->name) : "tangram --help";
  }

  CLI::App root_;
  std::vector<Invocation> invocations_;
  bool version_ = false;
};

}  // namespace

Expected<std::variant<Invocation, HelpText>> parse_command_line(int argc, const char* const* argv) {
  return Parser().parse(argc, argv);
}

bool asks_for_json(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") return false;
    if (word == "--json") return true;
  }
  return false;
}

}  // namespace tangram::app
