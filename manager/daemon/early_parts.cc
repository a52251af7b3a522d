// Attaches to the runtime first.
#include "manager/daemon/early_parts.h"

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "api/base/heap.h"

namespace qrm::manager {
namespace {

NriOptions NriOptionsOf(const Config& config, Metrics& metrics) {
  NriOptions options = config.runtime.nri;
  options.reply_timeout = config.admission.deadline * 9 / 10;
  options.on_answer = [&metrics](const NriAnswer& answer) { metrics.nri.Record(answer); };
  return options;
}

}  // namespace

StatusOr<std::unique_ptr<EarlyParts>> EarlyParts::Start(Config config, Machine machine,
                                                        StateLock lock) {
  std::unique_ptr<EarlyParts> parts(
      new EarlyParts(std::move(config), std::move(machine), std::move(lock)));
  QRM_RETURN_IF_ERROR(parts->nri.Start());
  // The list of a large node takes much memory for an instant: apart, it leaves no holes between
  // what is made meanwhile and stays. Where there is no heap for it, it does.
  boost::asio::post(parts->loop.io(), [] { (void)UseHeapApart(); });
  parts->loop.Start();
  return parts;
}

EarlyParts::EarlyParts(Config given_config, Machine given_machine, StateLock given_lock)
    : config(std::move(given_config)),
      machine(std::move(given_machine)),
      lock(std::move(given_lock)),
      nri(loop.io(), NriOptionsOf(config, metrics)) {}

// NOLINTNEXTLINE(bugprone-exception-escape): a loop that cannot be joined ends the program.
EarlyParts::~EarlyParts() {
  loop.Stop();
}

}  // namespace qrm::manager
