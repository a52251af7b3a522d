// Joins the types of the providers with the operator's rules.
#include "manager/classes/class_book.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"

namespace qrm::manager {
namespace {

/// The rules of `type`, which keep `options` alive.
std::shared_ptr<const ClassTypeRules> RulesOf(const std::shared_ptr<const ClassesOptions>& options,
                                              const std::string& type) {
  static const ClassTypeRules none;
  const auto found = options->types.find(type);
  return {options, found == options->types.end() ? &none : &found->second};
}

/// Errors: kFailedPrecondition for a type of `some` that `others` lacks or has with another file.
Status CheckTypes(const ClassesOptions& some, const ClassesOptions& others) {
  for (const auto& [type, rules] : some.types) {
    const auto other = others.types.find(type);
    if (other == others.types.end() || other->second.config_file != rules.config_file ||
        other->second.require_devices != rules.require_devices) {
      return Errorf(StatusCode::kFailedPrecondition,
                    "cannot take over class-types: {} while qrmd runs; restart qrmd",
                    other == others.types.end()
                        ? fmt::format("type {} cannot be added or removed", type)
                        : fmt::format("config-file and require-devices of {} cannot change", type));
    }
  }
  return OkStatus();
}

/// Errors: kAlreadyExists when two types set the same thing.
Status AddOptions(const std::string& type, sdk::ClassOptions more, sdk::ClassOptions& all) {
  const bool twice = (!more.rdt_class.empty() && !all.rdt_class.empty()) ||
                     (more.oom_score_adj.has_value() && all.oom_score_adj.has_value());
  const bool same_file =
      std::any_of(more.unified.begin(), more.unified.end(),
                  [&](const auto& file) { return all.unified.contains(file.first); });
  if (twice || same_file) {
    return Errorf(StatusCode::kAlreadyExists,
                  "cannot give class of {}: a class of another type sets the same value; ask for "
                  "only one of them",
                  type);
  }
  all.rdt_class = more.rdt_class.empty() ? all.rdt_class : std::move(more.rdt_class);
  all.oom_score_adj = more.oom_score_adj.has_value() ? more.oom_score_adj : all.oom_score_adj;
  all.unified.merge(more.unified);
  return OkStatus();
}

}  // namespace

ClassBook::ClassBook(ClassesOptions options, Providers providers)
    : providers_(std::move(providers)),
      options_(std::make_shared<const ClassesOptions>(std::move(options))) {
  for (const auto& provider : providers_) {
    by_name_.emplace(provider->List().name, provider.get());
  }
  Update();
}

std::shared_ptr<const OfferedTypes> ClassBook::Types() const {
  const MutexLock guard(mutex_);
  return types_;
}

Status ClassBook::TakeRules(ClassesOptions options) {
  {
    const MutexLock guard(mutex_);
    QRM_RETURN_IF_ERROR(CheckTypes(*options_, options));
    QRM_RETURN_IF_ERROR(CheckTypes(options, *options_));
    options_ = std::make_shared<const ClassesOptions>(std::move(options));
  }
  Update();
  return OkStatus();
}

void ClassBook::Update() {
  const MutexLock update(update_mutex_);
  std::shared_ptr<const ClassesOptions> options;
  {
    const MutexLock guard(mutex_);
    options = options_;
  }
  auto types = std::make_shared<OfferedTypes>();
  for (const auto& provider : providers_) {
    OfferedType offered{.type = provider->List()};
    offered.rules = RulesOf(options, offered.type.name);
    offered.is_retired = !options->types.contains(offered.type.name);
    types->push_back(std::move(offered));
  }
  std::sort(types->begin(), types->end(),
            [](const OfferedType& a, const OfferedType& b) { return a.type.name < b.type.name; });
  const MutexLock guard(mutex_);
  types_ = std::move(types);
}

StatusOr<sdk::ClassOptions> ClassBook::Resolve(const StringMap& classes) const {
  sdk::ClassOptions all;
  for (const auto& [type, name] : classes) {
    if (const auto found = by_name_.find(type); found != by_name_.end() && !name.empty()) {
      QRM_ASSIGN_OR_RETURN(sdk::ClassOptions more, found->second->Resolve(name));
      QRM_RETURN_IF_ERROR(AddOptions(type, std::move(more), all));
    }
  }
  return all;
}

}  // namespace qrm::manager
