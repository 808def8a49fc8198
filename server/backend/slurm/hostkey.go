package slurm

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// hostKeys are those by which a login node is known, as its file has them now.
type hostKeys struct {
	file  string
	check ssh.HostKeyCallback
	// algorithms that the host may show a key of: of the types that the file has for it. Asked for a key of another type the
	// right host would look like a wrong one.
	algorithms []string
}

func readHostKeys(file, address string) (*hostKeys, error) {
	check, err := knownhosts.New(file)
	if err != nil {
		return nil, fmt.Errorf("ssh.knownHostsFile cannot be read: %w", err)
	}
	h := &hostKeys{file: file, check: check}
	// a key that nobody has makes the file tell those that it has
	nobodys, err := ssh.NewPublicKey(make(ed25519.PublicKey, ed25519.PublicKeySize))
	if err != nil {
		return nil, err
	}
	var unknown *knownhosts.KeyError
	if errors.As(check(address, nowhere, nobodys), &unknown) {
		err = h.take(unknown.Want)
	}
	return h, err
}

// nowhere is an address that no line of a file is about.
var nowhere = &net.TCPAddr{IP: net.IPv4zero}

// take sets the algorithms. A line of an authority's makes every kind of certificate good.
func (h *hostKeys) take(known []knownhosts.KnownKey) error {
	text, err := os.ReadFile(h.file)
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	for _, key := range known {
		switch {
		case strings.HasPrefix(strings.TrimSpace(lines[key.Line-1]), "@cert-authority"):
			for _, algorithm := range ssh.SupportedAlgorithms().HostKeys {
				if strings.Contains(algorithm, "-cert-") {
					h.algorithms = append(h.algorithms, algorithm)
				}
			}
		case key.Key.Type() == ssh.KeyAlgoRSA:
			h.algorithms = append(h.algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		default:
			h.algorithms = append(h.algorithms, key.Key.Type())
		}
	}
	slices.Sort(h.algorithms)
	h.algorithms = slices.Compact(h.algorithms)
	return nil
}

// verify says in a sentence what is wrong with the key that a host shows.
func (h *hostKeys) verify(address string, remote net.Addr, key ssh.PublicKey) error {
	err := h.check(address, remote, key)
	shown := fmt.Sprintf("%s shows the key %s %s", address, key.Type(), ssh.FingerprintSHA256(key))
	var known *knownhosts.KeyError
	var revoked *knownhosts.RevokedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &revoked):
		return fmt.Errorf("%s, which is revoked in %s, line %d", shown, h.file, revoked.Revoked.Line)
	case !errors.As(err, &known):
		return fmt.Errorf("%s, and %w; its authority is to be in %s", shown, err, h.file)
	case len(known.Want) == 0:
		return fmt.Errorf("%s, and %s has none for it: compare it with what the host's administrator says, and add it there", shown, h.file)
	default:
		return fmt.Errorf("%s, but %s, line %d, has another for it: somebody may be in between, or the host was set up anew; "+
			"ask its administrator before that line is replaced", shown, h.file, known.Want[0].Line)
	}
}
