#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "cache_settings.hpp"
#include "command.hpp"
#include "parallelizers.hpp"
#include "table.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;
using parallelizer::CachedAnswer;
using parallelizer::CachedPlugin;

/// `cache show`, `cache path`, `cache clear [NAME]`, `cache verify [NAME]`.
struct CacheArguments {
  std::string action;
  std::string name;           ///< empty: not given
  std::string sample = "20";  ///< verify: answers of each plugin, or "all"
};

Parameters parameters_of(CacheArguments& a) {
  return {{{"ACTION", "show, verify, clear or path", &a.action},
           {"NAME", "verify and clear: only this plugin", &a.name, /*required=*/false}},
          {{"sample", "N", "verify: number of answers per plugin, or all (default: 20)", &a.sample}}};
}

Json document_of(const std::string& file) {
  Json document;
  document["schema"] = "tangram.cache/1";
  document["status"] = "ok";
  document["file"] = file;
  return document;
}

std::string mebibytes(Bytes bytes) { return fmt::format("{:.1f} MiB", bytes.as_double() / (1 << 20)); }

/// Nothing, where there is no file yet: looking does not make one.
Expected<std::unique_ptr<parallelizer::AnswerCache>> open_existing(const std::string& file, const Settings& settings) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return nullptr;
  return parallelizer::AnswerCache::open(file, cache_limit(settings));
}

std::optional<Diagnostic> problem_of(const std::unique_ptr<parallelizer::AnswerCache>& cache) {
  return cache != nullptr ? cache->problem() : std::nullopt;
}

ExitCode show(const std::string& file, const Context& context) {
  const auto cache = open_existing(file, context.settings);
  if (!cache) return report(context.terminal, context.json, cache.error());
  const parallelizer::CacheContents contents = *cache ? (*cache)->contents() : parallelizer::CacheContents{};
  const planner::SearchCacheContents searches =
      *cache ? planner::search_cache_contents((*cache)->file()) : planner::SearchCacheContents{};
  const Bytes size = *cache ? (*cache)->file().used() : Bytes(0);
  if (const auto problem = problem_of(*cache)) return report(context.terminal, context.json, {*problem});

  Table table(
      {{"plugin"}, {"version"}, {"answers", true}, {"size", true}, {"hits", true}, {"misses", true}, {"found as"}});
  Json document = document_of(file);
  document["bytes"] = size.value();
  document["limit_bytes"] = cache_limit(context.settings).value();
  document["answers"] = contents.answers;
  document["searches"] = Json{{"kept", searches.searches}, {"bytes", searches.bytes.value()}, {"hits", searches.hits}};
  document["plugins"] = Json::array();
  for (const CachedPlugin& plugin : contents.plugins) {
    table.add({{plugin.name, Style::kBold},
               {plugin.version},
               {thousands(plugin.answers)},
               {mebibytes(plugin.bytes)},
               {thousands(plugin.hits)},
               {thousands(plugin.misses)},
               {plugin.found_as}});
    document["plugins"].push_back(Json{{"name", plugin.name},
                                       {"version", plugin.version},
                                       {"found_as", plugin.found_as},
                                       {"identity", plugin.identity},
                                       {"answers", plugin.answers},
                                       {"bytes", plugin.bytes.value()},
                                       {"hits", plugin.hits},
                                       {"misses", plugin.misses}});
  }
  std::string text = contents.plugins.empty() ? "" : table.render(context.terminal) + "\n";
  text += fmt::format("{}: {}, {} (found {}), {} of at most {}\n", file, counted(contents.answers, "answer"),
                      counted(searches.searches, "search"), counted(searches.hits, "time"), mebibytes(size),
                      mebibytes(cache_limit(context.settings)));
  return print_result(context, text, document);
}

Diagnostics nobody_of_that_name(const std::string& name) {
  return usage_mistake("not-in-cache", fmt::format("the cache has no answers of a plugin \"{}\"", name),
                       "tangram cache show lists the plugins");
}

