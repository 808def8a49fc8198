package slurmtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// busybox is Debian's static one: an image that needs no network.
const busybox = "/bin/busybox"

// Image is a new folder with the file system of a small image that belongs to a user: busybox, and /etc/image, by which a
// program sees where it is. The folder of the tests' files is a mount point in it.
func (c *Cluster) Image(tb testing.TB, owner string) string {
	tb.Helper()
	dir, err := os.MkdirTemp(filepath.Join(c.Prefix, "out"), "image-")
	if err != nil {
		tb.Fatal(err)
	}
	c.fill(tb, dir)
	c.give(tb, dir, owner)
	return dir
}

// Bundle is an OCI bundle of the same image that belongs to a user, who needs no privilege to run it. What its config.json
// mounts is the folder of the tests' files, unless nothing.
func (c *Cluster) Bundle(tb testing.TB, owner string, mounts bool) string {
	tb.Helper()
	dir, err := os.MkdirTemp(filepath.Join(c.Prefix, "out"), "bundle-")
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "rootfs"), 0o755); err != nil {
		tb.Fatal(err)
	}
	c.fill(tb, filepath.Join(dir, "rootfs"))
	config, err := json.MarshalIndent(c.bundle(tb, owner, mounts), "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644)
	}
	if err != nil {
		tb.Fatal(err)
	}
	c.give(tb, dir, owner)
	return dir
}

// fill makes the file system of an image.
func (c *Cluster) fill(tb testing.TB, dir string) {
	tb.Helper()
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		tb.Fatalf("busybox-static is needed (apt-get install busybox-static): %v", err)
	}
	script := `cd "$1" && mkdir -p bin etc dev proc sys tmp home root ".$2" && cp "$3" bin/busybox && echo busybox >etc/image &&
		printf 'root:x:0:0::/root:/bin/sh\n' >etc/passwd && printf 'root:x:0:\n' >etc/group && : >etc/hosts && : >etc/resolv.conf &&
		for applet in $4; do [ -e "bin/$applet" ] || ln -s busybox "bin/$applet" || exit; done`
	out, err := exec.Command("sh", "-c", script, "sh", dir, filepath.Join(c.Prefix, "out"), busybox, string(applets)).CombinedOutput()
	if err != nil {
		tb.Fatalf("making an image: %v\n%s", err, out)
	}
}

// give makes a folder somebody's.
func (c *Cluster) give(tb testing.TB, dir, owner string) {
	tb.Helper()
	if out, err := exec.Command("sh", "-c", `chown -R "$1:" "$2" && chmod -R a+rX "$2"`, "sh", owner, dir).CombinedOutput(); err != nil {
		tb.Fatalf("giving %s to %s: %v\n%s", dir, owner, err, out)
	}
}

// bundle is the config.json. The owner is root inside.
func (c *Cluster) bundle(tb testing.TB, owner string, mounts bool) map[string]any {
	tb.Helper()
	account, err := user.Lookup(owner)
	if err != nil {
		tb.Fatal(err)
	}
	mapping := func(id string) []any {
		n, _ := strconv.Atoi(id)
		return []any{map[string]any{"containerID": 0, "hostID": n, "size": 1}}
	}
	type list = []any
	type object = map[string]any
	mounted := list{
		object{"destination": "/proc", "type": "proc", "source": "proc"},
		object{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": list{"nosuid", "mode=755", "size=64k"}},
	}
	if mounts {
		out := filepath.Join(c.Prefix, "out")
		mounted = append(mounted, object{"destination": out, "type": "bind", "source": out, "options": list{"rbind", "rw"}})
	}
	var namespaces list
	for kind := range strings.FieldsSeq("user pid mount ipc uts") {
		namespaces = append(namespaces, object{"type": kind})
	}
	return object{
		"ociVersion": "1.0.2",
		"process":    object{"terminal": false, "user": object{"uid": 0, "gid": 0}, "args": list{"sh"}, "env": list{"PATH=/bin"}, "cwd": "/"},
		"root":       object{"path": "rootfs", "readonly": false},
		"mounts":     mounted,
		"linux":      object{"uidMappings": mapping(account.Uid), "gidMappings": mapping(account.Gid), "namespaces": namespaces},
	}
}
