package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// importProgram makes an image of the program in the folder of that name beside this test, and gives it to the node.
func importProgram(t *testing.T, program string) string {
	t.Helper()
	name := "localhost/" + program + ":1"
	rootfs, archive := t.TempDir(), filepath.Join(t.TempDir(), program+".tar")
	build := exec.Command("go", "build", "-o", filepath.Join(rootfs, program), "./"+program)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	for _, command := range []*exec.Cmd{build, exec.Command("../../../scripts/oci.sh", rootfs, name, "/"+program, archive)} {
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", command, err, out)
		}
	}
	call(t, "import", archive)
	return name
}

func TestExporterInAPodReadsQrmdsSocket(t *testing.T) {
	const socketDir = "/var/lib/qrm/pod-resources"
	spec := podSpec(object{"name": "c", "image": importProgram(t, "exporter"), "args": []string{socketDir + "/kubelet.sock"},
		"volumeMounts": []object{{"name": "sockets", "mountPath": socketDir}}})
	spec["volumes"] = []object{{"name": "sockets", "hostPath": object{"path": socketDir, "type": "Directory"}}}
	create(t, append(threeClasses(), pod("exporter", spec))...)
	awaitRunning(t, "guaranteed", "burstable", "best-effort", "exporter")
	tells := func(t *testing.T, lines ...string) {
		t.Helper()
		await(t, "the exporter to tell "+strings.Join(lines, ", "), func() error {
			text := kubectl(t, "logs", "exporter", "--tail=20")
			for _, line := range lines {
				if !strings.Contains(text, line+"\n") {
					return fmt.Errorf("it tells %s", text)
				}
			}
			return nil
		})
	}
	own := "cpu default/guaranteed/c " + ownCpusOf(t, "guaranteed/c")
	tells(t, "allocatable_cpus 2", own, "container default/burstable/c", "container default/best-effort/c")
	// A new qrmd makes a new socket.
	killQrmd(t)
	awaitQrmd(t)
	kubectl(t, "logs", "exporter", "--tail=1")
	tells(t, own)
}
