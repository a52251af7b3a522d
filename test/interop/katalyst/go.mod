// Katalyst publishes its plugin API and its pod-resources client as a fork of k8s.io/kubelet under that name: beside
// the original it needs a module of its own.
module qrm.local/test/interop/katalyst

go 1.26.0

require (
	google.golang.org/grpc v1.85.0
	k8s.io/kubelet v0.37.2
	qrm.local/test/interop v0.0.0
)

require (
	github.com/gogo/protobuf v1.3.2 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	k8s.io/apimachinery v0.37.2 // indirect
)

replace (
	k8s.io/kubelet => github.com/kubewharf/kubelet v1.24.6-kubewharf.9
	qrm.local/test/interop => ../
)

// What the fork asks for besides, of which nothing here is used: hundreds of modules.
exclude (
	google.golang.org/grpc v1.51.0
	k8s.io/api v0.24.6
	k8s.io/apimachinery v0.24.6
	k8s.io/component-base v0.24.6
)
