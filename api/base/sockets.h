// Names the sockets of boost::asio for headers; sources include the classes themselves.
#pragma once

namespace boost::asio {
class any_io_executor;
template <typename Protocol, typename Executor>
class basic_stream_socket;
namespace ip {
class tcp;
}  // namespace ip
namespace local {
class stream_protocol;
}  // namespace local
namespace ssl {
class context;
}  // namespace ssl
}  // namespace boost::asio

namespace qrm {

using TcpSocket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::any_io_executor>;
using UnixSocket = boost::asio::basic_stream_socket<boost::asio::local::stream_protocol,
                                                    boost::asio::any_io_executor>;

}  // namespace qrm
