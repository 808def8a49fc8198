package kubernetes

import (
	"context"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
)

// Log reads what the program wrote. A kubelet keeps one log of a container, in which both streams are: here it is stdout, and
// stderr is empty. It knows no offsets: the log is read twice, once for its size and once from the offset on, and never kept.
func (b *Backend) Log(ctx context.Context, ref backend.NativeRef, _ *dagbridgev1.Job, position int, stream string, offset int64) (io.ReadCloser, int64, error) {
	if stream != "stdout" && stream != "stderr" {
		return nil, 0, fmt.Errorf("there is no stream %q: ask for stdout or stderr", stream)
	}
	c, err := b.connect()
	if err != nil {
		return nil, 0, err
	}
	pod, err := b.pod(ctx, c, ref, position)
	if err != nil {
		return nil, 0, err
	}
	if pod == nil {
		return nil, 0, backend.ErrNoFile
	}
	options := &corev1.PodLogOptions{Container: translate.MainOf(pod)}
	open := func() (io.ReadCloser, error) {
		r, err := c.core.Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
		if apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) {
			return nil, backend.ErrNoFile // it has not started
		}
		return r, err
	}
	first, err := open()
	if err != nil {
		return nil, 0, err
	}
	if stream == "stderr" {
		return io.NopCloser(strings.NewReader("")), 0, first.Close()
	}
	size, err := io.Copy(io.Discard, first)
	_ = first.Close()
	if err != nil {
		return nil, 0, err
	}
	r, err := open()
	if err != nil {
		return nil, 0, err
	}
	offset = min(offset, size)
	if _, err := io.CopyN(io.Discard, r, offset); err != nil {
		_ = r.Close()
		return nil, 0, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(r, size-offset), r}, size, nil
}

// Outputs reads the termination message of the program's container; of several nodes that of the first.
func (b *Backend) Outputs(ctx context.Context, ref backend.NativeRef, _ *dagbridgev1.Job, position int) ([]byte, error) {
	c, err := b.connect()
	if err != nil {
		return nil, err
	}
	pod, err := b.pod(ctx, c, ref, position)
	if err != nil || pod == nil {
		return nil, err
	}
	object, err := translate.Outputs(pod)
	if err != nil {
		return nil, &backend.OutputError{Sentence: err.Error()}
	}
	return object, nil
}

// Logs is how a person reads them.
func (b *Backend) Logs(_ *dagbridgev1.Job, token string, _ int) *dagbridgev1.Logs {
	return &dagbridgev1.Logs{Stdout: "kubectl logs -n " + b.options.Namespaces[0] + " -l " + translate.TokenLabel + "=" + token}
}

// pod is that of a position, or the first one; nil when there is none.
func (b *Backend) pod(ctx context.Context, c *clients, ref backend.NativeRef, position int) (*corev1.Pod, error) {
	where, err := parseID(ref.ID)
	if err != nil {
		return nil, err
	}
	selector := translate.TokenLabel + "=" + ref.Token
	if position >= 0 {
		index, err := c.index(ctx, ref, position)
		if err != nil || index < 0 {
			return nil, err
		}
		selector += "," + batchv1.JobCompletionIndexAnnotation + "=" + strconv.Itoa(index)
	}
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	list, err := c.core.Pods(where.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	sort.Slice(list.Items, func(i, j int) bool { return list.Items[i].Name < list.Items[j].Name })
	return &list.Items[0], nil
}

// index is that of a position in an array; -1 when it has none.
func (c *clients) index(ctx context.Context, ref backend.NativeRef, position int) (int, error) {
	_, there, err := c.mine(ctx, ref)
	if err != nil || there == nil {
		return -1, err
	}
	positions, err := translate.ParsePositions(there.GetAnnotations()[translate.PositionsAnnotation])
	for i, p := range positions {
		if p == position {
			return i, nil
		}
	}
	return -1, err
}
