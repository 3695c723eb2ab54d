package host

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/interlock-prover/interlock/shared"
)

// detached is the process of a plugin that outlives its host. This host may have started it, or an earlier one.
//
// It is watched and signalled by a pidfd, which was compared with the process's start time once: whatever happens to its
// number later, no other process can be hit.
type detached struct {
	pid    int
	pidfd  int
	conn   *grpc.ClientConn
	log    string        // path of its log
	older  string        // path of what was its log before
	first  os.FileInfo   // of the log in which this host's part begins, which may be the older one by now
	begin  int64         // where in that it begins
	cmd    *exec.Cmd     // nil if an earlier host started it
	exited chan struct{} // closed when it has ended
	status string        // how it ended; set before exited is closed, empty if it was let go

	letting sync.Once
	let     chan struct{} // closed to end the watching
}

// plugin.json says which process a directory's plugin is.
type identity struct {
	PID       int
	StartTime uint64 // in clock ticks since the machine's start, as /proc has it
	Program   string // SHA-256 of its program, hex
	Settings  string // SHA-256 of what it was started with, hex
	Protocol  int
}

// errOther says that the process that was written down is not there.
var errOther = errors.New("no such plugin")

// attachOrStart gives the plugin of a directory: the one that runs there if it is the one that would be started, else a
// new one. Either must answer within StartTimeout. ctx bounds the start alone.
func attachOrStart(ctx context.Context, o Options, dir string, idle time.Duration) (*instance, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the directory of a detached plugin: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the directory of a detached plugin: %w", err)
	}
	program, err := fileSum(o.PluginPath)
	if err != nil {
		return nil, fmt.Errorf("the plugin's program: %w", err)
	}
	if o.PluginSHA256 != "" && !strings.EqualFold(o.PluginSHA256, program) {
		return nil, &ChecksumError{Path: o.PluginPath, Want: o.PluginSHA256, Got: program}
	}
	want := identity{Program: program, Settings: settingsSum(o), Protocol: shared.ProtocolVersion}
	d, got, err := findDetached(dir)
	if err == nil {
		if got.Program == want.Program && got.Settings == want.Settings && got.Protocol == want.Protocol {
			if i, err := newDetachedInstance(ctx, o, dir, d); err == nil {
				o.Logger.Info("a plugin was found that an earlier host had started", "pid", d.pid)
				return i, nil
			}
			o.Logger.Warn("a plugin was found that does not answer, and is killed", "pid", d.pid)
			d.terminate(0)
		} else {
			o.Logger.Warn("a plugin was found that is another program or was started otherwise, and is ended", "pid", d.pid)
			d.terminate(o.StopTimeout)
		}
	}
	if err := makeKeys(dir); err != nil {
		return nil, fmt.Errorf("keys for a detached plugin: %w", err)
	}
	if d, err = startDetached(o, dir, idle, want); err != nil {
		return nil, err
	}
	i, err := newDetachedInstance(ctx, o, dir, d)
	if err != nil {
		d.terminate(0)
		return nil, fmt.Errorf("starting the plugin: %w; its log is %s and ends with:\n\t%s", err, d.log, strings.Join(d.lines(), "\n\t"))
	}
	return i, nil
}

// newDetachedInstance connects to a process and waits until it answers.
func newDetachedInstance(ctx context.Context, o Options, dir string, d *detached) (*instance, error) {
	ctx, cancel := answerWithin(ctx, o.StartTimeout)
	defer cancel()
	client, conn, err := shared.DialDetached(dir)
	if err != nil {
		return nil, err
	}
	for {
		pingCtx, ping := context.WithTimeout(ctx, 5*time.Second)
		err = client.Ping(pingCtx)
		ping()
		if err == nil {
			break
		}
		select {
		case <-d.exited:
			err = errors.New("it ended: " + d.status)
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
			continue
		}
		_ = conn.Close()
		return nil, err
	}
	d.conn = conn
	i := &instance{path: o.PluginPath, detached: d, client: client, log: o.Logger, stopTimeout: o.StopTimeout, gone: make(chan struct{})}
	client.SharePayloads(i.notShared)
	i.life, i.end = context.WithCancelCause(context.Background())
	i.watching.Go(func() {
		<-d.exited
		if d.status != "" {
			i.end(i.died())
		}
	})
	return i, nil
}

