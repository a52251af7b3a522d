// Writes the tables of flags and keys as roff.
#include "manager/daemon/man_page.h"

#include <fmt/format.h>

#include "manager/daemon/config_table.h"

namespace qrm::manager {
namespace {

constexpr char kHead[] =
    ".SH NAME\nqrmd \\- places containers on CPUs, memory nodes and NICs, beside kubelet\n"
    ".SH SYNOPSIS\n.B qrmd\n[\\-\\-config\n.IR FILE ]\n[\\-\\-\\fIKEY\\fR=\\fIVALUE\\fR ...]\n"
    ".SH DESCRIPTION\nThe QoS resource manager of a Kubernetes node. When the runtime creates a "
    "container, qrmd allocates\nits CPUs, memory nodes and other resources. It records the "
    "allocations, and corrects drift.\n.BR qrmctl (1)\nshows and changes its state.\n";

constexpr char kTail[] =
    ".SH SIGNALS\n.TP\n.B SIGHUP\nqrmd reads the configuration again, as when its file changes. "
    "Some keys change at once. The log\nnames the keys that change at the next start.\n"
    ".TP\n.BR SIGTERM , \" SIGINT\"\nqrmd stops. Containers keep their allocations.\n"
    ".SH EXIT STATUS\n0 stopped by a signal, 1 failed, 2 wrong flags or configuration.\n"
    ".SH FILES\n.TP\n.I /etc/qrm/config.yaml\nThe configuration of the Debian package.\n"
    ".TP\n.I /var/lib/qrm/state\nThe allocations of containers. One qrmd uses it at a time.\n"
    ".SH SEE ALSO\n.BR qrmctl (1)\n";

std::string Entry(std::string_view name, std::string_view text) {
  return fmt::format(".TP\n.B {}\n{}\n", Roff(name), Roff(text));
}

}  // namespace

std::string ManPage(std::string_view version) {
  std::string page =
      fmt::format(".TH QRMD 8 \"\" \"qrm {}\" \"qrm\"\n{}.SH OPTIONS\n", version, kHead);
  for (const ProgramFlag& flag : kProgramFlags) {
    page += Entry(flag.flag, flag.help);
  }
  page += ".SH KEYS\nKeys of the configuration file. Each is also a flag, which overrides it.\n";
  Config defaults;
  for (const KeyGroup& group : GroupedConfigKeys(defaults)) {
    page += fmt::format(".SS {}\n", Roff(group.title));
    for (const config::ConfigKey& key : group.keys) {
      page += Entry("--" + key.name + "=VALUE", key.help);
      page += fmt::format(".br\nValues: {}; default: {}\n", Roff(key.range), Roff(key.show()));
    }
  }
  return page + kTail;
}

}  // namespace qrm::manager
