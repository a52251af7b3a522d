// Hands posts over to the cache's writer.
#include "scheduler/cache/extended_cache.h"

#include <utility>

#include "scheduler/cache/mailbox.h"
#include "scheduler/cache/node_table.h"

namespace qrm::scheduler {

ExtendedCache::ExtendedCache(NodeTable& table, Mailbox& mailbox, std::string type)
    : table_(table), mailbox_(mailbox), type_(std::move(type)) {}

const ExtendedResource* ExtendedCache::GetExtendedResource(const std::string& node) const {
  return table_.FindResource(node, type_);
}

void ExtendedCache::SetExtendedResource(const std::string& node,
                                        std::shared_ptr<ExtendedResource> resource) {
  table_.SetResource(node, type_, std::move(resource));
}

void ExtendedCache::Post(std::function<void(ExtendedCache&)> change) {
  mailbox_.Put(type_, [this, change = std::move(change)] { change(*this); });
}

}  // namespace qrm::scheduler