bool is_named(const CachedPlugin& plugin, const std::string& name) {
  return name.empty() || plugin.name == name || plugin.found_as == name;
}

bool holds(parallelizer::AnswerCache& cache, const std::string& name) {
  const parallelizer::CacheContents contents = cache.contents();
  return std::ranges::any_of(contents.plugins, [&](const CachedPlugin& plugin) { return is_named(plugin, name); });
}

ExitCode clear(const std::string& file, const std::string& name, const Context& context) {
  const auto cache = open_existing(file, context.settings);
  if (!cache) return report(context.terminal, context.json, cache.error());
  std::int64_t gone = 0;
  std::int64_t searches = 0;
  if (*cache) {
    if (!name.empty() && !holds(**cache, name)) {
      return report(context.terminal, context.json, nobody_of_that_name(name));
    }
    // What a plugin said is in the searches that it was asked for.
    for (const CachedPlugin& plugin : (*cache)->contents().plugins) {
      if (!name.empty() && is_named(plugin, name))
        searches += planner::clear_search_cache((*cache)->file(), plugin.identity);
    }
    if (name.empty()) searches = planner::clear_search_cache((*cache)->file());
    gone = (*cache)->clear(name);
    if (const auto problem = problem_of(*cache)) return report(context.terminal, context.json, {*problem});
  }
  Json document = document_of(file);
  document["cleared"] = gone;
  document["cleared_searches"] = searches;
  return print_result(
      context, fmt::format("{} and {} forgotten\n", counted(gone, "answer"), counted(searches, "search")), document);
}

/// What asking a plugin again showed.
struct Verified {
  CachedPlugin plugin;
  std::string state = "verified";  ///< "gone", "changed": its answers do not count; "silent": it does not start
  std::string says;                ///< why not verified
  std::int64_t same = 0;
  std::vector<std::string> different;  ///< one line each
  std::vector<std::string> unanswered;

  [[nodiscard]] bool ok() const { return state != "silent" && different.empty() && unanswered.empty(); }
};

/// What was asked, for people: "layer x 4, embedding, microbatch 8".
std::string question_text(const std::string& body) {
  const auto asked = nlohmann::json::parse("{" + body + "}", nullptr, /*allow_exceptions=*/false);
  if (!asked.is_object() || !asked.contains("slice")) return body.substr(0, 60);
  std::string text;
  for (const auto& run : asked["slice"].value("blocks", nlohmann::json::array())) {
    text += fmt::format("{} x {}, ", run.value("type", "?"), run.value("count", 0));
  }
  for (const char* part : {"embedding", "head"}) {
    if (asked["slice"].value(part, false)) text += fmt::format("{}, ", part);
  }
  return text + fmt::format("microbatch {}", asked.value("microbatch", 0));
}

/// The same but for the number of the question.
bool equal_answers(const std::string& a, const std::string& b) {
  auto first = nlohmann::json::parse(a, nullptr, /*allow_exceptions=*/false);
  auto second = nlohmann::json::parse(b, nullptr, /*allow_exceptions=*/false);
  if (!first.is_object() || !second.is_object()) return a == b;
  first.erase("id");
  second.erase("id");
  return first == second;
}

std::string answer_text(const std::string& body) {
  const auto said = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!said.is_object()) return "nonsense";
  if (said.contains("plans")) return counted(static_cast<std::int64_t>(said["plans"].size()), "plan");
  return said.value("code", "?");
}

void compare(const std::vector<CachedAnswer>& kept, parallelizer::AnswerSource& pool, parallelizer::AnswerCache& cache,
             Verified& verified) {
  std::vector<parallelizer::Question> questions;
  questions.reserve(kept.size());
  for (const CachedAnswer& answer : kept) questions.push_back(answer.question);
  const std::vector<parallelizer::Answer> fresh = pool.ask(questions, {});
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const std::string asked = question_text(kept[i].question.body);
    const parallelizer::Answer& now = fresh[i];
    if (now.failure) {
      verified.unanswered.push_back(fmt::format("{}: {}", asked, now.failure->message));
    } else if (equal_answers(kept[i].body, now.body)) {
      ++verified.same;
      cache.note_verified(kept[i].key);
    } else {
      verified.different.push_back(
          fmt::format("{}: kept {}, now {}", asked, answer_text(kept[i].body), answer_text(now.body)));
    }
  }
}

