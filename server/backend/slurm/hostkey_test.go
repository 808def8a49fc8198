package slurm

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

func publicKeys(t *testing.T) (ed, other, rsaKey ssh.PublicKey) {
	t.Helper()
	newEd := func() ssh.PublicKey {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		require.NoError(t, err)
		key, err := ssh.NewPublicKey(public)
		require.NoError(t, err)
		return key
	}
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	rsaKey, err = ssh.NewPublicKey(private.Public())
	require.NoError(t, err)
	return newEd(), newEd(), rsaKey
}

func TestAHostShowsTheKeyThatIsKnownOfIt(t *testing.T) {
	t.Parallel()
	ed, other, rsaKey := publicKeys(t)
	line := func(key ssh.PublicKey) string { return string(ssh.MarshalAuthorizedKey(key)) }
	file := filepath.Join(t.TempDir(), "known_hosts")
	require.NoError(t, os.WriteFile(file, []byte("# ours\n"+
		"login1 "+line(ed)+"login2 "+line(rsaKey)+"[login3]:2222 "+line(ed)+"\n\n@cert-authority [login3]:2222 "+line(other)+
		"@revoked * "+line(other)), 0o600))
	remote := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 22}
	for address, c := range map[string]struct {
		algorithms []string
		key        ssh.PublicKey
		fault      string
	}{
		"login1:22":   {[]string{ssh.KeyAlgoED25519}, ed, ""},
		"login2:22":   {[]string{ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512}, rsaKey, ""},
		"login2:2222": {nil, rsaKey, "has none for it"},
		"login4:22":   {nil, ed, "has none for it"},
		"login1:0022": {nil, ed, "has none for it"},
	} {
		h, err := readHostKeys(file, address)
		require.NoError(t, err)
		require.Equal(t, c.algorithms, h.algorithms, address)
		if err := h.verify(address, remote, c.key); c.fault == "" {
			require.NoError(t, err, address)
		} else {
			require.ErrorContains(t, err, c.fault)
		}
	}
	h, err := readHostKeys(file, "login3:2222")
	require.NoError(t, err)
	require.Contains(t, h.algorithms, ssh.KeyAlgoED25519)
	require.Contains(t, h.algorithms, ssh.CertAlgoED25519v01)
	h, err = readHostKeys(file, "login1:22")
	require.NoError(t, err)
	require.ErrorContains(t, h.verify("login1:22", remote, other), "is revoked")
	require.ErrorContains(t, h.verify("login1:22", remote, rsaKey), "line 2, has another for it")
}
