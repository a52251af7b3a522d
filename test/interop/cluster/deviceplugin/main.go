// deviceplugin gives kubelet two devices of example.com/gpu, which are on NUMA node 0, and one of
// example.com/lost without a node.
//
//	deviceplugin DIRECTORY
package main

import (
	"context"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	devices []*api.Device
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	if err := stream.Send(&api.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	response := &api.AllocateResponse{}
	for range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerAllocateResponse{})
	}
	return response, nil
}

// serve gives kubelet the devices of resource by a socket in directory.
func serve(directory, resource string, devices []*api.Device) error {
	socket := filepath.Join(directory, filepath.Base(resource)+".sock")
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, &plugin{devices: devices})
	go func() { log.Fatal(server.Serve(listener)) }()
	connection, err := grpc.NewClient("unix://"+filepath.Join(directory, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: filepath.Base(socket), ResourceName: resource})
	return err
}

func main() {
	if len(os.Args) != 2 {
		log.Fatalf("usage: %s DIRECTORY", os.Args[0])
	}
	onNode0 := &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: 0}}}
	for resource, devices := range map[string][]*api.Device{
		"example.com/gpu":  {{ID: "gpu-0", Health: api.Healthy, Topology: onNode0}, {ID: "gpu-1", Health: api.Healthy, Topology: onNode0}},
		"example.com/lost": {{ID: "lost-0", Health: api.Healthy}},
	} {
		if err := serve(os.Args[1], resource, devices); err != nil {
			log.Fatalf("cannot give kubelet %s: %v", resource, err)
		}
	}
	select {}
}
