// Writes the tables of flags and keys as roff.
#include "manager/config/man_page.h"

#include <fmt/format.h>

#include "manager/config/config_table.h"
#include "manager/config/roff.h"

namespace qrm::manager {
namespace {

constexpr char kHead[] =
    ".SH NAME\nqrmd \\- places containers on CPUs, memory nodes and NICs, beside kubelet\n"
    ".SH SYNOPSIS\n.B qrmd\n[\\-\\-config\n.IR FILE ]\n[\\-\\-\\fIKEY\\fR=\\fIVALUE\\fR ...]\n"
    ".SH DESCRIPTION\nThe QoS resource manager of a Kubernetes node. It gives containers their "
    "CPUs, memory nodes and\nother resources when the runtime creates them, remembers what they "
    "have, and keeps it in force.\n.BR qrmctl (1)\nshows and steers it.\n";

constexpr char kTail[] =
    ".SH SIGNALS\n.TP\n.B SIGHUP\nReads the configuration again, as a change of its file does: "
    "some keys change at once, the log\nnames those that wait for the next start.\n"
    ".TP\n.BR SIGTERM , \" SIGINT\"\nEnds it. Containers keep what they have.\n"
    ".SH EXIT STATUS\n0 ended by a signal, 1 failed, 2 misused, or wrong configuration.\n"
    ".SH FILES\n.TP\n.I /etc/qrm/config.yaml\nThe configuration of the Debian package.\n"
    ".TP\n.I /var/lib/qrm/state\nWhat containers have; one qrmd at a time.\n"
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
  page += ".SH KEYS\nOf the configuration file; each is also a flag, which wins over the file.\n";
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
