package chart

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// apiServer is an unmodified kube-apiserver, with an etcd of its own.
type apiServer struct {
	t         *testing.T
	url       string
	authority string // the file of its certificate and its issuer's
	client    *http.Client
	restart   func()                            // kills it, and starts it again on the same data
	pause     func(meanwhile func(data string)) // the same, and of etcd; its data is unused meanwhile
}

const apiServerPatience = time.Minute

type object = map[string]any

// startApiServer runs the programs of the directory until the test ends.
func startApiServer(t *testing.T, programs string) *apiServer {
	t.Helper()
	dir := t.TempDir()
	etcd, peers, port := freePort(t), freePort(t), freePort(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys, tokens := filepath.Join(dir, "sa.key"), filepath.Join(dir, "tokens.csv")
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	for file, text := range map[string]string{keys: string(pemKey), tokens: "admin,admin,admin,system:masters\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	local := "http://127.0.0.1:%d"
	data := filepath.Join(dir, "etcd")
	startEtcd := func() *exec.Cmd {
		return run(t, filepath.Join(dir, "etcd.log"), filepath.Join(programs, "etcd"), "--data-dir="+data, "--unsafe-no-fsync",
			fmt.Sprintf("--listen-client-urls="+local, etcd), fmt.Sprintf("--advertise-client-urls="+local, etcd),
			fmt.Sprintf("--listen-peer-urls="+local, peers))
	}
	store := startEtcd()
	arguments := []string{fmt.Sprintf("--etcd-servers="+local, etcd),
		fmt.Sprint("--secure-port=", port), "--bind-address=127.0.0.1", "--cert-dir=" + filepath.Join(dir, "pki"), "--token-auth-file=" + tokens,
		"--authorization-mode=RBAC", "--service-account-key-file=" + keys, "--service-account-signing-key-file=" + keys,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.96.0.0/24",
		// Nothing makes the accounts that this plugin wants to find.
		"--disable-admission-plugins=ServiceAccount"}
	start := func() *exec.Cmd {
		return run(t, filepath.Join(dir, "apiserver.log"), filepath.Join(programs, "kube-apiserver"), arguments...)
	}
	command := start()
	server := &apiServer{t, fmt.Sprintf("https://127.0.0.1:%d", port), filepath.Join(dir, "pki", "apiserver.crt"),
		&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: apiServerPatience}, nil, nil}
	awaitReady := func() {
		server.await("the API server", func() bool {
			code, _ := server.call(http.MethodGet, "/readyz", "", nil)
			return code == http.StatusOK
		})
	}
	server.restart = func() {
		command.Process.Kill()
		command.Wait()
		command = start()
		awaitReady()
	}
	server.pause = func(meanwhile func(data string)) {
		for _, program := range []*exec.Cmd{command, store} {
			program.Process.Kill()
			program.Wait()
		}
		meanwhile(data)
		store, command = startEtcd(), start()
		awaitReady()
	}
	awaitReady()
	return server
}

// run starts a program that ends with the test; what it wrote is shown when the test failed.
func run(t *testing.T, log, program string, arguments ...string) *exec.Cmd {
	t.Helper()
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = file, file
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
		file.Close()
		if text, _ := os.ReadFile(log); t.Failed() {
			t.Logf("%s ended with:\n%s", filepath.Base(program), text[max(0, len(text)-4000):])
		}
	})
	return command
}

func (s *apiServer) await(what string, condition func() bool) {
	s.t.Helper()
	for end := time.Now().Add(apiServerPatience); !condition(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// createAs is create with the token of another account.
func (s *apiServer) createAs(token, path string, body any) (int, string) {
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := s.request(http.MethodPost, path, token, "application/json", text)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	var status struct{ Message string }
	json.NewDecoder(answer.Body).Decode(&status)
	return answer.StatusCode, status.Message
}

// call returns the code and the message of the answer; a body of another content type than JSON is a patch.
func (s *apiServer) call(method, path, content string, body any) (int, string) {
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	request, err := http.NewRequest(method, s.url+path, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer admin")
	request.Header.Set("Content-Type", content)
	answer, err := s.client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	read, _ := io.ReadAll(answer.Body)
	var status struct{ Message string }
	json.Unmarshal(read, &status)
	return answer.StatusCode, status.Message
}

func (s *apiServer) create(path string, body any) (int, string) {
	return s.call(http.MethodPost, path, "application/json", body)
}

func (s *apiServer) patch(path string, body any) (int, string) {
	return s.call(http.MethodPatch, path, "application/merge-patch+json", body)
}

// mustCreate is create for an object that must not be rejected.
func (s *apiServer) mustCreate(path string, body any) {
	s.t.Helper()
	if code, message := s.create(path, body); code != http.StatusCreated {
		s.t.Fatalf("%s: %d %s", path, code, message)
	}
}

// post creates an object and reads the answer.
func (s *apiServer) post(path string, body, into any) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := s.request(http.MethodPost, path, "admin", "application/json", text)
	if err != nil || answer.StatusCode != http.StatusCreated {
		s.t.Fatal(path, answer, err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		s.t.Fatal(err)
	}
}

func (s *apiServer) request(method, path, token, content string, body []byte) (*http.Response, error) {
	request, err := http.NewRequest(method, s.url+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", content)
	return s.client.Do(request)
}

// tokenOf asks for a token of an account, bound to a pod where `spec` says so.
func (s *apiServer) tokenOf(namespace, account string, spec object) string {
	s.t.Helper()
	var token struct{ Status struct{ Token string } }
	s.post("/api/v1/namespaces/"+namespace+"/serviceaccounts/"+account+"/token",
		object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}, &token)
	return token.Status.Token
}
