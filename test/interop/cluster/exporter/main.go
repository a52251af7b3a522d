// exporter asks a pod-resources socket with the client that Kubernetes publishes, and prints what exporters make of it: a
// line for each CPU that a container has for itself, and for each block of its memory.
//
//	exporter SOCKET
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatalf("usage: %s SOCKET", os.Args[0])
	}
	connection, err := grpc.NewClient("unix://"+os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatalf("cannot use %s: %v", os.Args[1], err)
	}
	client := podresources.NewPodResourcesListerClient(connection)
	for {
		export(client)
		time.Sleep(time.Second)
	}
}

func export(client podresources.PodResourcesListerClient) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	list, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		fmt.Printf("error %v\n", err)
		return
	}
	allocatable, err := client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	if err != nil {
		fmt.Printf("error %v\n", err)
		return
	}
	fmt.Printf("allocatable_cpus %d\n", len(allocatable.GetCpuIds()))
	for _, pod := range list.GetPodResources() {
		for _, container := range pod.GetContainers() {
			name := pod.GetNamespace() + "/" + pod.GetName() + "/" + container.GetName()
			fmt.Printf("container %s\n", name)
			for _, cpu := range container.GetCpuIds() {
				fmt.Printf("cpu %s %d\n", name, cpu)
			}
			for _, block := range container.GetMemory() {
				fmt.Printf("memory %s %s %d\n", name, block.GetMemoryType(), block.GetSize())
			}
		}
	}
}
