// Opens channels with the settings that all our peers need.
#include "api/rpc/channel.h"

#include <climits>

#include <grpc/compression.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "api/rpc/grpc_lifetime.h"

namespace qrm::rpc {
namespace {

/// How long a peer that listens has to greet us; without a listener, a connection fails at once.
constexpr int kGreetingMs = 1000;

}  // namespace

std::shared_ptr<grpc::Channel> UnixChannel(const std::string& path, const ChannelOptions& options) {
  KeepGrpcCallbackThreads();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   static_cast<int>(options.first_backoff.count()));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   static_cast<int>(options.most_backoff.count()));
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kGreetingMs);  // so it is, despite its name
  // Another channel's connection would bring its backoff along.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Without traffic the connection stays: it is how we notice that the peer died.
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Proxy settings of the environment concern no unix socket.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");  // servers in Go reject a path
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  // gRPC unpacks an answer before it looks at its size.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  return grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace qrm::rpc
