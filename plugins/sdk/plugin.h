// All that a plugin author includes: what resource_plugin.h declares, and errors with a message.
#pragma once

#include "api/base/errorf.h"
#include "plugins/sdk/resource_plugin.h"
