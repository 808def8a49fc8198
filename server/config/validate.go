package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dagbridge/dagbridge/translators/slurm"
)

// faults is everything that is wrong with the values, each with its path and without a line.
func (c *Config) faults() []Fault {
	var f Faults
	c.Listen.check(&f, len(c.Auth.Tokens) > 0 || c.Auth.ServiceAccounts != nil)
	if c.Data == "" {
		f.add(0, "data", "name the folder of the gateway's own files")
	}
	c.Auth.check(&f)
	if len(c.Clusters) == 0 {
		f.add(0, "clusters", "there is none; leave the key out to have this machine as a cluster")
	}
	names := map[string]int{}
	for i := range c.Clusters {
		path := fmt.Sprintf("clusters[%d]", i)
		c.Clusters[i].check(&f, path)
		name := c.Clusters[i].Name
		if first, ok := names[name]; ok && name != "" {
			f.add(0, path+".name", "clusters[%d] is called %q already", first, name)
		} else {
			names[name] = i
		}
	}
	if c.LostAfter < time.Second {
		f.add(0, "lostAfter", "%s is too soon to give a job up; 1s is the least, 60s is usual", c.LostAfter)
	}
	if c.Retention.Age < 0 {
		f.add(0, "retention.age", "a duration cannot be negative; 0 keeps jobs for ever")
	}
	if c.Retention.Jobs < 0 {
		f.add(0, "retention.jobs", "a number of jobs cannot be negative; 0 sets no limit")
	}
	return f.List
}

func (l *Listen) check(f *Faults, auth bool) {
	addresses := []struct{ path, value string }{{"listen.grpc", l.GRPC}, {"listen.http", l.HTTP}}
	for _, a := range addresses {
		host, port, err := net.SplitHostPort(a.value)
		number, badPort := strconv.ParseUint(port, 10, 16)
		if err != nil || badPort != nil {
			f.add(0, a.path, "%q is not host:port, as in 127.0.0.1:7070", a.value)
			continue
		}
		var missing []string
		if l.TLS.Cert == "" && l.TLS.Key == "" {
			missing = append(missing, "listen.tls")
		}
		if !auth {
			missing = append(missing, "auth")
		}
		if len(missing) > 0 && !IsLoopback(host) {
			f.add(0, a.path, "%s is reached from other machines, which needs listen.tls and auth; %s not set. Set both, or listen on 127.0.0.1",
				a.value, strings.Join(missing, " and ")+are(missing))
		}
		if a.path == "listen.http" && a.value == l.GRPC && number != 0 {
			f.add(0, a.path, "%s is listen.grpc's address; the two doors need one each", a.value)
		}
	}
	switch {
	case l.TLS.Cert != "" && l.TLS.Key == "":
		f.add(0, "listen.tls.key", "a certificate needs its key; name the key's file")
	case l.TLS.Cert == "" && l.TLS.Key != "":
		f.add(0, "listen.tls.cert", "a key needs its certificate; name the certificate's file")
	}
}

func are(words []string) string {
	if len(words) == 1 {
		return " is"
	}
	return " are"
}

// IsLoopback says whether only this machine reaches a host.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func checkImages(f *Faults, path string, images []Image) {
	seen := map[string]bool{}
	for i, image := range images {
		at := fmt.Sprintf("%s[%d]", path, i)
		if image.Name == "" {
			f.add(0, at+".name", "the name of the image is missing")
		}
		if seen[image.Name] {
			f.add(0, at+".name", "%s is there already", image.Name)
		}
		seen[image.Name] = true
		if !filepath.IsAbs(image.Folder) {
			f.add(0, at+".folder", "%q is not an absolute path", image.Folder)
		}
	}
}

func (c *Cluster) check(f *Faults, path string) {
	if c.Name == "" || len(c.Name) > 256 || hasControl(c.Name) {
		f.add(0, path+".name", "a cluster needs a name of at most 256 bytes without control characters")
	}
	var kinds []string
	if c.Local != nil {
		kinds = append(kinds, "local")
		if c.Local.CPUs < 0 {
			f.add(0, path+".local.cpus", "a number of CPUs cannot be negative; 0 takes all of the machine's")
		}
		checkImages(f, path+".local.images", c.Local.Images)
	}
	if c.Slurm != nil {
		kinds = append(kinds, "slurm")
		c.Slurm.check(f, path+".slurm")
	}
	if c.Kubernetes != nil {
		kinds = append(kinds, "kubernetes")
		c.Kubernetes.check(f, path+".kubernetes")
	}
	switch len(kinds) {
	case 0:
		f.add(0, path, "say what kind of cluster it is: local, slurm or kubernetes")
	case 1:
	default:
		f.add(0, path, "%s exclude each other; make them clusters of their own", strings.Join(kinds, " and "))
	}
}

