// The header that plugin authors include: resource_plugin.h, and errors with a message.
#pragma once

#include "api/base/errorf.h"
#include "plugins/sdk/resource_plugin.h"
