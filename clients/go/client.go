// Package dagbridge is the Go client of a dagbridge gateway.
//
// A Client has every method of the service, as generated, and those that the generated code cannot give: Submit, Lookup, and
// Wait, Watch and Logs, which go on by themselves when the connection or the gateway was away. Requests and answers are the
// protocol's own messages. Errors are gRPC statuses: status.Code tells what kind, and the message is a sentence.
//
// A request that the gateway has not received is sent again by gRPC. Sending a submission again is always safe: the same key,
// tryNumber and uid are the same job.
package dagbridge

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// maxRequest is the largest request that the gateway takes, in bytes. An answer may be larger: a plan, for one, has a script for
// each task.
const maxRequest = 64 << 20

// retries: UNAVAILABLE means that the gateway has not taken the request. Streams sit an outage out by themselves.
const retries = `{"methodConfig": [
	{"name": [{"service": "dagbridge.v1.BridgeService", "method": "WatchJobs"}, {"service": "dagbridge.v1.BridgeService", "method": "ReadLogs"}]},
	{"name": [{"service": "dagbridge.v1.BridgeService"}], "retryPolicy": {
		"maxAttempts": 4, "initialBackoff": "0.2s", "maxBackoff": "2s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// Client is a connection to one gateway. It may be used concurrently, and is made once per process.
type Client struct {
	dagbridgev1.BridgeServiceClient
	conn *grpc.ClientConn
	away func(err error, since time.Duration) error
}

// Options are how a gateway is reached. The zero value reaches one on this machine.
type Options struct {
	// Token is sent with every call.
	Token string
	// TokenFile holds the token; it is read for every call, so that it may change.
	TokenFile string
	// TLS is how the gateway is made sure of. nil: not at all on a loopback address, else with the system's authorities.
	TLS *tls.Config
	// Away, when set, is called each time a watch, a wait or a followed log finds the gateway away, with how long it has been
	// by then, at first 0. An error that it returns ends the call; without one it goes on for as long as it takes.
	Away func(err error, since time.Duration) error
}

// Dial makes a client of the gateway at host:port. It connects with the first call, and again whenever it must.
func Dial(address string, o Options) (*Client, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%q is not the address of a gateway: write host:port", address)
	}
	if o.TLS == nil && !isLoopback(host) {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	transport := insecure.NewCredentials()
	if o.TLS != nil {
		transport = credentials.NewTLS(o.TLS)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultServiceConfig(retries),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(maxRequest)),
	}
	if o.Token != "" || o.TokenFile != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer{options: o}))
	}
	conn, err := grpc.NewClient(address, options...)
	if err != nil {
		return nil, fmt.Errorf("the gateway at %s: %w", address, err)
	}
	return &Client{BridgeServiceClient: dagbridgev1.NewBridgeServiceClient(conn), conn: conn, away: o.Away}, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Close ends the connection, and with it watches and logs that are under way.
func (c *Client) Close() error { return c.conn.Close() }

// Submit submits a task and answers with its job as soon as the gateway has it for good. Sent again, it is the same job.
func (c *Client) Submit(ctx context.Context, task *dagbridgev1.Task) (*dagbridgev1.Job, error) {
	resp, err := c.SubmitTask(ctx, &dagbridgev1.SubmitTaskRequest{Task: task})
	return resp.GetJob(), err
}

// Lookup finds the newest job of a task; NOT_FOUND when it has none.
func (c *Client) Lookup(ctx context.Context, key *dagbridgev1.TaskKey) (*dagbridgev1.Job, error) {
	resp, err := c.LookupJob(ctx, &dagbridgev1.LookupJobRequest{
		Deployment: key.GetDeployment(), Orchestrator: key.GetOrchestrator(), Workflow: key.GetWorkflow(), Run: key.GetRun(), Task: key.GetTask(), MapIndex: key.GetMapIndex(),
	})
	return resp.GetJob(), err
}

// bearer sends the token. Without TLS it goes to loopback addresses only: Dial sees to it.
type bearer struct{ options Options }

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token := b.options.Token
	if b.options.TokenFile != "" {
		text, err := os.ReadFile(b.options.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("reading the token: %w", err)
		}
		token = strings.TrimSpace(string(text))
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.options.TLS != nil }