// startDetached starts the process of a plugin that shares nothing with this one, not even pipes, and writes down which
// it is.
func startDetached(o Options, dir string, idle time.Duration, who identity) (*detached, error) {
	logPath, _ := shared.DetachedLog(dir)
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	first, err := log.Stat()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(o.PluginPath, o.Args...)
	program, err := openProgram(o.PluginPath, who.Program)
	if err != nil {
		return nil, err
	}
	defer program.close()
	cmd.Path = program.path()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = append(append(os.Environ(), o.environment()...), o.Env...)
	cmd.Env = append(cmd.Env, shared.Handshake.MagicCookieKey+"="+shared.Handshake.MagicCookieValue,
		shared.EnvLifeline+"=", shared.EnvDetach+"="+dir, shared.EnvDetachIdle+"="+idle.String())
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the plugin %s: %w", o.PluginPath, err)
	}
	who.PID = cmd.Process.Pid
	who.StartTime, err = startTime(who.PID)
	if err == nil {
		err = writeIdentity(dir, who)
	}
	var d *detached
	if err == nil {
		d, err = watchDetached(who.PID, dir)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("starting the plugin %s: %w", o.PluginPath, err)
	}
	d.cmd, d.first, d.begin = cmd, first, first.Size()
	go d.watch()
	return d, nil
}

// findDetached looks for the process that a directory's plugin is. It is that process for certain: its number, start time
// and program are those that were written down.
func findDetached(dir string) (*detached, identity, error) {
	var who identity
	text, err := os.ReadFile(filepath.Join(dir, "plugin.json"))
	if err != nil || json.Unmarshal(text, &who) != nil || who.PID <= 0 {
		return nil, who, errOther
	}
	d, err := watchDetached(who.PID, dir)
	if err != nil {
		return nil, who, errOther
	}
	started, err := startTime(who.PID)
	if err == nil && started == who.StartTime {
		var sum string
		if sum, err = fileSum(fmt.Sprintf("/proc/%d/exe", who.PID)); err == nil && sum == who.Program {
			if info, err := os.Stat(d.log); err == nil {
				d.first, d.begin = info, info.Size()
			}
			go d.watch()
			return d, who, nil
		}
	}
	_ = unix.Close(d.pidfd)
	return nil, who, errOther
}

// watchDetached prepares to watch a process.
func watchDetached(pid int, dir string) (*detached, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	log, older := shared.DetachedLog(dir)
	return &detached{pid: pid, pidfd: fd, log: log, older: older, exited: make(chan struct{}), let: make(chan struct{})}, nil
}

