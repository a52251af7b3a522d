// Names boost::asio::io_context for headers; sources include the class itself.
#pragma once

namespace boost::asio {
class io_context;
}  // namespace boost::asio
