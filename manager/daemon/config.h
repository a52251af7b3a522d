// The whole configuration of qrmd: the options of its rooms, each with its defaults.
#pragma once

#include "manager/classes/class_options.h"
#include "manager/control/control_options.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/daemon/process/process_options.h"
#include "manager/kubelet/kubelet_options.h"
#include "manager/observability/http_options.h"
#include "manager/podresources/pod_resources_options.h"
#include "manager/pods/pods_options.h"
#include "manager/publish/publish_options.h"
#include "manager/reconcile/reconcile_options.h"
#include "manager/registry/registration_check.h"
#include "manager/runtime/runtime_options.h"
#include "plugins/config/machine_config.h"
#include "plugins/placement/admission_options.h"
#include "plugins/placement/pod_keys.h"

namespace qrm::manager {

/// The values of all keys.
struct Config {
  ProcessOptions process;
  config::MachineConfig machine;
  BuiltinOptions builtin;
  RegistrationOptions registration;
  placement::AdmissionOptions admission;
  placement::PodKeys pod_keys;
  ClassesOptions classes;
  KubeletOptions kubelet;
  RuntimeOptions runtime;
  ReconcileOptions reconcile;
  PodsOptions pods;
  PodResourcesOptions pod_resources;
  PublishOptions publish;
  ControlOptions control;
  HttpOptions http;
};

}  // namespace qrm::manager
