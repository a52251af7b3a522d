package chart

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// filesOf are the regular files of a tar archive.
func filesOf(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return files
		}
		var text []byte
		if err == nil {
			text, err = io.ReadAll(reader)
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			files[strings.TrimPrefix(header.Name, "./")] = text
		}
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// TestImageLabelsSayWhatIsInIt is run by test/e2e/daemonset.sh.
func TestImageLabelsSayWhatIsInIt(t *testing.T) {
	skipWithoutRuntime(t)
	path := os.Getenv("QRM_IMAGE_ARCHIVE")
	archive, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	layout := filesOf(t, archive)
	var manifest []struct {
		Config string
		Layers []string
	}
	decode(t, layout["manifest.json"], &manifest)
	var image struct {
		Config struct {
			User   string
			Labels map[string]string
		} `json:"config"`
	}
	decode(t, layout[manifest[0].Config], &image)
	version := strings.TrimPrefix(render(t, nil).container().Image, "localhost/qrm:")
	if labels := image.Config.Labels; image.Config.User != "0:0" || labels["org.opencontainers.image.version"] != version ||
		labels["org.opencontainers.image.licenses"] != "Apache-2.0" || len(labels["org.opencontainers.image.revision"]) < 7 {
		t.Errorf("the image says %v", image.Config)
	}

	files := filesOf(t, layout[manifest[0].Layers[0]])
	beside, err := os.ReadFile(strings.TrimSuffix(path, ".tar") + ".spdx.json")
	if err != nil || !bytes.Equal(beside, files["usr/share/doc/qrm/qrm.spdx.json"]) {
		t.Errorf("the documents in and beside the image differ: %v", err)
	}
	var document struct {
		SpdxVersion string
		Packages    []struct{ Name, VersionInfo string }
	}
	decode(t, beside, &document)
	listed := map[string]string{}
	for _, one := range document.Packages {
		listed[one.Name] = one.VersionInfo
	}
	if document.SpdxVersion != "SPDX-2.3" || listed["qrm"] != version || listed["libboost1.81-dev"] == "" {
		t.Errorf("%s lists %v", document.SpdxVersion, listed)
	}
	libraries := 0
	for name, text := range files {
		if filepath.Dir(name) != "var/lib/dpkg/status.d" {
			continue
		}
		libraries++
		if version := listed[filepath.Base(name)]; version == "" || !strings.Contains(string(text), "\nVersion: "+version+"\n") {
			t.Errorf("of %s, the document lists version %q", name, version)
		}
	}
	if libraries < 10 {
		t.Errorf("there are %d packages in the image", libraries)
	}
}