// watch waits for the process's end, or until it is let go.
func (d *detached) watch() {
	defer close(d.exited)
	for {
		fds := []unix.PollFd{{Fd: int32(d.pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 50)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			break
		}
		select {
		case <-d.let:
			return
		default:
		}
	}
	d.status = "for reasons that only its log may tell"
	if d.cmd != nil {
		_ = d.cmd.Wait()
		d.status = d.cmd.ProcessState.String()
	}
}

// signal sends a signal to this process and no other.
func (d *detached) signal(s syscall.Signal) { _ = unix.PidfdSendSignal(d.pidfd, s, nil, 0) }

// terminate asks the process to end, kills it after a while, and waits for its end.
func (d *detached) terminate(patience time.Duration) {
	d.signal(syscall.SIGTERM)
	select {
	case <-d.exited:
	case <-time.After(patience):
		d.signal(syscall.SIGKILL)
		<-d.exited
	}
	d.close()
}

// close gives up the connection and the watching, which leaves the process as it is.
func (d *detached) close() {
	d.letting.Do(func() {
		close(d.let)
		<-d.exited
		if d.conn != nil {
			_ = d.conn.Close()
		}
		if d.cmd != nil && d.status == "" {
			go func() { _ = d.cmd.Wait() }() // it remains this process's child, and a zombie if nobody waits for it
		}
		_ = unix.Close(d.pidfd)
	})
}

// lines are what the plugin's log last said to this host.
func (d *detached) lines() []string {
	t := &tail{}
	if info, err := os.Stat(d.log); err != nil || !d.beginsIn(info) { // it was begun anew since
		d.read(t, d.older)
	}
	d.read(t, d.log)
	return t.lines()
}

// beginsIn tells whether a log is the one in which this host's part begins. (One that is shorter is another whose file has
// the same number.)
func (d *detached) beginsIn(log os.FileInfo) bool {
	return os.SameFile(log, d.first) && log.Size() >= d.begin
}

// read takes in the end of a log, as far as it is this host's part.
func (d *detached) read(t *tail, log string) {
	f, err := os.Open(log)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	const most = 64 << 10
	from := max(0, info.Size()-most)
	if d.beginsIn(info) {
		from = max(from, d.begin)
	}
	if _, err := f.Seek(from, io.SeekStart); err == nil {
		_, _ = io.Copy(t, io.LimitReader(f, most))
	}
}

// startTime is when a process started, in clock ticks since the machine did: field 22 of its stat.
func startTime(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The fields from the third on follow the program's name, which is in parentheses and may itself have some.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("the stat of process %d has %d fields", pid, len(fields)+2)
	}
	var ticks uint64
	_, err = fmt.Sscan(fields[19], &ticks)
	return ticks, err
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// settingsSum digests what a plugin is started with beside its program. A configuration that cannot be read is the
// plugin's to report.
func settingsSum(o Options) string {
	sum := sha256.New()
	config, err := os.ReadFile(o.ConfigPath)
	fmt.Fprintf(sum, "%q %q %q %q %q %v", o.Args, o.Env, o.ConfigPath, o.ParamsDir, config, err != nil)
	return hex.EncodeToString(sum.Sum(nil))
}

// writeIdentity writes plugin.json, whole or not at all.
func writeIdentity(dir string, who identity) error {
	text, err := json.Marshal(who)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "plugin.json")
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// makeKeys makes a key pair if there is none that can be used.
func makeKeys(dir string) error {
	if _, err := shared.DetachedTLS(dir); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: shared.DetachedName}, DNSNames: []string{shared.DetachedName},
		// Whoever can read the key is this user; an end of its validity, or a clock that jumps, would protect nobody.
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:        true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	certPath, keyPath, _ := shared.DetachedFiles(dir)
	for path, block := range map[string]*pem.Block{certPath: {Type: "CERTIFICATE", Bytes: cert}, keyPath: {Type: "PRIVATE KEY", Bytes: keyBytes}} {
		_ = os.Remove(path)
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// proveDetached has a detached plugin prove a job: one that it has from an earlier host is only waited for.
func (s *Supervisor) proveDetached(h *Host, j *job) (shared.Result, error) {
	id := shared.JobID(j.pluginID)
	s.mu.Lock()
	j.isHandedOn = true
	s.mu.Unlock()
	result, err := h.Await(j.ctx, id)
	if errors.Is(err, shared.ErrUnknownJob) {
		if err = s.submitDetached(h, j); err == nil {
			result, err = h.Await(j.ctx, id)
		}
	}
	if j.ctx.Err() != nil && (context.Cause(j.ctx) != ErrStopped || !j.isRecorded) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = h.Cancel(ctx, id) // else it goes on for nobody
	}
	return result, err
}

func (s *Supervisor) submitDetached(h *Host, j *job) error {
	if err := s.takePlace(h, j); err != nil {
		return err
	}
	defer func() { <-s.uploads }()
	vanilla, err := s.payload(j)
	if err != nil {
		return err
	}
	request := s.passOn(j, vanilla)
	request.ID = j.pluginID
	if _, err := h.Submit(j.ctx, request); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.isRecorded {
		j.vanilla = nil
	}
	return nil
}

// lookInterval is how often a detached plugin is asked how far its requests are.
const lookInterval = 500 * time.Millisecond

// look reports what a detached plugin's requests have come to.
func (s *Supervisor) look(h *Host) {
	ctx, cancel := context.WithTimeout(s.ctx, s.options.ProbeTimeout)
	defer cancel()
	st, err := h.Status(ctx)
	if err != nil {
		return // the probe finds out what is wrong
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := make(map[string]shared.JobStatus, len(st.Jobs))
	for _, p := range st.Jobs {
		now[p.RequestID] = p
	}
	for j := range s.active {
		p, isThere := now[j.pluginID]
		if j.state != jobInFlight || !isThere || p.Stage == j.stage && p.PartitionsDone == j.partitionsDone {
			continue
		}
		j.stage, j.partitionsDone, s.progress = p.Stage, p.PartitionsDone, time.Now()
		s.publish(j, shared.Progress{Stage: p.Stage, Partition: -1, PartitionsDone: p.PartitionsDone, Partitions: p.Partitions})
	}
}
