// Attaches, and detaches when nobody comes to hear.
#include "manager/runtime/nri/nri_attachment.h"

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/base/log.h"

namespace qrm::manager {

struct NriAttachment::Timer : boost::asio::steady_timer {
  using boost::asio::steady_timer::basic_waitable_timer;
};

NriAttachment::NriAttachment(boost::asio::io_context& io, NriOptions options,
                             std::chrono::milliseconds patience)
    : io_(io),
      options_(std::move(options)),
      patience_(patience),
      plugin_(std::make_unique<NriPlugin>(io, options_, events_)),
      timer_(std::make_unique<Timer>(io)) {}

NriAttachment::~NriAttachment() = default;

Status NriAttachment::Start() {
  QRM_RETURN_IF_ERROR(plugin_->Start());
  timer_->expires_after(patience_);
  timer_->async_wait([this](const boost::system::error_code& error) {
    if (!error && !is_heard_) {
      GiveUp();
    }
  });
  return OkStatus();
}

void NriAttachment::GiveUp() {
  gave_up_ = true;
  plugin_ = std::make_unique<NriPlugin>(io_, options_, events_);
  events_.Drop();
  log::Warning("runtime left alone until qrmd is ready",
               {{"socket", options_.socket},
                {"waited_ms", patience_.count()},
                {"error", "the checkpoint takes long to read; look at the disk of state-dir"}});
}

void NriAttachment::DeliverTo(RuntimeEvents& events) {
  is_heard_ = true;
  timer_->cancel();
  if (gave_up_) {
    (void)plugin_->Start();  // its options were good before
  }
  boost::asio::post(io_, [this, &events] { events_.DeliverTo(events); });
}

}  // namespace qrm::manager
