package hostile

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"qrm.local/test/interop/node"
)

const (
	attackRole       = "QRM_INTEROP_ATTACK"
	attackPorts      = "QRM_INTEROP_PORTS" // of HTTP, with commas
	idleConns        = 400                 // to each of them
	preface          = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	hostileConns     = 10_000
	hostileBurst     = 100_000
	burstConnections = 8
	burstStreams     = 32 // requests of one connection at a time
)

// TestAttack is the hostile process, not a test of its own: it ends when it is killed, or its standard input ends.
func TestAttack(t *testing.T) {
	socket := os.Getenv(attackRole)
	if socket == "" {
		t.Skip("runs within TestHostileClientHarmsNoOtherClient")
	}
	for _, attack := range []func(string){holdConnections, openHalfStreams, sendGarbage, floodContinuations} {
		go attack(socket)
	}
	for _, port := range strings.Split(os.Getenv(attackPorts), ",") {
		go holdPort(port)
	}
	go func() {
		for {
			sendBurst(t, socket)
		}
	}()
	os.Stdin.Read(make([]byte, 1))
}

// holdConnections opens as many as the server takes, and opens rejected ones again every second.
func holdConnections(socket string) {
	held := make([]net.Conn, hostileConns)
	for ; ; time.Sleep(time.Second) {
		for i := range held {
			if held[i] == nil || isClosed(held[i]) {
				held[i], _ = net.Dial("unix", socket)
			}
		}
	}
}

// isClosed reads what the server says, if it says anything: its settings, or the end.
func isClosed(connection net.Conn) bool {
	connection.SetReadDeadline(time.Now())
	buffer := make([]byte, 256)
	for {
		if _, err := connection.Read(buffer); err != nil {
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				return false
			}
			connection.Close()
			return true
		}
	}
}

// frame is an HTTP/2 frame with a header that announces length bytes, whatever the payload has.
func frame(length uint32, kind, flags byte, stream uint32, payload []byte) []byte {
	header := make([]byte, 9, 9+len(payload))
	header[0], header[1], header[2] = byte(length>>16), byte(length>>8), byte(length)
	header[3], header[4] = kind, flags
	binary.BigEndian.PutUint32(header[5:], stream)
	return append(header, payload...)
}

// openHalfStreams begins requests and never ends them.
func openHalfStreams(socket string) {
	for {
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

// sendGarbage sends frames that are too long, of no kind, or no frames at all.
func sendGarbage(socket string) {
	noise := make([]byte, 64<<10)
	for {
		connection, err := net.Dial("unix", socket)
		if err != nil {
			continue
		}
		connection.SetDeadline(time.Now().Add(time.Second))
		if rand.IntN(2) == 0 {
			connection.Write([]byte(preface))
			connection.Write(frame(0, 4, 0, 0, nil))
		}
		for i := 0; i < len(noise); i += 8 {
			binary.LittleEndian.PutUint64(noise[i:], rand.Uint64())
		}
		connection.Write(frame(1<<24-1, byte(rand.Uint32()), byte(rand.Uint32()), rand.Uint32()>>1, noise))
		connection.Close()
	}
}

// floodContinuations begins headers and continues them as long as the server reads on.
func floodContinuations(socket string) {
	more := frame(16_000, 9, 0, 1, bytes.Repeat([]byte{'a'}, 16_000))
	for {
		connection, err := net.Dial("unix", socket)
		if err != nil {
			continue
		}
		connection.SetDeadline(time.Now().Add(time.Minute))
		var message bytes.Buffer
		message.WriteString(preface)
		message.Write(frame(0, 4, 0, 0, nil))
		// A literal header whose value is to have 2^28 bytes.
		begun := []byte{0, 1, 'a', 0x7f, 0x81, 0xff, 0xff, 0x7f}
		message.Write(frame(uint32(len(begun)), 1, 0, 1, begun))
		for _, err = connection.Write(message.Bytes()); err == nil; {
			_, err = connection.Write(more)
		}
		connection.Close()
	}
}

// holdPort keeps connections to a port open and says nothing on them.
func holdPort(port string) {
	held := make([]net.Conn, idleConns)
	for ; ; time.Sleep(time.Second) {
		for i := range held {
			if held[i] == nil || isClosed(held[i]) {
				held[i], _ = net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
			}
		}
	}
}

// sendBurst sends its requests as fast as they are answered.
func sendBurst(t *testing.T, socket string) {
	var group sync.WaitGroup
	for range burstConnections {
		connection := node.Dial(t, socket)
		client := podresources.NewPodResourcesListerClient(connection)
		for range burstStreams {
			group.Go(func() {
				for range hostileBurst / burstConnections / burstStreams {
					client.List(context.Background(), &podresources.ListPodResourcesRequest{})
				}
			})
		}
	}
	group.Wait()
}
