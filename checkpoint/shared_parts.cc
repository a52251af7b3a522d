// Replaces each part by the first one that equals it.
#include "checkpoint/shared_parts.h"

#include <utility>

#include <boost/container_hash/hash.hpp>

namespace qrm::checkpoint {

void SharedParts::Share(SharedText& text) {
  text = texts_.Intern(std::move(text));
}

void SharedParts::Share(PodMeta& pod) {
  for (SharedText* text : {&pod.pod_namespace, &pod.role, &pod.type, &pod.qos_class}) {
    Share(*text);
  }
  pod.labels = maps_.Intern(std::move(pod.labels));
  pod.annotations = maps_.Intern(std::move(pod.annotations));
}

void SharedParts::Share(ContainerRecord& record) {
  record.requests = amounts_.Intern(std::move(record.requests));
  record.limits = amounts_.Intern(std::move(record.limits));
  Share(record.request_source);
  Share(record.runtime_class);
  Share(record.skipped);
  Share(record.allocations);
  record.origins = origins_.Intern(std::move(record.origins));
  record.classes = maps_.Intern(std::move(record.classes));
  record.applied = maps_.Intern(std::move(record.applied));
}

void SharedParts::Share(AllocationByResource& allocations) {
  AllocationByResource shared;
  while (!allocations.empty()) {
    auto node = allocations.extract(allocations.begin());
    Share(node.key());
    node.mapped() = allocations_.Intern(std::move(node.mapped()));
    shared.insert(shared.end(), std::move(node));
  }
  allocations = std::move(shared);
}

void SharedParts::Share(Change& change) {
  for (Change::PutContainer& put : change.put_containers) {
    Share(put.pod);
    Share(put.container);
    Share(put.record);
  }
}

}  // namespace qrm::checkpoint
