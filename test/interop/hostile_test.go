package interop

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	preface          = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	memoryAllowance  = 50 << 20
	politeInterval   = 100 * time.Millisecond
	politeRole       = "QRM_INTEROP_POLITE"
	hostileConns     = 10_000
	hostileBurst     = 100_000
	burstConnections = 8
)

// frame is an HTTP/2 frame with a header that announces length bytes, whatever the payload has.
func frame(length uint32, kind, flags byte, stream uint32, payload []byte) []byte {
	header := make([]byte, 9, 9+len(payload))
	header[0], header[1], header[2] = byte(length>>16), byte(length>>8), byte(length)
	header[3], header[4] = kind, flags
	binary.BigEndian.PutUint32(header[5:], stream)
	return append(header, payload...)
}

// manyConnections holds as many as the server takes.
func manyConnections(socket string, stop <-chan struct{}) {
	var held []net.Conn
	for range hostileConns {
		if connection, err := net.Dial("unix", socket); err == nil {
			held = append(held, connection)
		}
	}
	<-stop
	for _, connection := range held {
		connection.Close()
	}
}

// halfOpenStreams begins requests and never ends them.
func halfOpenStreams(socket string, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		connection, err := net.Dial("unix", socket)
		if err != nil {
			continue
		}
		var message bytes.Buffer
		message.WriteString(preface)
		message.Write(frame(0, 4, 0, 0, nil))
		for stream := uint32(1); stream < 400; stream += 2 {
			message.Write(frame(1, 1, 4, stream, []byte{0x83})) // HEADERS, END_HEADERS: method POST
		}
		connection.Write(message.Bytes())
		time.Sleep(10 * time.Millisecond)
		connection.Close()
	}
}

// garbage sends frames that are too long, of no kind, or no frames at all.
func garbage(socket string, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		connection, err := net.Dial("unix", socket)
		if err != nil {
			continue
		}
		connection.SetDeadline(time.Now().Add(time.Second))
		if rand.IntN(2) == 0 {
			connection.Write([]byte(preface))
			connection.Write(frame(0, 4, 0, 0, nil))
		}
		noise := make([]byte, 64<<10)
		for i := range noise {
			noise[i] = byte(rand.Uint32())
		}
		connection.Write(frame(1<<24-1, byte(rand.Uint32()), byte(rand.Uint32()), rand.Uint32()>>1, noise))
		connection.Close()
	}
}

// burst sends requests as fast as they are answered.
func burst(t *testing.T, socket string, stop <-chan struct{}) {
	var group sync.WaitGroup
	for range burstConnections {
		client := podresources.NewPodResourcesListerClient(dial(t, socket))
		group.Go(func() {
			for range hostileBurst / burstConnections {
				select {
				case <-stop:
					return
				default:
					client.List(context.Background(), &podresources.ListPodResourcesRequest{}, grpc.WaitForReady(false))
				}
			}
		})
	}
	group.Wait()
}

func residentBytes(t *testing.T, pid int) int64 {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(content))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// copyOfThisProgram stands where another user can run it, too.
func copyOfThisProgram(t *testing.T, node sampleNode) string {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(filepath.Dir(node.socket)), "polite")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPoliteClient is the other process of the test below, not a test of its own.
func TestPoliteClient(t *testing.T) {
	socket := os.Getenv(politeRole)
	if socket == "" {
		t.Skip("runs within TestHostileClientHarmsNobodyElse")
	}
	client := podresources.NewPodResourcesListerClient(dial(t, socket))
	var slowest time.Duration
	for range int(hostileTime() / politeInterval) {
		begin := time.Now()
		if _, err := client.List(withDeadline(t), &podresources.ListPodResourcesRequest{}); err != nil {
			t.Fatalf("a polite call failed: %v", err)
		}
		slowest = max(slowest, time.Since(begin))
		time.Sleep(politeInterval)
	}
	fmt.Printf("polite: slowest of %d calls %v\n", hostileTime()/politeInterval, slowest)
}

// hostileTime is short by default; QRM_HOSTILE_SECONDS=60 for the whole attack.
func hostileTime() time.Duration {
	if seconds, err := strconv.Atoi(os.Getenv("QRM_HOSTILE_SECONDS")); err == nil {
		return time.Duration(seconds) * time.Second
	}
	return 3 * time.Second
}

func TestHostileClientHarmsNobodyElse(t *testing.T) {
	node := serve(t)
	before := residentBytes(t, node.pid)
	stop := make(chan struct{})
	var attackers sync.WaitGroup
	attackers.Go(func() { manyConnections(node.socket, stop) })
	attackers.Go(func() { halfOpenStreams(node.socket, stop) })
	attackers.Go(func() { garbage(node.socket, stop) })
	attackers.Go(func() { burst(t, node.socket, stop) })

	polite := exec.Command(copyOfThisProgram(t, node), "-test.run=^TestPoliteClient$")
	polite.Env = append(os.Environ(), politeRole+"="+node.socket)
	if os.Geteuid() == 0 { // as another user of the socket's group
		polite.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 0}}
	}
	output, err := polite.CombinedOutput()
	grown := residentBytes(t, node.pid) - before
	close(stop)
	attackers.Wait()

	t.Logf("memory grew by %d KiB; %s", grown>>10, output)
	if err != nil {
		t.Errorf("the other process suffered: %v", err)
	}
	if grown > memoryAllowance {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
}
