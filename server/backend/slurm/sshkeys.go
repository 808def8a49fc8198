package slurm

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// signers are the keys to log in with, as files and agent have them now: a certificate may be of an hour's life. The agent is
// to be closed once they have been used.
func (o *SSH) signers() (signers []ssh.Signer, closeAgent func() error, err error) {
	closeAgent = func() error { return nil }
	if o.KeyFile != "" {
		signers, err = o.fileSigner()
	} else {
		signers, closeAgent, err = o.agentSigners()
	}
	if err != nil || o.CertFile == "" {
		return signers, closeAgent, err
	}
	certified, err := o.certified(signers)
	if err != nil {
		return nil, closeAgent, errors.Join(err, closeAgent())
	}
	return []ssh.Signer{certified}, closeAgent, nil
}

func (o *SSH) fileSigner() ([]ssh.Signer, error) {
	text, err := os.ReadFile(o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("ssh.keyFile cannot be read: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, fmt.Errorf("the key in %s has a passphrase: give it to an agent, and name that by ssh.agent", o.KeyFile)
	case err != nil:
		return nil, fmt.Errorf("%s holds no private key: %w", o.KeyFile, err)
	}
	return []ssh.Signer{signer}, nil
}

func (o *SSH) agentSigners() ([]ssh.Signer, func() error, error) {
	path := cmp.Or(o.Agent, os.Getenv("SSH_AUTH_SOCK"))
	if path == "" {
		return nil, nil, errors.New("there is no key to log in with: name ssh.keyFile or ssh.agent, or run the gateway with SSH_AUTH_SOCK")
	}
	connection, err := net.Dial("unix", path)
	if err != nil {
		return nil, nil, fmt.Errorf("the ssh agent does not answer: %w", err)
	}
	signers, err := agent.NewClient(connection).Signers()
	switch {
	case err != nil:
		err = fmt.Errorf("the ssh agent at %s: %w", path, err)
	case len(signers) == 0:
		err = fmt.Errorf("the ssh agent at %s has no keys: add one with ssh-add", path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, connection.Close())
	}
	return signers, connection.Close, nil
}

// certified is the signer that the certificate is for, with the certificate.
func (o *SSH) certified(signers []ssh.Signer) (ssh.Signer, error) {
	text, err := os.ReadFile(o.CertFile)
	if err != nil {
		return nil, fmt.Errorf("ssh.certFile cannot be read: %w", err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(text)
	certificate, ok := key.(*ssh.Certificate)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s holds no certificate: it is what ssh-keygen -s writes, a file that ends in -cert.pub", o.CertFile)
	}
	for _, signer := range signers {
		if bytes.Equal(signer.PublicKey().Marshal(), certificate.Key.Marshal()) {
			return ssh.NewCertSigner(certificate, signer)
		}
	}
	return nil, fmt.Errorf("the certificate in %s is of another key than there is to log in with", o.CertFile)
}
