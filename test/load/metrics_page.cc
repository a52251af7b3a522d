// Reads values from a metrics page.
#include "test/load/metrics_page.h"

#include <chrono>
#include <cstdlib>
#include <limits>
#include <sstream>

#include <boost/asio/ip/tcp.hpp>

#include "api/base/errorf.h"

namespace qrm::test {
namespace {

using boost::asio::ip::tcp;

StatusOr<std::string> ReadPage(int port) {
  tcp::iostream page;
  page.expires_after(std::chrono::seconds(5));
  page.connect("127.0.0.1", std::to_string(port));
  page << "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" << std::flush;
  std::ostringstream text;
  text << page.rdbuf();
  if (text.str().empty()) {
    return Errorf(StatusCode::kUnavailable, "cannot read metrics from port {}: {}", port,
                  page.error().message());
  }
  return text.str();
}

/// The bound in `le="0.02"`.
double BoundOf(const std::string& line) {
  const std::size_t at = line.find("le=\"") + 4;
  return line.compare(at, 4, "+Inf") == 0 ? std::numeric_limits<double>::infinity()
                                          : std::strtod(line.c_str() + at, nullptr);
}

}  // namespace

double Histogram::ShareWithin(double seconds) const {
  return at_most.at(seconds) / count;
}

double Histogram::Quantile(double share) const {
  for (const auto& [bound, observations] : at_most) {
    if (observations >= share * count) {
      return bound;
    }
  }
  return std::numeric_limits<double>::infinity();
}

StatusOr<Histogram> ReadHistogram(int port, const std::string& name, const std::string& label) {
  QRM_ASSIGN_OR_RETURN(const std::string page, ReadPage(port));
  Histogram histogram;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + "_") || line.find(label) == std::string::npos) {
      continue;
    }
    const double value = std::strtod(line.c_str() + line.rfind(' '), nullptr);
    if (line.starts_with(name + "_bucket{")) {
      histogram.at_most[BoundOf(line)] = value;
    } else if (line.starts_with(name + "_sum{")) {
      histogram.sum_seconds = value;
    } else if (line.starts_with(name + "_count{")) {
      histogram.count = value;
    }
  }
  if (histogram.count == 0) {
    return Errorf(StatusCode::kNotFound, "no {}{{{}}} on the metrics page", name, label);
  }
  return histogram;
}

}  // namespace qrm::test