Verified verify_plugin(const CachedPlugin& plugin, std::int64_t most, parallelizer::AnswerCache& cache,
                       const parallelizer::PluginOptions& options, parallelizer::Launcher& launcher,
                       const Context& context) {
  Verified verified{plugin, "verified", "", 0, {}, {}};
  const auto spec = parallelizer::find_plugin(plugin.found_as, plugin_places(context.settings));
  if (!spec) {
    verified.state = "gone";
    verified.says = spec.error().front().message;
    return verified;
  }
  if (parallelizer::content_digest(*spec) != plugin.content) {
    verified.state = "changed";
    verified.says = "the plugin has changed: its cached answers are no longer used";
    return verified;
  }
  const auto pool = parallelizer::make_worker_pool(*spec, options, launcher);
  if (!pool->plugin()) {
    verified.state = "silent";
    verified.says = pool->plugin().error().front().message;
  } else if (cache.introduce(*spec, *pool->plugin()) != plugin.identity) {
    verified.state = "changed";
    verified.says = fmt::format("it now calls itself {} {}: its cached answers are no longer used",
                                pool->plugin()->name, pool->plugin()->version);
  } else {
    compare(cache.sample(plugin.identity, most), *pool, cache, verified);
  }
  return verified;
}

std::string verified_for_people(const std::vector<Verified>& all) {
  std::string text;
  for (const Verified& v : all) {
    text += fmt::format("{} {} ({}): ", v.plugin.name, v.plugin.version, v.plugin.found_as);
    if (v.state != "verified") {
      text += fmt::format("{}: {}\n", v.state, v.says);
      continue;
    }
    text += fmt::format("{} asked again, {} the same, {} different, {} unanswered\n",
                        v.same + static_cast<std::int64_t>(v.different.size() + v.unanswered.size()), v.same,
                        v.different.size(), v.unanswered.size());
    for (const std::string& line : v.different) text += fmt::format("  different: {}\n", line);
    for (const std::string& line : v.unanswered) text += fmt::format("  unanswered: {}\n", line);
    if (!v.different.empty()) text += fmt::format("  tangram cache clear {} deletes its answers\n", v.plugin.found_as);
  }
  return text;
}

std::string searches_for_people(const std::optional<planner::SearchCacheState>& state) {
  if (!state) return "";
  return fmt::format("searches: {} read back, {} damaged{}\n", state->whole, state->damaged,
                     state->damaged > 0 ? " and deleted" : "");
}

Json verified_json(const std::vector<Verified>& all) {
  Json list = Json::array();
  for (const Verified& v : all) {
    Json entry{
        {"name", v.plugin.name}, {"version", v.plugin.version}, {"found_as", v.plugin.found_as}, {"state", v.state}};
    if (!v.says.empty()) entry["says"] = v.says;
    entry["same"] = v.same;
    entry["different"] = v.different;
    entry["unanswered"] = v.unanswered;
    list.push_back(std::move(entry));
  }
  return list;
}

