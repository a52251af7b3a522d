package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// record is what qrmd has on record of a container.
type record struct {
	Name          string
	Type          string
	RuntimeId     string             `json:"runtime_id"`
	Requests      map[string]float64 `json:"requests"`
	RequestSource string             `json:"request_source"`
	Allocations   []struct {
		ResourceName string `json:"resource_name"`
		OciProperty  string `json:"oci_property"`
		Value        string
		Quantity     float64
		Exclusive    bool
	}
}

// cpus are the CPUs that it may use, and whether they are exclusive.
func (r record) cpus() (string, bool) {
	for _, allocation := range r.Allocations {
		if allocation.OciProperty == "CpusetCpus" {
			return allocation.Value, allocation.Exclusive
		}
	}
	return "", false
}

func (r record) String() string {
	cpus, own := r.cpus()
	return fmt.Sprintf("%s %s own=%v", r.Type, cpus, own)
}

// recordsOf finds the containers of a namespace, by POD/CONTAINER.
func recordsOf(namespace string) (map[string]record, error) {
	var answer struct {
		Pods []struct {
			Namespace, Name string
			Containers      []record
		}
	}
	if err := read(&answer, "qrmctl", "pods", "-o", "json"); err != nil {
		return nil, err
	}
	found := map[string]record{}
	for _, pod := range answer.Pods {
		if pod.Namespace == namespace {
			for _, container := range pod.Containers {
				found[pod.Name+"/"+container.Name] = container
			}
		}
	}
	return found, nil
}

// records are those of the namespace default.
func records(t *testing.T) map[string]record {
	t.Helper()
	found, err := recordsOf("default")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// leftover is nil when the API server has each pod of which qrmd has a record.
func leftover() error {
	found, err := recordsOf("default")
	if err != nil {
		return err
	}
	pods, err := callWith("", "kubectl", "get", "pods", "-o", "name")
	for name := range found {
		if pod, _, _ := strings.Cut(name, "/"); !strings.Contains("\n"+pods, "\npod/"+pod+"\n") {
			return errors.Join(err, fmt.Errorf("it has %s", name))
		}
	}
	return err
}

// ownCpusOf is the exclusive CPU of a container; the test ends where it has none.
func ownCpusOf(t *testing.T, name string) string {
	t.Helper()
	found := records(t)
	cpus, own := found[name].cpus()
	if !own {
		t.Fatalf("%s has no CPU of its own: %v", name, found)
	}
	return cpus
}

// cgroupOf is the cgroup directory of a container in the hierarchy that has cpusets.
func cgroupOf(id string) (string, error) {
	root := "/sys/fs/cgroup/cpuset/kubepods"
	if _, err := os.Stat(root); err != nil {
		root = "/sys/fs/cgroup/kubepods"
	}
	var found string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == id {
			found = path
			return filepath.SkipAll
		}
		return nil // of what has ended since
	})
	if found == "" {
		err = errors.Join(err, fmt.Errorf("container %s has no cgroup below %s", id, root))
	}
	return found, err
}

func kernelValue(id, file string) (string, error) {
	directory, err := cgroupOf(id)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(directory, file))
	return strings.TrimSpace(string(text)), err
}

// idsOf are the CPUs of a list such as 0-3,8.
func idsOf(list string) map[int]bool {
	ids := map[int]bool{}
	for _, part := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			to, _ = strconv.Atoi(last)
		}
		for id := from; id <= to; id++ {
			ids[id] = true
		}
	}
	return ids
}

func (r record) ownsCpus() bool {
	_, own := r.cpus()
	return own
}

// disagreement is nil when the kernel has for each container what qrmd has on record, and exclusive
// CPUs are not shared. Containers that have ended since are left out.
func disagreement() error {
	found, err := recordsOf("default")
	if err != nil {
		return err
	}
	owners, users := map[int]string{}, map[int][]string{}
	for name, each := range found {
		cpus, own := each.cpus()
		kernel, err := kernelValue(each.RuntimeId, "cpuset.cpus")
		if err != nil {
			continue
		}
		if kernel != cpus {
			return fmt.Errorf("%s has CPUs %s in the kernel and %s on record", name, kernel, cpus)
		}
		for id := range idsOf(kernel) {
			users[id] = append(users[id], name)
			if own {
				owners[id] = name
			}
		}
	}
	for id, owner := range owners {
		for _, user := range users[id] {
			ownerPod, _, _ := strings.Cut(owner, "/")
			userPod, _, _ := strings.Cut(user, "/")
			if ownerPod != userPod {
				return fmt.Errorf("%s is on CPU %d, which %s owns", user, id, owner)
			}
		}
	}
	return nil
}

func awaitAgreement(t *testing.T) {
	t.Helper()
	await(t, "the kernel to have what is on record", disagreement)
}

// placesOf are the CPUs of each container, to compare.
func placesOf(found map[string]record) string {
	var lines []string
	for name, each := range found {
		lines = append(lines, name+" "+each.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// quotaOf is a container's CPU limit as the kernel has it, in microseconds of each tenth of a second.
func quotaOf(id string) (string, error) {
	directory, err := cgroupOf(id)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(strings.Replace(directory, "/cpuset/", "/cpu/", 1), "cpu.cfs_quota_us"))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(filepath.Join(directory, "cpu.max"))
	}
	if err != nil {
		return "", err
	}
	return strings.Fields(string(text))[0], nil
}
