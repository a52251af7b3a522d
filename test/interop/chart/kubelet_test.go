package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const patience = time.Minute // on a machine that others fill

// kubelet makes pods over CRI, in what scripts/containerd.sh gives.
type kubelet struct {
	t       *testing.T
	runtime cri.RuntimeServiceClient
	parent  string // cgroup
	logs    string // directory
	made    int
}

type runningPod struct {
	sandbox, container string
}

func newKubelet(t *testing.T, socket, parent string) *kubelet {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	logs := t.TempDir()
	t.Cleanup(func() {
		connection.Close()
		files, _ := filepath.Glob(filepath.Join(logs, "*"))
		for _, file := range files {
			if text, _ := os.ReadFile(file); t.Failed() {
				t.Logf("%s:\n%s", filepath.Base(file), text)
			}
		}
	})
	return &kubelet{t: t, runtime: cri.NewRuntimeServiceClient(connection), parent: parent, logs: logs}
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// run makes and starts a pod of one container. Its namespaces and privileges are also those of its sandbox.
func (k *kubelet) run(name, podNamespace string, labels, annotations map[string]string, container *cri.ContainerConfig) runningPod {
	k.t.Helper()
	k.made++
	container.LogPath = fmt.Sprintf("%d-%s.log", k.made, name)
	security := container.Linux.SecurityContext
	sandbox := &cri.PodSandboxConfig{
		LogDirectory: k.logs,
		Metadata:     &cri.PodSandboxMetadata{Name: name, Uid: "uid-" + name, Namespace: podNamespace},
		Labels:       map[string]string{},
		Annotations:  annotations,
		Linux: &cri.LinuxPodSandboxConfig{CgroupParent: k.parent + "/kubepods/burstable/pod-" + name,
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: security.NamespaceOptions, Privileged: security.Privileged}},
	}
	for key, value := range labels {
		sandbox.Labels[key] = value
	}
	container.Labels = map[string]string{"io.kubernetes.container.name": container.Metadata.Name}
	for key, value := range map[string]string{"name": name, "namespace": podNamespace, "uid": "uid-" + name} {
		sandbox.Labels["io.kubernetes.pod."+key] = value
		container.Labels["io.kubernetes.pod."+key] = value
	}
	made, err := k.runtime.RunPodSandbox(deadline(k.t), &cri.RunPodSandboxRequest{Config: sandbox})
	if err != nil {
		k.t.Fatal(err)
	}
	created, err := k.runtime.CreateContainer(deadline(k.t),
		&cri.CreateContainerRequest{PodSandboxId: made.PodSandboxId, Config: container, SandboxConfig: sandbox})
	if err == nil {
		_, err = k.runtime.StartContainer(deadline(k.t), &cri.StartContainerRequest{ContainerId: created.ContainerId})
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return runningPod{made.PodSandboxId, created.ContainerId}
}

// stop removes the pod; its container, given the seconds of grace to end by itself, ended with the exit code.
func (k *kubelet) stop(pod runningPod, grace int64) (exitCode int32) {
	k.t.Helper()
	_, err := k.runtime.StopContainer(deadline(k.t), &cri.StopContainerRequest{ContainerId: pod.container, Timeout: grace})
	if err == nil {
		exitCode = k.status(pod).Status.ExitCode
		_, err = k.runtime.RemovePodSandbox(deadline(k.t), &cri.RemovePodSandboxRequest{PodSandboxId: pod.sandbox})
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return exitCode
}

func (k *kubelet) status(pod runningPod) *cri.ContainerStatusResponse {
	k.t.Helper()
	status, err := k.runtime.ContainerStatus(deadline(k.t), &cri.ContainerStatusRequest{ContainerId: pod.container, Verbose: true})
	if err != nil {
		k.t.Fatal(err)
	}
	return status
}

// exec is `kubectl exec`.
func (k *kubelet) exec(pod runningPod, command ...string) (string, error) {
	answer, err := k.runtime.ExecSync(deadline(k.t), &cri.ExecSyncRequest{ContainerId: pod.container, Cmd: command, Timeout: 10})
	if err == nil && answer.ExitCode != 0 {
		err = fmt.Errorf("%v ended with %d: %s", command, answer.ExitCode, answer.Stderr)
	}
	return string(answer.GetStdout()), err
}

// process is the id of the container's first process.
func (k *kubelet) process(pod runningPod) string {
	k.t.Helper()
	var info struct{ Pid int }
	if err := json.Unmarshal([]byte(k.status(pod).Info["info"]), &info); err != nil {
		k.t.Fatal(err)
	}
	return fmt.Sprint(info.Pid)
}

// allowed are the CPUs that the kernel lets the container's first process use.
func (k *kubelet) allowed(pod runningPod) string {
	k.t.Helper()
	return allowedCpus(k.t, k.process(pod))
}

func allowedCpus(t *testing.T, process string) string {
	t.Helper()
	return processStatus(t, process, "Cpus_allowed_list")
}

// processStatus is a value of /proc/PROCESS/status.
func processStatus(t *testing.T, process, key string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", process, "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n"+key+":\t")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// securityOf is what kubelet makes of a container's security context.
func securityOf(context *corev1.SecurityContext) *cri.LinuxContainerSecurityContext {
	security := &cri.LinuxContainerSecurityContext{
		Privileged:       *context.Privileged,
		ReadonlyRootfs:   *context.ReadOnlyRootFilesystem,
		RunAsUser:        &cri.Int64Value{Value: *context.RunAsUser},
		RunAsGroup:       &cri.Int64Value{Value: *context.RunAsGroup},
		Seccomp:          &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Unconfined},
		NamespaceOptions: &cri.NamespaceOption{},
	}
	if security.Privileged {
		return security
	}
	security.NoNewPrivs = !*context.AllowPrivilegeEscalation
	if context.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault {
		security.Seccomp.ProfileType = cri.SecurityProfile_RuntimeDefault
	}
	security.Capabilities = &cri.Capability{}
	for _, capability := range context.Capabilities.Add {
		security.Capabilities.AddCapabilities = append(security.Capabilities.AddCapabilities, string(capability))
	}
	for _, capability := range context.Capabilities.Drop {
		security.Capabilities.DropCapabilities = append(security.Capabilities.DropCapabilities, string(capability))
	}
	// Kubelet's, for procMount Default.
	security.MaskedPaths = []string{"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"}
	security.ReadonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
	return security
}

// containerOf is what kubelet makes of the chart's container; configuration lies in files below directory.
func containerOf(t *testing.T, made *release, directory string) *cri.ContainerConfig {
	t.Helper()
	pod, container := made.pod(), made.container()
	config := &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: container.Name},
		Image:    &cri.ImageSpec{Image: container.Image},
		Args:     container.Args,
		Linux: &cri.LinuxContainerConfig{
			Resources: &cri.LinuxContainerResources{CpuShares: container.Resources.Requests.Cpu().MilliValue() * 1024 / 1000,
				MemoryLimitInBytes: container.Resources.Limits.Memory().Value()},
			SecurityContext: securityOf(container.SecurityContext)},
	}
	namespaces := config.Linux.SecurityContext.NamespaceOptions
	if pod.HostNetwork {
		namespaces.Network = cri.NamespaceMode_NODE
	}
	if !pod.HostPID {
		namespaces.Pid = cri.NamespaceMode_CONTAINER
	} else {
		namespaces.Pid = cri.NamespaceMode_NODE
	}
	for _, variable := range container.Env {
		config.Envs = append(config.Envs, &cri.KeyValue{Key: variable.Name, Value: []byte(variable.Value)})
	}
	volumes := map[string]corev1.Volume{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = volume
	}
	for _, mount := range container.VolumeMounts {
		one := &cri.Mount{ContainerPath: mount.MountPath, Readonly: mount.ReadOnly, HostPath: hostPath(t, made, volumes[mount.Name], directory)}
		if mount.MountPropagation != nil && *mount.MountPropagation == corev1.MountPropagationHostToContainer {
			one.Propagation = cri.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
		}
		config.Mounts = append(config.Mounts, one)
	}
	return config
}

// hostPath is where the volume lies on the node, made if it is to be.
func hostPath(t *testing.T, made *release, volume corev1.Volume, directory string) string {
	t.Helper()
	if volume.HostPath == nil {
		path := filepath.Join(directory, volume.Name)
		err := os.MkdirAll(path, 0o755)
		for name, text := range made.config.Data {
			if err == nil {
				err = os.WriteFile(filepath.Join(path, name), []byte(text), 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	kind := *volume.HostPath.Type
	if kind == corev1.HostPathDirectoryOrCreate {
		if err := os.MkdirAll(volume.HostPath.Path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if status, err := os.Stat(volume.HostPath.Path); err != nil || status.IsDir() == (kind == corev1.HostPathFile) {
		t.Fatalf("%s is no %s: %v", volume.HostPath.Path, kind, err)
	}
	return volume.HostPath.Path
}
