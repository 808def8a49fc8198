package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagbridge/dagbridge/server/config"
)

// maxComplaint is how many bytes of a refusal are read.
const maxComplaint = 4096

func newBackup() *cobra.Command {
	var g gateway
	var address, path string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the store of a running gateway into a file",
		Long: `Copy the store of a running gateway, as it is at this moment, into a file, which is there whole or not at all. The gateway is
asked over its REST port. To restore, stop the gateway and put the file in the place of dagbridge.db in its data folder.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if address == "" {
				cfg, err := loadConfig(path)
				if err != nil {
					return err
				}
				address = cfg.Listen.HTTP
			}
			g.server = address
			n, err := g.backup(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d bytes\n", args[0], n)
			return err
		},
	}
	flags := cmd.Flags()
	g.addCredentials(flags)
	flags.StringVar(&address, "http", "", "host:port of the gateway's REST API; left out: the configuration's")
	flags.StringVar(&path, "config", "", "the gateway's configuration")
	cmd.MarkFlagsMutuallyExclusive("http", "config")
	return cmd
}

// backup writes the store into a file beside the wanted one, which it then replaces.
func (g *gateway) backup(ctx context.Context, path string) (n int64, err error) {
	answer, err := g.get(ctx, "/admin/backup")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if n, err = io.Copy(file, answer.Body); err != nil {
		return 0, errors.Join(exitf(exitGateway, "the backup broke off after %d bytes: %w", n, err), file.Close())
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return 0, err
	}
	return n, os.Rename(file.Name(), path)
}

// get asks the gateway's REST port; an answer that is no success is an error.
func (g *gateway) get(ctx context.Context, path string) (*http.Response, error) {
	tlsConfig, err := g.tls()
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(g.server)
	if err != nil {
		return nil, fmt.Errorf("--http %q is not host:port, as in 127.0.0.1:7071", g.server)
	}
	scheme := "https"
	if tlsConfig == nil && config.IsLoopback(host) {
		scheme = "http"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+g.server+path, nil)
	if err != nil {
		return nil, err
	}
	token, err := g.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig}}).Do(request)
	if err != nil {
		return nil, exitf(exitGateway, "the gateway cannot be reached: %w", err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxComplaint))
	return nil, exitf(exitGateway, "the gateway answers %s: %s", answer.Status, strings.TrimSpace(string(text)))
}