/// --sample: a count, or all.
std::optional<std::int64_t> sample_size(const std::string& text) {
  if (text == "all") return std::numeric_limits<std::int64_t>::max();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

ExitCode verify(const std::string& file, const CacheArguments& arguments, const Context& context) {
  const auto most = sample_size(arguments.sample);
  if (!most) {
    return report(
        context.terminal, context.json,
        usage_mistake("bad-value", fmt::format("--sample: \"{}\" is not a number of answers", arguments.sample),
                      "a whole number of at least 1, or all"));
  }
  const auto cache = open_existing(file, context.settings);
  if (!cache) return report(context.terminal, context.json, cache.error());
  if (*cache && !arguments.name.empty() && !holds(**cache, arguments.name)) {
    return report(context.terminal, context.json, nobody_of_that_name(arguments.name));
  }
  const Progress progress = [&](const std::string& line) { context.terminal.progress(line); };
  const auto options = plugin_options(context.settings, worker_slots(context.settings), progress);
  if (!options) return report(context.terminal, context.json, options.error());
  const auto launcher = make_launcher(context.settings, options->slots, 1, progress);
  if (!launcher) return report(context.terminal, context.json, launcher.error());
  std::vector<Verified> all;
  std::optional<planner::SearchCacheState> searches;
  if (*cache) {
    if (arguments.name.empty()) searches = planner::verify_search_cache((*cache)->file());
    for (const CachedPlugin& plugin : (*cache)->contents().plugins) {
      if (plugin.answers == 0 || !is_named(plugin, arguments.name)) continue;
      all.push_back(verify_plugin(plugin, *most, **cache, *options, **launcher, context));
    }
    context.terminal.clear_progress();
    if (const auto problem = problem_of(*cache)) return report(context.terminal, context.json, {*problem});
  }
  const bool whole = std::ranges::all_of(all, &Verified::ok) && (!searches || searches->damaged == 0);
  const ExitCode code = whole ? ExitCode::kOk : ExitCode::kPlugin;
  Json document = document_of(file);
  document["status"] = status_of(code);
  document["plugins"] = verified_json(all);
  const std::string text = verified_for_people(all) + searches_for_people(searches);
  if (searches) document["searches"] = Json{{"whole", searches->whole}, {"damaged", searches->damaged}};
  return print_result(context, text.empty() ? "nothing to verify\n" : text, document, code);
}

ExitCode path(const std::string& file, const Context& context) {
  return print_result(context, file + "\n", document_of(file));
}

ExitCode run_cache(const CacheArguments& arguments, const Context& context) {
  const auto mistaken = [&](std::string code, std::string message, std::string hint) {
    return report(context.terminal, context.json, usage_mistake(std::move(code), std::move(message), std::move(hint)));
  };
  const std::string file = cache_file(context.settings);
  if (file.empty()) return mistaken("cache-off", "the cache is off", "name its file with --cache FILE");
  if (arguments.action == "verify") return verify(file, arguments, context);
  if (arguments.action == "clear") return clear(file, arguments.name, context);
  if (arguments.action != "show" && arguments.action != "path") {
    return mistaken("unknown-action", fmt::format("cache has no action \"{}\"", arguments.action),
                    "actions: show, verify, clear, path");
  }
  if (!arguments.name.empty()) {
    return mistaken("extra-argument",
                    fmt::format("{} takes no further argument \"{}\"", arguments.action, arguments.name),
                    "tangram cache --help");
  }
  return arguments.action == "show" ? show(file, context) : path(file, context);
}

}  // namespace

Command cache_command() {
  return {.name = "cache",
          .usage = "show|verify|clear|path [NAME]",
          .summary = "inspect, verify or clear cached searches and answers",
          .examples = R"(  tangram cache show
  tangram cache verify --sample 50
  tangram cache clear galvatron
  tangram plan fleet.json model.yaml --parallelizer galvatron --offline
)",
          .details = R"(plan and explain cache whole searches in one SQLite file, under a digest of
everything they depend on: the program, the model and its job, the islands
without host names, options, profiles, plugins. plan also caches the answers of
plugins, under the question and a digest of the plugin. Plans are the same with
and without the cache.

show counts searches, and the answers, hits, misses and bytes of each plugin.
verify reads all searches, asks the plugins a sample of the questions again,
least recently verified first, and reports damage and changed answers. clear
deletes everything, or all that one plugin contributed to. path prints the path
of the file. Keep it on a local disk: locks on network file systems cannot be
relied on. Exit 5: verify found damage, a difference or a plugin that does not
answer.

Manual: tangram help plugins
)",
          .bind = bound<CacheArguments>(parameters_of, run_cache),
          .settings = {SettingGroup::kPlugins, SettingGroup::kWorkerCores, SettingGroup::kCache}};
}

}  // namespace tangram::app