func (s *Slurm) check(f *Faults, path string) {
	if s.SSH != nil {
		s.SSH.check(f, path+".ssh")
		if s.CLI != nil {
			f.add(0, path, "cli and ssh exclude each other: the commands run here or on a login node")
		}
	}
	if s.REST == nil && s.CLI == nil && s.SSH == nil {
		f.add(0, path, "say how Slurm is reached: rest, cli, ssh, or rest beside one of the others")
	}
	if s.REST != nil {
		s.REST.check(f, path+".rest")
	}
	checkImages(f, path+".images", s.Images)
	if s.Pipelines != "" && !filepath.IsAbs(s.Pipelines) {
		f.add(0, path+".pipelines", "%q is not an absolute path", s.Pipelines)
	}
	if !filepath.IsAbs(s.WorkDir) {
		f.add(0, path+".workDir", "name a folder by its absolute path that the gateway and the nodes share")
	}
	if s.PollInterval < 100*time.Millisecond {
		f.add(0, path+".pollInterval", "%s is too often for a scheduler; 100ms is the least, 5s is usual", s.PollInterval)
	}
	if s.Limits.MaxArraySize < 1 {
		f.add(0, path+".limits.maxArraySize", "this is slurm.conf's MaxArraySize, 1 or more")
	}
	if s.Limits.MinJobAge <= 0 {
		f.add(0, path+".limits.minJobAge", "this is slurm.conf's MinJobAge, more than 0s")
	}
	if s.Limits.SubmitRate < 0 {
		f.add(0, path+".limits.submitRate", "jobs a second cannot be negative; 0 sets no limit")
	}
	if s.Container != "" && !slices.Contains(slurm.Runtimes, s.Container) {
		f.add(0, path+".container", "%q is no container runtime that is known here; known are %s", s.Container, strings.Join(slurm.Runtimes, ", "))
	}
	for _, word := range []struct{ key, value string }{{"partition", s.Partition}, {"account", s.Account}, {"qos", s.QOS}} {
		if strings.ContainsFunc(word.value, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
			f.add(0, path+"."+word.key, "%q has blanks or control characters", word.value)
		}
	}
}

func (k *Kubernetes) check(f *Faults, path string) {
	names := map[string]string{path + ".namespace": k.Namespace}
	for i, name := range k.Namespaces {
		names[fmt.Sprintf("%s.namespaces[%d]", path, i)] = name
		if name == "" {
			f.add(0, fmt.Sprintf("%s.namespaces[%d]", path, i), "a namespace has a name")
		}
	}
	for _, field := range slices.Sorted(maps.Keys(names)) {
		if name := names[field]; name != "" {
			for _, why := range validation.IsDNS1123Label(name) {
				f.add(0, field, "%q is no namespace: %s", name, why)
			}
		}
	}
	if u, err := url.Parse(k.URL); k.URL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		f.add(0, path+".url", "%q is not where jobs reach the gateway, as in https://dagbridge.dagbridge:7071", k.URL)
	}
	for i, kind := range k.Kinds {
		if parts := strings.SplitN(kind, ".", 3); len(parts) < 3 || slices.Contains(parts, "") {
			f.add(0, fmt.Sprintf("%s.kinds[%d]", path, i), "%q is no kind of objects: write its plural name, its version and its group (pytorchjobs.v1.kubeflow.org)", kind)
		}
	}
	types := map[string]bool{}
	for i, gpu := range k.GPUs {
		field := fmt.Sprintf("%s.gpus[%d]", path, i)
		if len(validation.IsQualifiedName(gpu.Resource)) > 0 {
			f.add(0, field+".resource", "%q is no resource that counts GPUs: nvidia.com/gpu is usual", gpu.Resource)
		}
		if types[gpu.Type] {
			f.add(0, field+".type", "the type %q is there twice", gpu.Type)
		}
		types[gpu.Type] = true
		for j, label := range gpu.NodeSelector {
			name, value, ok := strings.Cut(label, "=")
			if !ok || len(validation.IsQualifiedName(name)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
				f.add(0, fmt.Sprintf("%s.nodeSelector[%d]", field, j), "%q is no label of a node: write it as name=value", label)
			}
		}
	}
	if k.Pipelines != "" && !filepath.IsAbs(k.Pipelines) {
		f.add(0, path+".pipelines", "%q is not an absolute path", k.Pipelines)
	}
	if k.PipelinesClaim != "" && k.Pipelines == "" {
		f.add(0, path+".pipelines", "name the folder at which pods find the claim %s", k.PipelinesClaim)
	}
	if k.CallRate <= 0 {
		f.add(0, path+".callRate", "calls a second are more than 0")
	}
	if k.Keep <= 0 {
		f.add(0, path+".keep", "an ended job stays for more than 0s, or nobody can read its log")
	}
}

func (r *SlurmREST) check(f *Faults, path string) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		f.add(0, path+".url", "%q is not slurmrestd's address, as in http://127.0.0.1:6820", r.URL)
	}
	if r.User == "" {
		f.add(0, path+".user", "name the user that the jobs belong to")
	}
	if r.TokenFile == "" {
		f.add(0, path+".tokenFile", "name the file that holds the user's JWT (scontrol token)")
	}
	if r.Version != "auto" && !slices.Contains(slurm.Versions, r.Version) {
		f.add(0, path+".version", "%q is not auto or one of %s", r.Version, strings.Join(slurm.Versions, ", "))
	}
}

func (s *SlurmSSH) check(f *Faults, path string) {
	for _, word := range []struct{ key, value, sentence string }{
		{"host", s.Host, "name the login node"},
		{"user", s.User, "name the user to log in as"},
		{"knownHostsFile", s.KnownHostsFile, "name the file with the key by which the login node is known; ssh-keyscan prints one, to be compared with what its administrator says"},
	} {
		if word.value == "" || hasControl(word.value) {
			f.add(0, path+"."+word.key, "%s", word.sentence)
		}
	}
	if s.Port < 1 || s.Port > 65535 {
		f.add(0, path+".port", "%d is no port", s.Port)
	}
	if s.KeyFile != "" && s.Agent != "" {
		f.add(0, path, "keyFile and agent exclude each other: the key is in a file or in an agent")
	}
	if s.Path != "" && !filepath.IsAbs(s.Path) {
		f.add(0, path+".path", "name the folder of Slurm's commands on the login node by its absolute path")
	}
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }
