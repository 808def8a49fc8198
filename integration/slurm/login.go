package slurmtest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// LoginNode is this machine as a login node: Debian's sshd on loopback, with keys and a configuration of its own. Every user of
// the machine may log in by the key in KeyFile, or by a certificate of CA's.
type LoginNode struct {
	Port int
	// KeyFile is the private key of whoever logs in, KnownHosts the file that knows the host.
	KeyFile, KnownHosts string
	// CA signs certificates by which users are let in as well.
	CA ssh.Signer

	dir string
	// enter begins a command line that is run where the release of Slurm is.
	enter  []string
	daemon *exec.Cmd
}

// LogIn starts an sshd with these lines of its configuration beside the usual ones; it ends with the test.
func LogIn(tb testing.TB, options ...string) *LoginNode {
	tb.Helper()
	return logIn(tb, nil, options)
}

// LogIn is LogIn on a login node that has the cluster's release of Slurm.
func (c *Cluster) LogIn(tb testing.TB, options ...string) *LoginNode {
	tb.Helper()
	return logIn(tb, c.enter(tb), options)
}

func logIn(tb testing.TB, enter, options []string) *LoginNode {
	tb.Helper()
	dir, err := os.MkdirTemp("/tmp", "dbsshd-") // what is above a test's own temporary folder is closed to other users
	if err == nil {
		err = os.Chmod(dir, 0o755) // sshd reads what it lets a user in by as that user
	}
	if err != nil {
		tb.Fatal(err)
	}
	n := &LoginNode{dir: dir, enter: enter, KeyFile: filepath.Join(dir, "user"), KnownHosts: filepath.Join(dir, "known_hosts")}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	user, host := n.newKey(tb, "user"), n.newKey(tb, "host")
	n.CA = n.newKey(tb, "ca")
	n.certify(tb, "host-cert.pub", &ssh.Certificate{Key: host.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{"127.0.0.1"}}, time.Hour)
	n.newUnknownKey(tb)
	n.Port = freePort(tb)
	n.write(tb, "authorized", string(ssh.MarshalAuthorizedKey(user.PublicKey())), 0o644)
	n.write(tb, "authorities", string(ssh.MarshalAuthorizedKey(n.CA.PublicKey())), 0o644)
	n.write(tb, "known_hosts", knownhosts.Line([]string{n.Address()}, host.PublicKey())+"\n", 0o644)
	n.write(tb, "sshd_config", fmt.Sprintf(`Port %d
ListenAddress 127.0.0.1
HostKey %[2]s/unknown
HostKey %[2]s/host
HostCertificate %[2]s/host-cert.pub
PidFile none
AuthorizedKeysFile %[2]s/authorized
TrustedUserCAKeys %[2]s/authorities
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM yes
LogLevel VERBOSE
MaxStartups 100
`, n.Port, dir)+strings.Join(options, "\n")+"\n", 0o644)
	n.Start(tb)
	tb.Cleanup(func() { n.Signal(tb, syscall.SIGKILL) })
	return n
}

// Address of the sshd.
func (n *LoginNode) Address() string { return fmt.Sprintf("127.0.0.1:%d", n.Port) }

func freePort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (n *LoginNode) write(tb testing.TB, name, text string, mode os.FileMode) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), mode); err != nil {
		tb.Fatal(err)
	}
}

// newUnknownKey makes a second key of the host's, of another type, which nobody has put into known_hosts.
func (n *LoginNode) newUnknownKey(tb testing.TB) {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	n.writeKey(tb, "unknown", private)
}

// newKey makes a key and its file.
func (n *LoginNode) newKey(tb testing.TB, name string) ssh.Signer {
	tb.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	n.writeKey(tb, name, private)
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		tb.Fatal(err)
	}
	return signer
}

func (n *LoginNode) writeKey(tb testing.TB, name string, private crypto.PrivateKey) {
	tb.Helper()
	block, err := ssh.MarshalPrivateKey(private, name)
	if err != nil {
		tb.Fatal(err)
	}
	n.write(tb, name, string(pem.EncodeToMemory(block)), 0o600)
}

// NewKeyFile makes another key, which nobody knows.
func (n *LoginNode) NewKeyFile(tb testing.TB, name string) (string, ssh.Signer) {
	tb.Helper()
	return filepath.Join(n.dir, name), n.newKey(tb, name)
}

// Certify makes a certificate of a key for a user, good for so long, and returns its file.
func (n *LoginNode) Certify(tb testing.TB, key ssh.PublicKey, user string, life time.Duration) string {
	tb.Helper()
	name := fmt.Sprintf("%s-%v-cert.pub", user, life)
	n.certify(tb, name, &ssh.Certificate{Key: key, CertType: ssh.UserCert, ValidPrincipals: []string{user}}, life)
	return filepath.Join(n.dir, name)
}

func (n *LoginNode) certify(tb testing.TB, name string, c *ssh.Certificate, life time.Duration) {
	tb.Helper()
	c.ValidAfter, c.ValidBefore = uint64(time.Now().Add(-time.Hour).Unix()), uint64(time.Now().Add(life).Unix())
	if err := c.SignCert(rand.Reader, n.CA); err != nil {
		tb.Fatal(err)
	}
	n.write(tb, name, string(ssh.MarshalAuthorizedKey(c)), 0o644)
}

// AuthorityFile knows the host by who certifies it alone.
func (n *LoginNode) AuthorityFile(tb testing.TB) string {
	tb.Helper()
	n.write(tb, "known_authority", "@cert-authority [127.0.0.1]:"+strconv.Itoa(n.Port)+" "+string(ssh.MarshalAuthorizedKey(n.CA.PublicKey())), 0o644)
	return filepath.Join(n.dir, "known_authority")
}

// NewHostKey gives the host another key than is known of it, from the next start on.
func (n *LoginNode) NewHostKey(tb testing.TB) ssh.PublicKey {
	tb.Helper()
	host := n.newKey(tb, "host").PublicKey()
	n.certify(tb, "host-cert.pub", &ssh.Certificate{Key: host, CertType: ssh.HostCert, ValidPrincipals: []string{"elsewhere"}}, time.Hour)
	return host
}

// Start starts the sshd, and waits until it listens.
func (n *LoginNode) Start(tb testing.TB) {
	tb.Helper()
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where the unprivileged part is locked up
		tb.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer log.Close()
	argv := append(slices.Clone(n.enter), "/usr/sbin/sshd", "-D", "-e", "-f", filepath.Join(n.dir, "sshd_config"))
	n.daemon = exec.Command(argv[0], argv[1:]...)
	n.daemon.Stderr = log
	n.daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := n.daemon.Start(); err != nil {
		tb.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		connection, err := net.Dial("tcp", n.Address())
		if err == nil {
			connection.Close()
			return
		}
		if time.Now().After(end) {
			tb.Fatalf("sshd does not listen: %v\n%s", err, n.Log(tb))
		}
	}
}

// Signal sends a signal to the sshd and to every connection's process of it. By SIGKILL it is ended when this returns.
func (n *LoginNode) Signal(tb testing.TB, signal syscall.Signal) {
	tb.Helper()
	for _, pid := range append(children(n.daemon.Process.Pid), n.daemon.Process.Pid) {
		_ = syscall.Kill(pid, signal) // it may have ended
	}
	if signal == syscall.SIGKILL {
		_ = n.daemon.Wait()
	}
}

// children are all processes below a process that are sshd's.
func children(pid int) []int {
	var all []int
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	for _, word := range strings.Fields(string(text)) {
		var child int
		fmt.Sscan(word, &child)
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child)); strings.TrimSpace(string(name)) == "sshd" {
			all = append(append(all, children(child)...), child)
		}
	}
	return all
}

// Log is what the sshd has said.
func (n *LoginNode) Log(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, "log"))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// Connections counts those who were let in so far.
func (n *LoginNode) Connections(tb testing.TB) int {
	tb.Helper()
	return bytes.Count([]byte(n.Log(tb)), []byte("Accepted publickey for "))
}
